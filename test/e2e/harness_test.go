// Package e2e_test plays the acceptance cases from the outside: real processes
// that are really killed, a real embedded NATS server on a real disk, and a
// scripted model behind real HTTP, whose own record says what it was asked.
package e2e_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/audit"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// patience bounds what should take a moment, also on a slow machine under the
// race detector.
const patience = 2 * time.Minute

// beRollcall in the environment makes this binary the product itself, so that
// the processes under test have the race detector too.
const beRollcall = "ROLLCALL_E2E_BE_ROLLCALL"

func TestMain(m *testing.M) {
	if os.Getenv(beRollcall) != "" {
		os.Exit(program(os.Args[1:]))
	}
	code := m.Run()
	for _, dir := range toolboxes {
		_ = os.RemoveAll(dir) // of the machine's own temporary directory
	}
	os.Exit(code)
}

// place is an installation as one test sees it.
type place struct {
	t *testing.T
	*installation
}

// installation is a data directory, a model server, and the node that runs now,
// if any.
type installation struct {
	dir    string
	models *scripted.Server
	// record is the model server's own, as a file.
	record string
	door   *door
	node   *process
	env    []string
	// binary is the program; empty for this one.
	binary string
	// damaged are the rules that the test breaks on purpose.
	damaged []string
}

// on is the place for a subtest.
func (p *place) on(t *testing.T) *place { return &place{t, p.installation} }

// newPlace makes an installation whose model follows the script.
func newPlace(t *testing.T, script *scripted.Script) *place {
	t.Helper()
	record := filepath.Join(t.TempDir(), "calls.jsonl")
	models, err := scripted.Config{Script: script, Record: record}.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := models.Close(); err != nil {
			t.Error(err)
		}
	})
	p := &place{t, &installation{dir: t.TempDir(), models: models, record: record, door: openDoor(t, models.URL())}}
	p.env = append(os.Environ(), beRollcall+"=1", "ROLLCALL_DATA="+p.dir, "ROLLCALL_MODEL=scripted",
		"OPENAI_BASE_URL="+p.door.url, "OPENAI_API_KEY=sk-e2e-"+ulid.Make().String(), "NO_COLOR=1", "GORACE=halt_on_error=1 atexit_sleep_ms=0")
	t.Cleanup(func() {
		if p.node != nil {
			p.stop()
		}
		p.judge()
	})
	return p
}

func script(t *testing.T, yaml string) *scripted.Script {
	t.Helper()
	s, err := scripted.Parse(t.Name()+".yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// process is a running rollcall.
type process struct {
	*exec.Cmd
	out  *lockedBuffer
	done chan struct{}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start brings a node up and waits until it answers.
func (p *place) start() {
	p.t.Helper()
	p.spawn()
	p.ready()
}

// spawn starts a node, with more flags than none.
func (p *place) spawn(flags ...string) {
	p.t.Helper()
	cmd := p.program(append([]string{"up"}, flags...)...)
	out := &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	proc := &process{Cmd: cmd, out: out, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(proc.done)
	}()
	p.node = proc
}

// ready waits until the node answers.
func (p *place) ready() {
	p.t.Helper()
	p.poll("the node answers", func() bool {
		select {
		case <-p.node.done:
			p.t.Fatalf("the node ended: %s", p.node.out)
		default:
		}
		info, err := nodefile.Read(p.dir)
		return err == nil && info.PID == p.node.Process.Pid
	})
}

// kill ends the node with SIGKILL: nothing of it can say goodbye.
func (p *place) kill() {
	p.t.Helper()
	if err := p.node.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	<-p.node.done
	p.node = nil
}

// stop ends the node with SIGTERM and checks that it went in good order.
func (p *place) stop() {
	p.t.Helper()
	if err := p.node.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	select {
	case <-p.node.done:
	case <-time.After(patience):
		p.t.Error("the node does not stop")
		_ = p.node.Process.Kill()
		<-p.node.done
	}
	if code := p.node.ProcessState.ExitCode(); code != 0 || strings.Contains(p.node.out.String(), "DATA RACE") {
		p.t.Errorf("the node ended with %d:\n%s", code, p.node.out)
	}
	p.node = nil
}

// poll waits for a condition outside. It rests as long as a look takes, so that
// it leaves the machine to those it waits for.
func (p *place) poll(what string, ok func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		began := time.Now()
		if ok() {
			return
		}
		if time.Now().After(deadline) {
			out := ""
			if p.node != nil {
				out = p.node.out.String()
			}
			p.t.Fatalf("never: %s\n%s", what, out)
		}
		<-time.After(max(20*time.Millisecond, 2*time.Since(began)))
	}
}

func (p *place) ctx() context.Context {
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	p.t.Cleanup(cancel)
	return ctx
}

// nats is a plain connection, as any outsider has.
func (p *place) nats() *nats.Conn {
	p.t.Helper()
	nc, err := api.Dial(api.Target{Dir: p.dir}, "e2e")
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(nc.Close)
	return nc
}

// streams reaches behind the node, to what it keeps in the server.
func (p *place) streams() jetstream.JetStream {
	p.t.Helper()
	return got(jetstream.New(p.nats())).must(p.t)
}

// client outlives the node: it waits for the next one.
func (p *place) client() *api.Client {
	c := api.NewClient(p.nats(), "main")
	c.Patience = patience
	return c
}

// open starts a conversation on the mailbox contract.
func (p *place) open(c *api.Client, name, objective string) string {
	p.t.Helper()
	id := api.NewID()
	p.openAs(c, id, name, objective)
	return id
}

// openAs opens the conversation of that id.
func (p *place) openAs(c *api.Client, id, name, objective string) {
	p.t.Helper()
	_, err := c.Open(p.ctx(), &rollcallv1.OpenConversation{
		Conversation: id, Tenant: "main", Name: name, Contract: "mailbox", Objective: &rollcallv1.Body{Text: objective},
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// sealed is the whole log of a conversation.
func (p *place) sealed(c *api.Client, id string) (domain.Key, [][]byte) {
	p.t.Helper()
	var out [][]byte
	key, err := c.Log(p.ctx(), id, 1, func(raw []byte) error {
		out = append(out, raw)
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return key, out
}

// state folds the log.
func (p *place) state(c *api.Client, id string) *domain.State {
	p.t.Helper()
	key, sealed := p.sealed(c, id)
	s := domain.New(key)
	for _, raw := range sealed {
		commit, err := domain.Unseal(raw)
		if err != nil {
			p.t.Fatal(err)
		}
		s.Evolve(commit)
	}
	return s
}

// until waits for the log to come to something.
func (p *place) until(c *api.Client, id, what string, ok func(*domain.State) bool) *domain.State {
	p.t.Helper()
	var s *domain.State
	p.poll(what, func() bool {
		s = p.state(c, id)
		return ok(s)
	})
	return s
}

func quiet(s *domain.State) bool { return s.Opened && len(domain.Due(s)) == 0 }

// audit holds a conversation's log against the model server's own record.
func (p *place) audit(c *api.Client, id string) *audit.Report {
	p.t.Helper()
	key, sealed := p.sealed(c, id)
	r := audit.Check(key, sealed, func(b *rollcallv1.Blob) ([]byte, error) {
		return c.Blob(p.ctx(), id, api.BlobRef{SHA256: b.GetSha256(), Size: b.GetSize()})
	})
	r.Compare(p.models.Requests())
	for _, problem := range r.Problems {
		p.t.Errorf("audit of %s: %v", id, problem)
	}
	return r
}

// events of a conversation, in order.
func (p *place) events(c *api.Client, id string) (all []*rollcallv1.Event) {
	p.t.Helper()
	_, sealed := p.sealed(c, id)
	for _, raw := range sealed {
		commit, err := domain.Unseal(raw)
		if err != nil {
			p.t.Fatal(err)
		}
		all = append(all, commit.GetEvents()...)
	}
	return all
}

// answer is the Lead's last word.
func answer(events []*rollcallv1.Event) (text string) {
	for _, e := range events {
		if r := e.GetLeadReplied(); r != nil {
			text = r.GetText().GetText()
		}
	}
	return text
}
