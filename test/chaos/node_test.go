package chaos_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/internal/nodefile"
)

// node is a rollcall process on the servers, with a data directory of its own.
type node struct {
	t      testing.TB
	name   string
	dir    string
	urls   string
	binary string
	env    []string
	proc   *process
	out    *output
}

// rollcall is the program under test.
func rollcall(t testing.TB) string {
	t.Helper()
	return build(t, "rollcall", "./cmd/rollcall", raced...)
}

// skewed is the program with a clock ten minutes ahead: the one place where a
// node takes the time of a commit is another in its sources, so that the program
// that is shipped knows nothing of it.
func skewed(t testing.TB) string {
	t.Helper()
	const file, old, ahead = "actors/node.go", "domain.Stamp{Time: time.Now().UTC(),", "domain.Stamp{Time: time.Now().Add(10 * time.Minute).UTC(),"
	root := must[string](t)(filepath.Abs(filepath.Join("..", "..")))
	text := must[string](t)(readText(filepath.Join(root, file)))
	if strings.Count(text, old) != 1 {
		t.Fatalf("%s does not take its time by %q, once", file, old)
	}
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "node.go"), filepath.Join(dir, "overlay.json")
	replace := must[[]byte](t)(json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, file): changed}}))
	for path, text := range map[string]string{changed: strings.Replace(text, old, ahead, 1), overlay: string(replace)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return build(t, "rollcall-skewed", "./cmd/rollcall", append([]string{"-overlay", overlay}, raced...)...)
}

func readText(path string) (string, error) {
	data, err := os.ReadFile(path)
	return string(data), err
}

// newNode prepares a node; start starts it.
func newNode(t testing.TB, s *servers, name, binary, models string) *node {
	t.Helper()
	n := &node{t: t, name: name, dir: t.TempDir(), urls: strings.Join(s.urls(name), ","), binary: binary, out: &output{}}
	n.env = []string{
		"ROLLCALL_DATA=" + n.dir, "ROLLCALL_MODEL=scripted", "OPENAI_BASE_URL=" + models, "OPENAI_API_KEY=sk-chaos",
		"NO_COLOR=1", "GORACE=halt_on_error=1 atexit_sleep_ms=0",
	}
	t.Cleanup(func() {
		if n.proc != nil {
			n.proc.kill()
		}
		if strings.Contains(n.out.String(), "DATA RACE") {
			t.Errorf("%s has a data race:\n%s", n.name, n.out)
		} else if t.Failed() {
			t.Logf("%s said at last:\n%s", n.name, tail(n.out.String(), 25))
		}
	})
	return n
}

// start starts the node; ready waits until it answers.
func (n *node) start() {
	n.t.Helper()
	n.proc = launch(n.t, n.out, n.name, n.binary, n.env, "up", "--join", n.urls)
}

func (n *node) ready() {
	n.t.Helper()
	poll(n.t, n.name+" is up", func() bool {
		if !n.proc.lives() {
			n.t.Fatalf("%s ended:\n%s", n.name, n.out)
		}
		info, err := nodefile.Read(n.dir)
		return err == nil && info.PID == n.proc.pid()
	})
}

// lasting is the name by which the cluster knows the node, also after it is
// restarted.
func (n *node) lasting() string {
	n.t.Helper()
	return strings.TrimSpace(must[string](n.t)(readText(filepath.Join(n.dir, "node.name"))))
}

// term stops the node in good order and waits until it has gone.
func (n *node) term(limit time.Duration) {
	n.t.Helper()
	n.proc.signal(syscall.SIGTERM)
	select {
	case <-n.proc.done:
	case <-time.After(limit):
		n.t.Errorf("%s does not stop within %v of SIGTERM", n.name, limit)
		n.proc.kill()
	}
}

// strikeNode does to a node what a step says, and undoes it.
func (b *breaker) strikeNode(ctx context.Context, n *node, s step) {
	switch s.kind {
	case kill:
		n.proc.kill()
		rest(ctx, s.hold)
		n.start()
	case freeze:
		n.proc.stop()
		rest(ctx, s.hold)
		n.proc.cont()
	case drain:
		// It may be cut off meanwhile, or wait for an election: then it takes as
		// long as a node that cannot say goodbye may.
		n.term(patience)
		rest(ctx, s.hold)
		n.start()
	case storm:
		// Dead, alive and dead again within two seconds, while others claim.
		n.proc.kill()
		n.start()
		rest(ctx, s.hold%(1500*time.Millisecond))
		n.proc.kill()
		rest(ctx, 300*time.Millisecond)
		n.start()
	default:
		b.cutting(ctx, n.name, b.servers.names(), s)
	}
}

// revive has every node run again, whatever a plan left behind.
func (b *breaker) revive() {
	for _, n := range b.nodes {
		if n.proc.stopped {
			n.proc.cont()
		}
		if !n.proc.lives() {
			n.start()
		}
	}
	for _, n := range b.nodes {
		n.ready()
	}
}
