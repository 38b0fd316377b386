package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"

	"github.com/rollcall-dev/rollcall/eventstore"
)

// newNode names a node that no other case uses.
func newNode() string { return "n-" + strings.ToLower(ulid.Make().String()) }

func cluster(t *testing.T, s Store) eventstore.Cluster {
	t.Helper()
	c, err := s.Cluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// becomes reads the cluster until it is as it must be: any replica may answer.
func becomes(t *testing.T, s Store, what string, ok func(eventstore.Cluster) bool) {
	t.Helper()
	for end := time.Now().Add(patience); ; pause(t, 10*time.Millisecond) {
		c := cluster(t, s)
		if ok(c) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: never, last %+v", what, c)
		}
	}
}

var nodeCases = []Case{
	{"a node is known while it announces itself", func(t *testing.T, s Store) {
		n := eventstore.NodeInfo{
			Name: newNode(), Life: "l1", Place: "here:/data", Version: "1.2.3", Started: time.Unix(1_800_000_000, 0).UTC(),
			Leaving: true, Quarantined: map[string]string{"main.01jzzzzzzzzzzzzzzzzzzzzzzz": "it panics"},
		}
		if _, err := s.Announce(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		becomes(t, s, "announced", func(c eventstore.Cluster) bool {
			got, ok := c.Nodes[n.Name]
			return ok && cmp.Diff(n, got) == ""
		})
		n.Leaving, n.Quarantined = false, nil
		if _, err := s.Announce(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		becomes(t, s, "announced again", func(c eventstore.Cluster) bool { return !c.Nodes[n.Name].Leaving })
		// Without another word it is gone when a lease would be.
		becomes(t, s, "forgotten", func(c eventstore.Cluster) bool { _, ok := c.Nodes[n.Name]; return !ok })
	}},
	{"a node withdraws", func(t *testing.T, s Store) {
		n := eventstore.NodeInfo{Name: newNode(), Life: "l1"}
		if _, err := s.Announce(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if err := s.Withdraw(t.Context(), n.Name); err != nil {
			t.Fatal(err)
		}
		becomes(t, s, "withdrawn", func(c eventstore.Cluster) bool { _, ok := c.Nodes[n.Name]; return !ok })
	}},
	{"the owners are those who hold a lease", func(t *testing.T, s Store) {
		p := newPartition()
		l := claim(t, s, newNode(), p)
		want := eventstore.Owner{Node: l.Node, Epoch: l.Epoch}
		becomes(t, s, "owned", func(c eventstore.Cluster) bool { return c.Owners[p] == want })
		if err := s.Renew(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		becomes(t, s, "owned at the same epoch", func(c eventstore.Cluster) bool { return c.Owners[p] == want })
		if err := s.Release(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		becomes(t, s, "free", func(c eventstore.Cluster) bool { _, ok := c.Owners[p]; return !ok })
	}},
	{"a drain lasts until it is taken back", func(t *testing.T, s Store) {
		n := newNode()
		for range 2 {
			for _, on := range []bool{true, true, false, false} {
				if err := s.Drain(t.Context(), n, on); err != nil {
					t.Fatal(err)
				}
				becomes(t, s, "drain", func(c eventstore.Cluster) bool { return c.Drained[n] == on })
			}
		}
	}},
}
