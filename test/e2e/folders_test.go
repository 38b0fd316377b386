package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/auth"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
	"github.com/rollcall-dev/rollcall/test/checker"
)

// folders is a cluster of processes, each run by its folder of auth init.
type folders struct {
	t      *testing.T
	dir    string
	models *scripted.Server
	nodes  map[string]*process
}

func newFolders(t *testing.T, s *scripted.Script) *folders {
	t.Helper()
	models, err := scripted.Start(s, "")
	if err != nil {
		t.Fatal(err)
	}
	f := &folders{t: t, dir: t.TempDir(), models: models, nodes: map[string]*process{}}
	t.Cleanup(func() {
		for name := range f.nodes {
			f.end(name, syscall.SIGKILL)
		}
		if err := models.Close(); err != nil {
			t.Error(err)
		}
	})
	args := []string{"auth", "init", f.path("auth")}
	ports := natsdtest.Ports(t, 6)
	for i, name := range []string{"a", "b", "c"} {
		args = append(args, "--server", fmt.Sprintf("%s=127.0.0.1:%d/%d", name, ports[2*i], ports[2*i+1]))
	}
	if out, err := f.program("client", args...).CombinedOutput(); err != nil {
		t.Fatalf("auth init: %v\n%s", err, out)
	}
	return f
}

func (f *folders) path(names ...string) string {
	return filepath.Join(append([]string{f.dir}, names...)...)
}

// program is the product with a data directory of its own.
func (f *folders) program(data string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), beRollcall+"=1", "ROLLCALL_DATA="+f.path("data-"+data), "ROLLCALL_MODEL=scripted",
		"OPENAI_BASE_URL="+f.models.URL(), "OPENAI_API_KEY=sk-e2e", "NO_COLOR=1", "GORACE=halt_on_error=1 atexit_sleep_ms=0")
	return cmd
}

// up starts the machine of a folder; name tells nodes of one folder apart.
func (f *folders) up(folder, name string) {
	f.t.Helper()
	cmd := f.program(name, "up", "--cluster", f.path("auth", folder))
	out := &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	proc := &process{Cmd: cmd, out: out, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(proc.done)
	}()
	f.nodes[name] = proc
}

// end ends a process with a signal, and returns how long that took.
func (f *folders) end(name string, signal os.Signal) time.Duration {
	f.t.Helper()
	began := time.Now()
	n := f.nodes[name]
	delete(f.nodes, name)
	if err := n.Process.Signal(signal); err != nil {
		f.t.Error(err)
	}
	select {
	case <-n.done:
	case <-time.After(patience):
		f.t.Errorf("%s does not end", name)
		_ = n.Process.Kill()
		<-n.done
	}
	if code := n.ProcessState.ExitCode(); signal == syscall.SIGTERM && code != 0 || strings.Contains(n.out.String(), "DATA RACE") {
		f.t.Errorf("%s ended with %d:\n%s", name, code, n.out)
	}
	return time.Since(began)
}

// connect is by the credentials of a role.
func (f *folders) connect(creds string) *nats.Conn {
	f.t.Helper()
	bundle, err := auth.Load(f.path("auth", "node"))
	if err != nil {
		f.t.Fatal(err)
	}
	nc, err := api.Dial(api.Target{URL: bundle.URL(), Creds: f.path("auth", creds), CA: bundle.CA()}, "e2e")
	if err != nil {
		f.tell()
		f.t.Fatal(err)
	}
	f.t.Cleanup(nc.Close)
	return nc
}

// tell shows what the processes said.
func (f *folders) tell() {
	for name, n := range f.nodes {
		f.t.Logf("%s: %s", name, n.out)
	}
}

// until polls what ok looks at.
func (f *folders) until(what string, ok func() bool) time.Duration {
	f.t.Helper()
	began := time.Now()
	for deadline := began.Add(patience); ; {
		look := time.Now()
		if ok() {
			return time.Since(began)
		}
		if time.Now().After(deadline) {
			f.tell()
			f.t.Fatalf("never: %s", what)
		}
		<-time.After(max(50*time.Millisecond, 2*time.Since(look)))
	}
}

// shared waits until the nodes that are up share all partitions evenly.
func (f *folders) shared(c *api.Client, nodes int) {
	f.t.Helper()
	took := f.until(fmt.Sprintf("%d nodes share the work", nodes), func() bool {
		all, err := c.Nodes(f.t.Context())
		if err != nil {
			return false
		}
		up, held := 0, 0
		for _, n := range all.Nodes {
			if len(n.Partitions) > 0 && len(n.Partitions) < domain.Partitions/nodes {
				return false
			}
			if n.Status == "up" && len(n.Partitions) > 0 {
				up++
			}
			held += len(n.Partitions)
		}
		return up == nodes && held == domain.Partitions
	})
	f.t.Logf("%d nodes share the work after %v", nodes, took.Round(time.Millisecond))
}

// A cluster is made by auth init and run by its folders. Clients with their own
// credentials open conversations and see them through, while a machine is
// killed, another stopped in good order and both come back, and a node without a
// server helps.
func TestClusterByFolders(t *testing.T) {
	t.Parallel()
	f := newFolders(t, script(t, `rules: [{text: 'bound', delay_ms: 1500}]`))
	for _, name := range []string{"a", "b", "c"} {
		f.up(name, name)
	}
	f.until("a cluster", func() bool {
		_, err := os.Stat(f.path("data-c", "node.json"))
		return err == nil
	})
	operator := api.NewClient(f.connect("node.creds"), "main")
	client := api.NewClient(f.connect("client-main.creds"), "main")
	client.Patience = patience
	f.shared(operator, 3)

	var ids []string
	open := func(n int) {
		for range n {
			a, err := client.Open(t.Context(), &rollcallv1.OpenConversation{Contract: "none", Objective: &rollcallv1.Body{Text: "bind it"}})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, a.Conversation)
		}
	}
	answered := func(ids ...string) {
		t.Helper()
		for _, id := range ids {
			f.until("an answer of "+id, func() bool {
				d, err := client.Show(t.Context(), api.ReadRequest{Conversation: id})
				return err == nil && d.Status == "idle" && len(d.Runs) > 0
			})
		}
	}
	open(9)
	f.end("b", syscall.SIGKILL) // a NATS server and a node at once
	open(3)
	answered(ids...)
	f.up("node", "d")
	f.shared(operator, 3)
	f.up("b", "b")
	f.shared(operator, 4)

	// A stopped machine hands over at once: nobody waits for a model.
	late := len(ids)
	open(12)
	took := f.end("c", syscall.SIGTERM)
	t.Logf("c stopped after %v", took.Round(time.Millisecond))
	answered(ids[late:]...)
	f.up("c", "c")
	f.shared(operator, 4)

	roll, err := client.Roll(t.Context(), api.ReadRequest{})
	if err != nil || len(roll.Members) != len(ids) {
		t.Errorf("%d members answer, want %d, %v", len(roll.Members), len(ids), err)
	}
	on := map[string]bool{}
	for _, m := range roll.Members {
		on[m.Node] = true
	}
	if len(on) != 4 {
		t.Errorf("%d conversations are on the nodes %v", len(ids), on)
	}
	if _, err := client.Nodes(t.Context()); err == nil || !strings.Contains(err.Error(), "nats-denied") {
		t.Errorf("a client lists the nodes: %v", err)
	}
	logs, err := checker.Read(t.Context(), f.connect("node.creds"))
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range checker.CheckAll(logs, requestsOf(f.models)) {
		t.Error(found)
	}
	// One more call for each run that a kill or a stop met, at most.
	if calls := len(f.models.Requests()); calls < len(ids) || calls > 2*len(ids) {
		t.Errorf("%d calls for %d conversations", calls, len(ids))
	}
}
