package auth_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/auth"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
)

// beServer in the environment makes this binary a plain nats-server.
const beServer = "ROLLCALL_AUTH_TEST_BE_NATS_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(beServer) != "" {
		os.Exit(plainServer(os.Args[1:]))
	}
	natsdtest.VerifyTestMain(m)
}

// plainServer is what the program nats-server does.
func plainServer(args []string) int {
	flags := flag.NewFlagSet("nats-server", flag.ContinueOnError)
	opts, err := server.ConfigureOptions(flags, args, func() {}, flags.Usage, func() {})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s, err := server.NewServer(opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s.ConfigureLogger()
	s.Start()
	s.WaitForShutdown()
	return 0
}

// A NATS server that is not ours takes the roles from the configuration file,
// and those that are added when it reads it again.
func TestAPlainServer(t *testing.T) {
	roles, dir := filepath.Join(t.TempDir(), "roles"), t.TempDir()
	made, err := auth.Init(roles, auth.Plan{Tenants: []string{"main"}, Auditors: []auth.Auditor{{Name: "alice"}}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	refresh := func() {
		t.Helper()
		data, err := os.ReadFile(made.Conf)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "nats.conf"), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	refresh()
	conf := fmt.Sprintf("include nats.conf\nserver_name: s\nlisten: \"127.0.0.1:-1\"\nports_file_dir: %q\njetstream { store_dir: %q }\n", dir, filepath.Join(dir, "js"))
	if err := os.WriteFile(filepath.Join(dir, "server.conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-c", filepath.Join(dir, "server.conf")) //nolint:gosec // this binary
	cmd.Env = append(os.Environ(), beServer+"=1")
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	url := portsFile(t, filepath.Join(dir, filepath.Base(os.Args[0])+"_"+strconv.Itoa(cmd.Process.Pid)+".ports"))

	nodes := dial(t, url, filepath.Join(roles, "node.creds"), "")
	natsdtest.Open(t, nodes, eventstore.Config{})
	js, err := jetstream.New(nodes)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if _, err := js.Publish(t.Context(), "rollcall.events.1.main.c", []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	alice := auth.Auditor{Name: "alice"}
	if _, err := js.CreateConsumer(t.Context(), eventstore.StreamEvents, jetstream.ConsumerConfig{Durable: alice.Durable(), FilterSubject: alice.Filter(), AckPolicy: jetstream.AckNonePolicy}); err != nil {
		t.Fatal(err)
	}
	if nc, err := nats.Connect(url); err == nil {
		nc.Close()
		t.Error("a client without credentials got in")
	}
	sys := dial(t, url, filepath.Join(roles, "sys.creds"), "")
	if m, err := sys.Request("$SYS.REQ.SERVER.PING", nil, patience); err != nil || len(m.Data) == 0 {
		t.Errorf("the system account: %v", err)
	}
	if _, err := dial(t, url, filepath.Join(roles, "client-main.creds"), "").Request("rollcall.in.main.c.lead", []byte("x"), patience); err != nil {
		t.Errorf("a client: %v", err)
	}

	if _, err := auth.Add(roles, []string{"acme"}, nil); err != nil {
		t.Fatal(err)
	}
	acme := nats.UserCredentials(filepath.Join(roles, "client-acme.creds"))
	if nc, err := nats.Connect(url, acme); err == nil {
		nc.Close()
		t.Error("the server knows of a tenant that nobody told it of")
	}
	refresh()
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; {
		nc, err := nats.Connect(url, acme)
		if err == nil {
			natsdtest.Close(nc)
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the new tenant is not let in: %v", err)
		}
		<-time.After(20 * time.Millisecond)
	}
	if _, err := js.Publish(t.Context(), "rollcall.events.1.main.c", nil); err != nil {
		t.Errorf("after the server read its configuration again: %v", err)
	}
}

// portsFile gives the address that a server wrote down.
func portsFile(t *testing.T, path string) string {
	t.Helper()
	var ports struct{ NATS []string }
	for deadline := time.Now().Add(patience); ; {
		data, err := os.ReadFile(path) //nolint:gosec // the test's own
		if err == nil && json.Unmarshal(data, &ports) == nil && len(ports.NATS) > 0 {
			return ports.NATS[0]
		}
		if time.Now().After(deadline) {
			t.Fatalf("no address in %s: %v", path, err)
		}
		<-time.After(10 * time.Millisecond)
	}
}
