package node_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/config"
	"github.com/rollcall-dev/rollcall/internal/natsd"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
	"github.com/rollcall-dev/rollcall/internal/node"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// join starts a node on servers that are not its own.
func join(t *testing.T, server *natsd.Server, dir, modelURL string) (n *node.Node, stop func()) {
	t.Helper()
	level := slog.LevelError
	if os.Getenv("ROLLCALL_TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	n, err := node.Start(t.Context(), node.Config{
		Settings: &config.Settings{
			Data: dir, Model: "scripted", BaseURL: modelURL, Key: config.NewSecret("k"), NATS: config.NATS{URL: server.URL},
		},
		Join: true, Version: "0.0.0-test", Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: level})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return n, closing(t, n)
}

// shares polls node ls until the nodes that are up hold what ok wants.
func shares(t *testing.T, c *api.Client, what string, ok func(held []int) bool) api.NodesAnswer {
	t.Helper()
	began := time.Now()
	for end := time.Now().Add(30 * time.Second); ; <-time.After(50 * time.Millisecond) {
		all, err := c.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var held []int
		for _, n := range all.Nodes {
			if n.Status == "up" {
				held = append(held, len(n.Partitions))
			}
		}
		if ok(held) {
			t.Logf("%s after %v: %v", what, time.Since(began).Round(time.Millisecond), held)
			return all
		}
		if time.Now().After(end) {
			t.Fatalf("%s: never, %v", what, held)
		}
	}
}

func even(nodes int) func([]int) bool {
	return func(held []int) bool {
		sum := 0
		for _, n := range held {
			if n < domain.Partitions/nodes {
				return false
			}
			sum += n
		}
		return len(held) == nodes && sum == domain.Partitions
	}
}

// healthy polls doctor until it finds nothing wrong on so many nodes.
func healthy(t *testing.T, c *api.Client, nodes int) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; <-time.After(50 * time.Millisecond) {
		d, err := c.DoctorOfAll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen, wrong := map[string]bool{}, ""
		for _, check := range d.Checks {
			seen[check.Node] = true
			if check.Level == api.Fail {
				wrong += fmt.Sprintf("%+v\n", check)
			}
		}
		if wrong == "" && len(seen) == nodes {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("doctor looked at %v: %s", seen, wrong)
		}
	}
}

// Nodes on one NATS share its partitions evenly, also when one comes or goes.
func TestNodesShareTheWork(t *testing.T) {
	for name, servers := range map[string]int{"one server": 1, "three servers": 3} {
		t.Run(name, func(t *testing.T) {
			var server *natsd.Server
			if servers == 1 {
				server = natsdtest.Start(t)
			} else {
				server = natsdtest.Cluster(t, servers)[0]
			}
			nc := natsdtest.Connect(t, server)
			if err := eventstore.Provision(t.Context(), nc, eventstore.Config{Replicas: servers}); err != nil {
				t.Fatal(err)
			}
			models := greeter(t)
			c := api.NewClient(nc, "main")
			_, stopA := join(t, server, t.TempDir(), models.URL())
			shares(t, c, "one node", even(1))
			join(t, server, t.TempDir(), models.URL())
			shares(t, c, "two nodes", even(2))
			for i := range 20 {
				o := &rollcallv1.OpenConversation{Contract: "none", Name: fmt.Sprint("c", i), Objective: &rollcallv1.Body{Text: "say hello"}}
				if a, err := c.Open(t.Context(), o); err != nil || a.Accepted {
					t.Fatal(a, err)
				}
			}
			join(t, server, t.TempDir(), models.URL())
			all := shares(t, c, "three nodes", even(3))
			roll, err := c.Roll(t.Context(), api.ReadRequest{})
			if err != nil || len(roll.Members) != 20 {
				t.Fatalf("%d members answer, %v", len(roll.Members), err)
			}
			owner := map[int]string{}
			for _, n := range all.Nodes {
				for _, p := range n.Partitions {
					owner[p] = n.Name
				}
			}
			for _, m := range roll.Members {
				if p := (domain.Key{Tenant: "main", Conversation: m.Conversation}).Partition(); m.Node != owner[p] {
					t.Errorf("%s of partition %d answers from %s, its owner is %s", m.Conversation, p, m.Node, owner[p])
				}
			}
			drained := all.Nodes[1].Name
			if _, err := c.Drain(t.Context(), drained, false); err != nil {
				t.Fatal(err)
			}
			shares(t, c, "one drained", func(held []int) bool {
				return len(held) == 3 && min(held[0], held[1], held[2]) == 0 && held[0]+held[1]+held[2] == domain.Partitions
			})
			if _, err := c.Drain(t.Context(), drained, true); err != nil {
				t.Fatal(err)
			}
			shares(t, c, "taken back", even(3))
			stopA()
			shares(t, c, "one stopped", even(2))
			healthy(t, c, 2)
			if got := len(models.Requests()); got != 20 {
				t.Errorf("%d model calls for 20 conversations", got)
			}
		})
	}
}

// The last node that takes work cannot be drained, nor one that is not there.
func TestDrainIsRefused(t *testing.T) {
	server := natsdtest.Start(t)
	nc := natsdtest.Connect(t, server)
	if err := eventstore.Provision(t.Context(), nc, eventstore.Config{}); err != nil {
		t.Fatal(err)
	}
	join(t, server, t.TempDir(), greeter(t).URL())
	c := api.NewClient(nc, "main")
	name := shares(t, c, "one node", even(1)).Nodes[0].Name
	for node, code := range map[string]string{name: "node-is-last", "n-other": "node-not-found", "": "node-not-found"} {
		if _, err := c.Drain(t.Context(), node, false); err == nil || !strings.Contains(err.Error(), code) {
			t.Errorf("drain of %q: %v, want %s", node, err, code)
		}
	}
}

// A data directory that was copied to another machine brings its node's name
// along: the copy does not start while the original runs.
func TestCopiedNameIsRefused(t *testing.T) {
	t.Parallel()
	server := natsdtest.Start(t)
	nc := natsdtest.Connect(t, server)
	if err := eventstore.Provision(t.Context(), nc, eventstore.Config{}); err != nil {
		t.Fatal(err)
	}
	models, dir, other := greeter(t), t.TempDir(), t.TempDir()
	_, stop := join(t, server, dir, models.URL())
	name, err := os.ReadFile(filepath.Join(dir, "node.name"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "node.name"), name, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = node.Start(t.Context(), node.Config{
		Settings: &config.Settings{Data: other, Model: "scripted", BaseURL: models.URL(), NATS: config.NATS{URL: server.URL}}, Join: true,
	})
	if refused, ok := errors.AsType[*domain.Refusal](err); !ok || refused.Code != "node-name-taken" || !strings.Contains(refused.Why, dir) {
		t.Fatalf("a copied name: %v", err)
	}
	stop()
	join(t, server, other, models.URL())
	shares(t, api.NewClient(nc, "main"), "the copy alone", even(1))
}

// A node that is told to stop while NATS is away ends all the same, and soon.
func TestStopsWithoutNATS(t *testing.T) {
	server := natsdtest.Start(t)
	nc := natsdtest.Connect(t, server)
	if err := eventstore.Provision(t.Context(), nc, eventstore.Config{}); err != nil {
		t.Fatal(err)
	}
	n, err := node.Start(t.Context(), node.Config{
		Settings: &config.Settings{Data: t.TempDir(), Model: "scripted", BaseURL: greeter(t).URL(), NATS: config.NATS{URL: server.URL}}, Join: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	shares(t, api.NewClient(nc, "main"), "one node", even(1))
	server.Shutdown()
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	began := time.Now()
	err = n.Close(ctx)
	took := time.Since(began)
	t.Logf("closed after %v: %v", took.Round(time.Millisecond), err)
	if took > 3*patience {
		t.Errorf("it took %v", took)
	}
}
