package actors

import (
	"errors"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/eventstore"
)

// looker is a node's peers, fed with what it would see.
type looker struct {
	*peers
	now time.Time
	ttl time.Duration
}

func newLooker(name string) *looker {
	rt := &runtime{Config: Config{Node: name}.withDefaults()}
	rt.Node = name
	return &looker{peers: newPeers(rt), now: time.Unix(1_800_000_000, 0), ttl: 5 * time.Second}
}

func there(names ...string) eventstore.Cluster {
	c := eventstore.Cluster{Nodes: map[string]eventstore.NodeInfo{}, Owners: map[int]eventstore.Owner{}, Drained: map[string]bool{}}
	for _, n := range names {
		c.Nodes[n] = eventstore.NodeInfo{Name: n, Schema: 1 << 20}
	}
	return c
}

// see looks for a while, a look each twentieth of a lease.
func (l *looker) see(c eventstore.Cluster, settled bool, looks int) {
	for range looks {
		l.now = l.now.Add(l.ttl / 20)
		l.look(c, l.now, l.ttl, settled)
	}
}

// meantFor is a partition that should be the node's.
func (l *looker) meantFor(t *testing.T, node string) int {
	t.Helper()
	for p, n := range l.known.wanted {
		if n == node {
			return p
		}
	}
	t.Fatalf("nothing is meant for %s", node)
	return 0
}

// A partition whose node does not take it goes to another, and is not given
// back as soon as it is held.
func TestAPartitionThatIsNotTakenGoesToAnother(t *testing.T) {
	l := newLooker("b")
	c := there("a", "b")
	l.see(c, true, 1)
	p := l.meantFor(t, "a")
	l.see(c, true, 19)
	if got := l.known.wanted[p]; got != "a" {
		t.Fatalf("after less than a lease it is meant for %s", got)
	}
	l.see(c, true, 3)
	if got := l.known.wanted[p]; got != "b" {
		t.Fatalf("a does not take it, and it is meant for %s", got)
	}
	ended := 0
	l.holds(p, func(error) { ended++ })
	c.Owners[p] = eventstore.Owner{Node: "b", Epoch: 1}
	l.see(c, true, 5*20)
	if ended > 0 {
		t.Error("it was given back to the node that does not take it")
	}
	l.see(c, true, 2*20)
	if ended == 0 {
		t.Error("the other node is left out for ever")
	}
}

// While nobody can be heard, nobody has failed: after an outage everything is
// meant for whom it was meant for before.
func TestNobodyFailsInAnOutage(t *testing.T) {
	l := newLooker("b")
	c := there("a", "b")
	l.see(c, true, 1)
	p := l.meantFor(t, "a")
	l.now = l.now.Add(2 * l.ttl) // no look succeeds
	l.see(c, false, 5)
	l.see(c, true, 10)
	if got := l.known.wanted[p]; got != "a" {
		t.Errorf("after the outage it is meant for %s", got)
	}
}

// One look may be at the past; the second in a row moves a partition.
func TestTwoLooksMoveAPartition(t *testing.T) {
	l := newLooker("b")
	l.see(there("b"), true, 1)
	var ended []error
	both := there("a", "b")
	for p := range l.known.wanted {
		l.holds(p, func(err error) { ended = append(ended, err) })
		both.Owners[p] = eventstore.Owner{Node: "b", Epoch: 1}
	}
	l.see(both, true, 1)
	if len(ended) > 0 {
		t.Fatal("the first look ended sessions")
	}
	l.see(there("b"), true, 1)
	l.see(both, true, 1)
	if len(ended) > 0 {
		t.Fatal("looks that are not in a row ended sessions")
	}
	l.see(both, true, 1)
	if len(ended) != len(l.Partitions)/2 || !errors.Is(ended[0], errMoved) {
		t.Fatalf("%d sessions ended: %v", len(ended), ended)
	}
}

// Nodes that leave or are drained are meant to have nothing.
func TestWhoLeavesOrIsDrainedHasNothing(t *testing.T) {
	l := newLooker("b")
	c := there("a", "b", "c")
	c.Drained["a"] = true
	c.Nodes["c"] = eventstore.NodeInfo{Name: "c", Schema: 1 << 20, Leaving: true}
	l.see(c, true, 1)
	for p, n := range l.known.wanted {
		if n != "b" {
			t.Errorf("partition %d is meant for %s", p, n)
		}
	}
}

// A partition that moves only to even the nodes out waits for a moment between
// two steps, but not for ever; one of a drained node does not wait.
func TestEveningOutWaitsForSteps(t *testing.T) {
	for name, drained := range map[string]bool{"evened out": false, "drained": true} {
		t.Run(name, func(t *testing.T) {
			l := newLooker("b")
			l.see(there("b"), true, 1)
			both := there("a", "b")
			both.Drained["b"] = drained
			l.see(both, true, 1)
			p := l.meantFor(t, "a")
			ended := 0
			l.holds(p, func(error) { ended++ })
			for q, n := range l.known.wanted {
				both.Owners[q] = eventstore.Owner{Node: n, Epoch: 1}
			}
			both.Owners[p] = eventstore.Owner{Node: "b", Epoch: 1}
			l.works(p, 2)
			l.see(both, true, 10)
			if (ended > 0) != drained {
				t.Fatalf("while two steps are under way the session was ended %d times", ended)
			}
			if drained {
				return
			}
			l.works(p, -1)
			if ended > 0 {
				t.Fatal("it does not wait for the second step")
			}
			l.works(p, -1)
			if ended != 1 {
				t.Fatal("it does not move when the last step ends")
			}
			l.works(p, 1)
			ended = 0
			l.see(both, true, 4*80)
			if ended == 0 {
				t.Fatal("it waits for ever")
			}
		})
	}
}

// A node without a model takes nothing.
func TestWhoOnlyReadsHasNothing(t *testing.T) {
	l := newLooker("b")
	c := there("a", "b")
	c.Nodes["a"] = eventstore.NodeInfo{Name: "a", Schema: 1 << 20, ReadsOnly: true}
	l.see(c, true, 1)
	for p, n := range l.known.wanted {
		if n != "b" {
			t.Errorf("partition %d is meant for %s", p, n)
		}
	}
}
