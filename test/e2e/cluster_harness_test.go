package e2e_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
	"github.com/rollcall-dev/rollcall/internal/natsd"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
	"github.com/rollcall-dev/rollcall/test/checker"
)

// fleet is nodes on a NATS server that is none of theirs, each a process with a
// data directory of its own. The place in it is the operator's, on a machine
// without a node.
type fleet struct {
	*place
	server *natsd.Server
	c      *api.Client
	nodes  []*place
}

// newFleet starts so many nodes, and waits until they share the work.
func newFleet(t *testing.T, s *scripted.Script, nodes int) *fleet {
	t.Helper()
	record := filepath.Join(t.TempDir(), "calls.jsonl")
	models, err := scripted.Config{Script: s, Record: record}.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := models.Close(); err != nil {
			t.Error(err)
		}
	})
	door := openDoor(t, models.URL())
	server := natsdtest.Start(t)
	nc := natsdtest.Connect(t, server)
	if err := eventstore.Provision(t.Context(), nc, eventstore.Config{}); err != nil {
		t.Fatal(err)
	}
	at := func(more ...string) *place {
		dir := t.TempDir()
		return &place{t, &installation{dir: dir, models: models, record: record, door: door, env: append(append(os.Environ(),
			beRollcall+"=1", "ROLLCALL_DATA="+dir, "NO_COLOR=1", "GORACE=halt_on_error=1 atexit_sleep_ms=0"), more...)}}
	}
	f := &fleet{place: at("NATS_URL=" + server.URL), server: server, c: api.NewClient(nc, "main")}
	f.c.Patience = patience
	t.Cleanup(func() {
		for _, n := range f.nodes {
			if n.node != nil {
				n.stop()
			}
		}
		f.judge()
	})
	for range nodes {
		n := at("ROLLCALL_MODEL=scripted", "OPENAI_BASE_URL="+door.url, "OPENAI_API_KEY=sk-e2e-"+ulid.Make().String())
		f.nodes = append(f.nodes, n)
		f.join(n)
	}
	f.shared()
	return f
}

// join brings the node up, again when it ran before, and waits until it answers.
func (f *fleet) join(n *place) {
	f.t.Helper()
	n.spawn("--join", f.server.URL)
	n.ready()
}

// name is a node's lasting name.
func (f *fleet) name(n *place) string {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(n.dir, "node.name"))
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// owners is who works on each partition.
func (f *fleet) owners() map[int]string {
	f.t.Helper()
	owners := map[int]string{}
	for _, n := range got(f.c.Nodes(f.ctx())).must(f.t).Nodes {
		for _, p := range n.Partitions {
			owners[p] = n.Name
		}
	}
	return owners
}

// owner is the node that works on the conversation; nil while nobody does.
func (f *fleet) owner(id string) *place {
	f.t.Helper()
	name := f.owners()[domain.Key{Tenant: "main", Conversation: id}.Partition()]
	i := slices.IndexFunc(f.nodes, func(n *place) bool { return n.node != nil && f.name(n) == name })
	if i < 0 {
		return nil
	}
	return f.nodes[i]
}

// shared waits until the nodes that run, and are not among those that take no
// work, have their shares.
func (f *fleet) shared(without ...*place) {
	f.t.Helper()
	f.poll("the nodes share the work", func() bool {
		has := map[string]int{}
		for _, name := range f.owners() {
			has[name]++
		}
		want := 0
		for _, n := range f.nodes {
			if n.node != nil && !slices.Contains(without, n) {
				want++
			}
		}
		for _, n := range f.nodes {
			share := has[f.name(n)]
			if takes := n.node != nil && !slices.Contains(without, n); takes && share < domain.Partitions/want || !takes && share > 0 {
				return false
			}
		}
		return true
	})
}

// openAt opens conversations until each node has n of them.
func (f *fleet) openAt(n int, objective string) (ids []string) {
	f.t.Helper()
	owners, has := f.owners(), map[string]int{}
	for len(ids) < n*len(f.nodes) {
		id := api.NewID()
		owner := owners[domain.Key{Tenant: "main", Conversation: id}.Partition()]
		if has[owner] == n {
			continue
		}
		has[owner]++
		ids = append(ids, id)
		f.openAs(f.c, id, "c "+id, objective)
	}
	return ids
}

// settle ends a story, as that of a place does: each log is held against the
// model server's record, and when all nodes have stopped, lost their read models
// and started again, everything is as it was, wherever it is now, although the
// model server has seen no connection.
func (f *fleet) settle(ids ...string) {
	f.t.Helper()
	for _, id := range ids {
		f.until(f.c, id, "rest", quiet)
	}
	before, came := f.sightOfAll(ids), f.door.count.Load()
	for _, id := range ids {
		if hash := f.audit(f.c, id).StateHash; before.Show[id].StateHash != hash {
			f.t.Errorf("a node shows the state %s of %s, the log gives %s", before.Show[id].StateHash, id, hash)
		}
	}
	for _, n := range f.nodes {
		n.stop()
		n.forget()
	}
	for _, n := range slices.Backward(f.nodes) {
		f.join(n)
	}
	f.shared()
	after := f.sightOfAll(ids)
	if n := f.door.count.Load() - came; n != 0 {
		f.t.Errorf("%d connections to the model server by starting again", n)
	}
	differences(f.t, before, after)
}

// sightOfAll is what a client reads, but not where the members live.
func (f *fleet) sightOfAll(ids []string) sight {
	f.t.Helper()
	s := f.sight(f.c, ids)
	for id, m := range s.Roll {
		m.Node = ""
		s.Roll[id] = m
	}
	return s
}

// judge holds the whole log against the model server's record.
func (f *fleet) judge() {
	nc, err := f.server.Connect()
	if err != nil {
		f.t.Error(err)
		return
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	logs, err := checker.Read(ctx, nc)
	if err != nil {
		f.t.Error(err)
	}
	for _, found := range checker.CheckAll(logs, f.recorded()) {
		f.t.Error(found)
	}
}

// within fails when something took longer than it may.
func within(t *testing.T, what string, began time.Time, most time.Duration) {
	t.Helper()
	if took := time.Since(began); took > most {
		t.Errorf("%s took %v, at most %v", what, took, most)
	}
}
