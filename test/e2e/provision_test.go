package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/natsd"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
)

// desk is a command line that speaks to a NATS somewhere.
type desk struct {
	t   *testing.T
	env []string
}

func newDesk(t *testing.T, s *natsd.Server) desk {
	return desk{t, append(os.Environ(), beRollcall+"=1", "NATS_URL="+s.URL, "ROLLCALL_DATA="+t.TempDir(), "NO_COLOR=1", "GORACE=halt_on_error=1 atexit_sleep_ms=0")}
}

// run gives what the command printed and how it ended.
func (d desk) run(args ...string) (out string, exit int) {
	d.t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = d.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ended := new(exec.ExitError); err != nil && !errors.As(err, &ended) {
		d.t.Fatal(err)
	}
	return stdout.String() + stderr.String(), cmd.ProcessState.ExitCode()
}

func (d desk) says(want string, args ...string) string {
	d.t.Helper()
	out, exit := d.run(args...)
	if exit != 0 || !strings.Contains(out, want) {
		d.t.Fatalf("%v ended with %d, and does not say %q:\n%s", args, exit, want, out)
	}
	return out
}

// A NATS somewhere is made ready by hand: first it is said what would change,
// then it changes, and then there is nothing to change.
func TestNodeInit(t *testing.T) {
	t.Parallel()
	server := natsdtest.Start(t)
	d := newDesk(t, server)
	if out, exit := d.run("up", "--join", server.URL); exit != 5 || !strings.Contains(out, "[installation-missing]") || !strings.Contains(out, "rollcall node init") {
		t.Fatalf("a node on a server that was not made ready ended with %d:\n%s", exit, out)
	}
	d.says("would change on", "node", "init", "--dry-run")
	js, err := jetstream.New(natsdtest.Connect(t, server))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Stream(t.Context(), eventstore.StreamEvents); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Fatalf("a dry run made the log: %v", err)
	}
	var all sync.WaitGroup
	for range 2 { // on several machines at once
		all.Go(func() {
			if out, exit := d.run("node", "init"); exit != 0 {
				t.Errorf("node init ended with %d:\n%s", exit, out)
			}
		})
	}
	all.Wait()
	d.says("nothing to change on", "node", "init")

	s, err := js.Stream(t.Context(), eventstore.StreamInbox)
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	cfg.Discard = jetstream.DiscardOld
	if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if out, exit := d.run("up", "--join", server.URL); exit != 4 || !strings.Contains(out, "[installation-outdated]") || !strings.Contains(out, "ROLLCALL_INBOX: discard from DiscardOld to DiscardNew") {
		t.Errorf("a node on a server that somebody changed ended with %d:\n%s", exit, out)
	}
	var doc struct {
		Server  string
		DryRun  bool `json:"dry_run"`
		Changes []struct{ Stream, Setting, From, To string }
	}
	if err := json.Unmarshal([]byte(d.says("", "node", "init", "--json")), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Changes) != 1 || doc.Changes[0].Stream != "ROLLCALL_INBOX" || doc.Changes[0].Setting != "discard" || doc.Changes[0].To != "DiscardNew" || doc.DryRun || strings.Contains(doc.Server, natsdtest.Token) {
		t.Errorf("it says %+v", doc)
	}
	const auditor = "ROLLCALL_EVENTS: consumer audit-alice from nothing to rollcall.events.*.acme.*"
	d.says(auditor, "node", "init", "--auditor", "alice=acme", "--dry-run")
	d.says(auditor, "node", "init", "--auditor", "alice=acme")
	if out, exit := d.run("node", "init", "--auditor", "alice"); exit == 0 || !strings.Contains(out, "[auditor-exists]") {
		t.Errorf("an auditor of one tenant made one of all: %d:\n%s", exit, out)
	}

	if out, exit := d.run("node", "init", "--replicas", "3"); exit != 4 || !strings.Contains(out, "[replicas-too-many]") {
		t.Errorf("three replicas on one server: ended with %d:\n%s", exit, out)
	}
}

// On a cluster three copies are made, also of what was there as one.
func TestNodeInitOnACluster(t *testing.T) {
	t.Parallel()
	servers := natsdtest.Cluster(t, 3)
	d := newDesk(t, servers[0])
	d.says("ROLLCALL_EVENTS: make it, one copy", "node", "init", "--replicas", "1")
	out := d.says("changed on", "node", "init")
	if n := strings.Count(out, "replicas from 1 to 3"); n != len(eventstore.Streams(eventstore.Config{})) {
		t.Errorf("%d streams have more copies:\n%s", n, out)
	}
	d.says("nothing to change", "node", "init", "--replicas", "1") // never fewer
}
