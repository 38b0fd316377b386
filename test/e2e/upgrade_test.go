package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
	"github.com/rollcall-dev/rollcall/test/checker"
)

// nextChanges make of this program one of the next version: it writes, in every
// commit, an event of a kind that this one does not know.
var nextChanges = map[string][][2]string{
	"domain/state.go":  {{fmt.Sprintf("const EvolveVersion uint32 = %d", domain.EvolveVersion), fmt.Sprintf("const EvolveVersion uint32 = %d", domain.EvolveVersion+1)}},
	"domain/evolve.go": {{"	if e.GetKind() == nil {\n", "	if e.GetKind() == nil && len(e.ProtoReflect().GetUnknown()) == 0 {\n"}},
	"domain/batch.go": {{"	return b.commit\n}\n", `	later := new(rollcallv1.Event)
	later.ProtoReflect().SetUnknown([]byte{0x82, 0xfa, 0x01, 0x03, 0x0a, 0x01, 'x'}) // field 4000
	b.commit.Events = append(b.commit.Events, later)
	return b.commit
}
`}},
}

// buildNext builds the next version.
func buildNext(t *testing.T) string {
	t.Helper()
	dir, root := t.TempDir(), got(filepath.Abs("../..")).must(t)
	replace := map[string]string{}
	for file, changes := range nextChanges {
		text := string(got(os.ReadFile(filepath.Join(root, file))).must(t))
		for _, c := range changes {
			if strings.Count(text, c[0]) != 1 {
				t.Fatalf("%s has not once: %s", file, c[0])
			}
			text = strings.Replace(text, c[0], c[1], 1)
		}
		to := filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, file)] = to
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, got(json.Marshal(map[string]any{"Replace": replace})).must(t), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "next")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-overlay", overlay, "-o", binary, "./cmd/rollcall")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the next version: %v\n%s", err, out)
	}
	return binary
}

// joined is a node on a NATS that is not its own.
type joined struct {
	*exec.Cmd
	t    *testing.T
	dir  string
	url  string
	env  []string
	out  *lockedBuffer
	done chan struct{}
}

func (n *joined) start(binary string) {
	n.t.Helper()
	n.Cmd = exec.Command(binary, "up", "--join", n.url)
	n.Env, n.out, n.done = n.env, &lockedBuffer{}, make(chan struct{})
	n.Stdout, n.Stderr = n.out, n.out
	if err := n.Start(); err != nil {
		n.t.Fatal(err)
	}
	go func() { _ = n.Wait(); close(n.done) }()
}

func (n *joined) end(s syscall.Signal) {
	n.t.Helper()
	_ = n.Process.Signal(s)
	select {
	case <-n.done:
	case <-time.After(patience):
		n.t.Fatalf("the node does not end:\n%s", n.out)
	}
	if s == syscall.SIGTERM && n.ProcessState.ExitCode() != 0 {
		n.t.Errorf("the node ended with %d:\n%s", n.ProcessState.ExitCode(), n.out)
	}
}

// name is the node's lasting name.
func (n *joined) name() string {
	text, _ := os.ReadFile(filepath.Join(n.dir, "node.name"))
	return strings.TrimSpace(string(text))
}

const pingScript = `
rules:
  - has: ['ping [0-9]+-[0-9]+']
    capture: {n: 'ping ([0-9]+-[0-9]+)'}
    text: 'pong {{n}}'
`

// upgradePatience is for one step of an upgrade, which takes seconds.
const upgradePatience = 40 * time.Second

// upgrade is an installation whose nodes are of two versions.
type upgrade struct {
	t     *testing.T
	desk  desk
	nc    *nats.Conn
	c     *api.Client
	store *eventstore.JetStream
	nodes []*joined
	ids   []string
	// rounds counts what each conversation was asked and has answered, and read is
	// how far its log was read for the answers.
	rounds []atomic.Int64
	read   []eventstore.Position
}

// versions-together: nodes are upgraded one by one under load, and the first of
// the new version is killed meanwhile. No old node decides on what a new one
// wrote; what came in waits, and in the end everything is answered once.
func TestOldAndNewTogether(t *testing.T) {
	t.Parallel()
	t.Run("versions-together", func(t *testing.T) {
		old, next := os.Args[0], buildNext(t)
		models := got(scripted.Config{Script: script(t, pingScript), Record: filepath.Join(t.TempDir(), "calls.jsonl")}.Start()).must(t)
		t.Cleanup(func() { _ = models.Close() })
		server := natsdtest.Start(t)
		nc := natsdtest.Connect(t, server)
		u := &upgrade{t: t, desk: newDesk(t, server), nc: nc, c: api.NewClient(nc, "main")}
		u.c.Patience = patience
		u.desk.says("changed on", "node", "init")
		u.store = got(eventstore.Open(t.Context(), nc, eventstore.Config{})).must(t)
		for range 3 {
			dir := t.TempDir()
			n := &joined{t: t, dir: dir, url: server.URL, env: append(slices.Clone(u.desk.env), "ROLLCALL_DATA="+dir, "ROLLCALL_MODEL=scripted", "OPENAI_BASE_URL="+models.URL(), "OPENAI_API_KEY=sk-e2e")}
			n.start(old)
			u.nodes = append(u.nodes, n)
		}
		t.Cleanup(func() {
			for _, n := range u.nodes {
				n.end(syscall.SIGTERM)
			}
		})
		u.settled("three old nodes", domain.EvolveVersion, domain.EvolveVersion, domain.EvolveVersion)

		stop := u.load()
		u.turns("with old nodes", 1)
		u.replace(0, next)
		u.settled("one new node", domain.EvolveVersion+1, domain.EvolveVersion, domain.EvolveVersion)
		u.turns("with one new node", 2)

		u.nodes[0].end(syscall.SIGKILL)
		u.held()
		u.nodes[0].start(next)
		u.turns("with the new node again", 2)
		for i := 1; i < 3; i++ {
			u.replace(i, next)
			u.turns("in the middle", 1)
		}
		u.settled("three new nodes", domain.EvolveVersion+1, domain.EvolveVersion+1, domain.EvolveVersion+1)
		u.turns("with new nodes", 2)
		stop()
		u.judge(models)
	})
}

// poll waits for something that the nodes do.
func (u *upgrade) poll(what string, ok func() bool) {
	u.t.Helper()
	for deadline := time.Now().Add(upgradePatience); !ok(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			var said []string
			for _, n := range u.nodes {
				said = append(said, n.out.String())
			}
			story := ""
			if len(u.ids) > 0 {
				for _, c := range u.commits(u.t.Context(), u.ids[0]) { // the newest
					story = fmt.Sprintln(c.GetVersion(), c.GetNode(), c.GetEvolveVersion(), c.GetEvents())
				}
			}
			u.t.Fatalf("never: %s\n%s\n%s", what, strings.Join(said, "\n---\n"), story)
		}
	}
}

// settled waits until each node, of the version given, has its share.
func (u *upgrade) settled(what string, schemas ...uint32) {
	u.t.Helper()
	u.poll(what, func() bool {
		found, err := u.store.Cluster(u.t.Context())
		if err != nil || len(found.Owners) != domain.Partitions {
			return false
		}
		for i, n := range u.nodes {
			name, has := n.name(), 0
			for _, o := range found.Owners {
				if o.Node == name {
					has++
				}
			}
			if name == "" || has < domain.Partitions/len(u.nodes) || found.Nodes[name].Schema != schemas[i] {
				return false
			}
		}
		return true
	})
}

// replace stops a node in good order and starts one of another version in its
// place.
func (u *upgrade) replace(i int, binary string) {
	u.t.Helper()
	u.nodes[i].end(syscall.SIGTERM)
	u.nodes[i].start(binary)
}

// load has a conversation in every partition asked and answering, over and over,
// until stop, which waits for the last answers.
func (u *upgrade) load() (stop func()) {
	u.t.Helper()
	for p := 0; p < domain.Partitions; {
		id := strings.ToLower(ulid.Make().String())
		if (domain.Key{Tenant: "main", Conversation: id}).Partition() == p {
			u.ids = append(u.ids, id)
			p++
		}
	}
	u.rounds, u.read = make([]atomic.Int64, len(u.ids)), make([]eventstore.Position, len(u.ids))
	ctx, end := context.WithCancel(u.t.Context())
	var all sync.WaitGroup
	for i, id := range u.ids {
		all.Go(func() {
			for n := int64(0); ctx.Err() == nil; n++ {
				if err := u.round(i, id, n); err != nil {
					u.t.Errorf("round %d of %s: %v", n, id, err)
					return
				}
				u.rounds[i].Store(n + 1)
				pause(ctx, 150*time.Millisecond)
			}
		})
	}
	return func() { end(); all.Wait() }
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// round asks and waits for the answer, however long it takes.
func (u *upgrade) round(i int, id string, n int64) error {
	ctx, cancel := context.WithTimeout(u.t.Context(), upgradePatience)
	defer cancel()
	text := &rollcallv1.Body{Text: fmt.Sprintf("ping %d-%d", i, n)}
	var err error
	if n == 0 {
		_, err = u.c.Open(ctx, &rollcallv1.OpenConversation{Conversation: id, Tenant: "main", Name: fmt.Sprint("ping ", i), Contract: "none", Objective: text})
	} else {
		_, err = u.c.Send(ctx, id, &rollcallv1.PostMessage{To: "lead", Kind: rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, Mode: rollcallv1.MailMode_MAIL_MODE_QUEUE, Body: text})
	}
	for want := fmt.Sprintf("pong %d-%d", i, n); err == nil; pause(ctx, 100*time.Millisecond) {
		if ctx.Err() != nil {
			return fmt.Errorf("no answer: %w", ctx.Err())
		}
		answered := false
		err = u.store.Load(ctx, domain.Key{Tenant: "main", Conversation: id}, u.read[i], func(r eventstore.Recorded) error {
			answered = answered || answer(r.Commit.GetEvents()) == want
			u.read[i] = r.Position()
			return nil
		})
		if answered {
			return nil
		}
	}
	return err
}

func (u *upgrade) commits(ctx context.Context, id string) (all []*rollcallv1.Commit) {
	key := domain.Key{Tenant: "main", Conversation: id}
	err := u.store.Load(ctx, key, eventstore.Position{}, func(r eventstore.Recorded) error {
		all = append(all, r.Commit)
		return nil
	})
	if err != nil && ctx.Err() == nil {
		u.t.Errorf("load %s: %v", id, err)
	}
	return all
}

// turns waits until every conversation was answered n times more.
func (u *upgrade) turns(what string, n int64) {
	u.t.Helper()
	begun := time.Now()
	var from []int64
	for i := range u.rounds {
		from = append(from, u.rounds[i].Load())
	}
	u.poll(fmt.Sprintf("%d turns %s", n, what), func() bool {
		for i := range u.rounds {
			if u.rounds[i].Load() < from[i]+n {
				return false
			}
		}
		return true
	})
	u.t.Logf("%d turns of %d conversations %s took %v", n, len(u.ids), what, time.Since(begun))
}

// held waits until the old nodes have everything, and say of what the new one
// wrote that they leave it alone.
func (u *upgrade) held() {
	u.t.Helper()
	gone := u.nodes[0].name()
	u.poll("old nodes own all, and met the newer version", func() bool {
		found, err := u.store.Cluster(u.t.Context())
		if err != nil || len(found.Owners) != domain.Partitions {
			return false
		}
		for _, o := range found.Owners {
			if o.Node == gone {
				return false
			}
		}
		for _, n := range u.nodes[1:] {
			if len(found.Nodes[n.name()].Newer) == 0 {
				return false
			}
		}
		return true
	})
	u.poll("ls says why", func() bool {
		out, exit := u.desk.run("ls", "--json")
		return exit == 0 && strings.Contains(out, `"quarantined"`) && strings.Contains(out, "a newer Rollcall wrote in its log")
	})
	out, exit := u.desk.run("doctor")
	if exit != 1 || !strings.Contains(out, "a newer Rollcall wrote in its log") {
		u.t.Errorf("doctor ended with %d:\n%s", exit, out)
	}
}

// judge holds the logs and the model server's record against what was asked.
func (u *upgrade) judge(models *scripted.Server) {
	u.t.Helper()
	mixed := 0
	for i, id := range u.ids {
		newest, both := uint32(0), map[uint32]bool{}
		answers := map[string]int{}
		for _, c := range u.commits(u.t.Context(), id) {
			v := c.GetEvolveVersion()
			if v < newest {
				u.t.Errorf("%s version %d: a node of version %d decided on what one of version %d wrote", id, c.GetVersion(), v, newest)
			}
			newest = max(newest, v)
			both[v] = true
			for _, e := range c.GetEvents() {
				if r := e.GetLeadReplied(); r != nil {
					answers[r.GetText().GetText()]++
				}
			}
		}
		if newest != domain.EvolveVersion+1 {
			u.t.Errorf("%s: the newest commit is of version %d", id, newest)
		}
		if len(both) == 2 {
			mixed++
		}
		for n := range u.rounds[i].Load() {
			if want := fmt.Sprintf("pong %d-%d", i, n); answers[want] != 1 {
				u.t.Errorf("%s: %q was said %d times", id, want, answers[want])
			}
		}
	}
	if mixed == 0 {
		u.t.Error("no conversation was worked on by both versions")
	}
	logs := got(checker.Read(u.t.Context(), u.nc)).must(u.t)
	for _, f := range checker.CheckAll(logs, (&place{u.t, &installation{models: models}}).recorded()) {
		u.t.Error(f)
	}
}
