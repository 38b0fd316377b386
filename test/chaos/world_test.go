package chaos_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// world is three servers, some nodes on them, and the model server they all ask,
// which lives in this process and keeps a record of its own.
type world struct {
	t       *testing.T
	net     *network
	servers *servers
	models  *scripted.Server
	b       *breaker
	nodes   []*node
	// admin is a connection that no plan cuts; c and log use it.
	admin *nats.Conn
	c     *api.Client
	log   *eventstore.JetStream
}

func newWorld(t *testing.T, text string, binaries ...string) *world {
	t.Helper()
	script := must[*scripted.Script](t)(scripted.Parse("chaos.yaml", []byte(text)))
	models := must[*scripted.Server](t)(scripted.Config{Script: script, Record: filepath.Join(t.TempDir(), "calls.jsonl")}.Start())
	t.Cleanup(func() {
		if err := models.Close(); err != nil {
			t.Error(err)
		}
	})
	net := newNetwork(t)
	w := &world{t: t, net: net, models: models, servers: startServers(t, net, 3)}
	w.b = newBreaker(t, w.servers)
	w.admin = w.b.admin
	provision(t, w.admin)
	w.c = w.client("client")
	poll(t, "the store opens", func() bool {
		ctx, cancel := within(tryFor)
		defer cancel()
		var err error
		w.log, err = eventstore.Open(ctx, w.admin, eventstore.Config{Replicas: 3})
		return err == nil
	})
	w.b.nodes = map[string]*node{}
	for i, binary := range binaries {
		n := newNode(t, w.servers, fmt.Sprint("n", i+1), binary, models.URL())
		w.nodes, w.b.nodes[n.name] = append(w.nodes, n), n
		n.start()
	}
	for _, n := range w.nodes {
		n.ready()
	}
	return w
}

// client is one of Rollcall's API, on a connection of its own.
func (w *world) client(name string) *api.Client {
	w.t.Helper()
	nc := w.servers.connect(name, nil)
	w.t.Cleanup(nc.Close)
	c := api.NewClient(nc, "main")
	c.Patience = 0 // however long it takes
	return c
}

func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*patience)
	w.t.Cleanup(cancel)
	return ctx
}

func keyOf(id string) domain.Key { return domain.Key{Tenant: "main", Conversation: id} }

// open opens a conversation and gives its id.
func (w *world) open(ctx context.Context, c *api.Client, id, name, objective string) error {
	return w.openOn(ctx, c, "mailbox", id, name, objective)
}

// openOn opens a conversation on a contract.
func (w *world) openOn(ctx context.Context, c *api.Client, contract, id, name, objective string) error {
	_, err := c.Open(ctx, &rollcallv1.OpenConversation{
		Conversation: id, Tenant: "main", Name: name, Contract: contract, Objective: &rollcallv1.Body{Text: objective},
	})
	return err
}

// commits are the whole log of a conversation, read from the stream.
func (w *world) commits(id string) (all []eventstore.Recorded) {
	w.t.Helper()
	ctx, cancel := within(patience)
	defer cancel()
	err := w.log.Load(ctx, keyOf(id), eventstore.Position{}, func(r eventstore.Recorded) error {
		all = append(all, r)
		return nil
	})
	if err != nil {
		w.t.Fatalf("load %s: %v", id, err)
	}
	return all
}

// state folds the log.
func (w *world) state(id string) *domain.State {
	s := domain.New(keyOf(id))
	for _, r := range w.commits(id) {
		s.Evolve(r.Commit)
	}
	return s
}

func quiet(s *domain.State) bool { return s.Opened && len(domain.Due(s)) == 0 }

// owner is the node that holds a conversation's partition, by what the bucket
// says; nil while nobody does.
func (w *world) owner(id string) *node {
	w.t.Helper()
	found := w.cluster()
	owner := found.Owners[keyOf(id).Partition()].Node
	for _, n := range w.nodes {
		if owner != "" && n.lasting() == owner {
			return n
		}
	}
	return nil
}

func (w *world) cluster() (found eventstore.Cluster) {
	w.t.Helper()
	poll(w.t, "the bucket of nodes can be read", func() bool {
		ctx, cancel := within(tryFor)
		defer cancel()
		var err error
		found, err = w.log.Cluster(ctx)
		return err == nil
	})
	return found
}

// settled waits until every partition has an owner, and each node its share.
func (w *world) settled() {
	w.t.Helper()
	var found eventstore.Cluster
	var has map[string]int
	defer func() {
		if w.t.Failed() {
			w.t.Logf("owners: %v; nodes: %v", has, slices.Sorted(maps.Keys(found.Nodes)))
		}
	}()
	poll(w.t, "every node has its share", func() bool {
		found, has = w.cluster(), map[string]int{}
		for _, o := range found.Owners {
			has[o.Node]++
		}
		for _, n := range w.nodes {
			if n.proc.lives() && has[n.lasting()] < domain.Partitions/len(w.nodes) {
				return false
			}
		}
		return len(found.Owners) == domain.Partitions
	})
}

// asked are the requests that the model server has of a conversation.
func (w *world) asked(id string) (found []scripted.Request) {
	for _, r := range w.models.Requests() {
		if r.Conversation == id {
			found = append(found, r)
		}
	}
	return found
}

func after(begun time.Time) time.Duration { return time.Since(begun).Round(10 * time.Millisecond) }
