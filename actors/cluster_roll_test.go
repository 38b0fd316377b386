package actors_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/actors"
	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/memory"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Elsewhere who went on from a checkpoint mixed up ids. Here a team with mail,
// tasks, a wait and a pause goes round three nodes: one that snapshots at each
// commit, one that seldom does and one that never does. Every member is to every
// node what it was to the one before, and nobody asks a model for it.
func TestB22SameOnEveryNode(t *testing.T) { synctest.Test(t, sameOnEveryNode) }

func sameOnEveryNode(t *testing.T) {
	crew := newCrewBrain()
	c := newCluster(t, func(ctx context.Context, from model.Caller, r request) (model.Reply, error) {
		if from.Member == "Other" {
			return model.Reply{}, &model.Error{Code: "model-key-refused", What: "401"} // the question stays unanswered
		}
		return crew.think(ctx, from, r)
	})
	often := map[string]uint64{"n1": 1, "n2": 7, "n3": 1 << 40}
	c.change = func(cfg *actors.Config) { cfg.SnapshotEvery = often[cfg.Node] }
	nodes := map[string]*peer{}
	for _, name := range []string{"n1", "n2", "n3"} {
		nodes[name] = c.up(name)
		defer nodes[name].down()
	}
	c.do(withMembers("go", "Worker", "Other"))
	c.do(post("m1", "ask Other", 0))
	c.do(addTask("Worker", "later"))
	c.do(addTask("user", "mine", "t1"))
	c.until("a member waits, one has failed", func(s *domain.State) bool {
		return len(domain.Due(s)) == 0 && domain.Word(s.Member("m1").Status) == "waiting" && s.Member("m2").Held
	})
	c.do(pauseCommand())
	c.do(post("m1", "not now", 0))
	s := c.quiet()
	if len(s.Member("m1").Unread) == 0 {
		t.Fatalf("nothing is unread\n%s", c.story())
	}
	calls := len(c.brain.record())
	before := map[string]actors.Present{}
	seen := map[string]bool{}
	for round := range 6 {
		at := []string{"n1", "n2", "n3", "n2", "n1", "n3"}[round]
		c.only(at, "n1", "n2", "n3")
		// The others have nothing in memory of it: each is rebuilt from the log.
		present, err := nodes[at].Roll(t.Context(), key)
		if err != nil || len(present) != 3 {
			t.Fatalf("the roll at %s: %v, %v", at, present, err)
		}
		alone := c.state()
		for _, p := range present {
			if p.Node != at {
				t.Errorf("%s answers from %s, its owner is %s", p.Name, p.Node, at)
			}
			if want := stateHash(t, alone.Member(p.Member)); p.StateHash != want {
				t.Errorf("%s at %s has the state %s, the log alone gives %s", p.Name, at, p.StateHash, want)
			}
			p.Node = ""
			if was, again := before[p.Member]; again && p != was {
				t.Errorf("at %s it is %+v, before it was %+v", at, p, was)
			}
			before[p.Member] = p
		}
		seen[at] = true
		for name, n := range nodes {
			if name != at {
				if others, err := n.Roll(t.Context(), key); err != nil || len(others) > 0 {
					t.Errorf("%s answers for the members that %s has: %v, %v", name, at, others, err)
				}
			}
		}
	}
	if n := len(c.brain.record()); n != calls || len(seen) != 3 {
		t.Errorf("%d model calls by moving, on %v", n-calls, seen)
	}
	// And what goes on after all that has the next ids, and none twice.
	c.do(resumeCommand())
	c.quiet()
	once(t, c.events())
	justified(t, c.events(), len(c.brain.record()))
	c.fenced(t)
}

// only lets one of the nodes take work, and waits until it has the partition.
func (c *cluster) only(name string, all ...string) {
	c.t.Helper()
	for _, other := range all {
		if err := c.disk.Drain(c.t.Context(), other, other != name); err != nil {
			c.t.Fatal(err)
		}
	}
	c.owns(name)
}

// leaves are the ways in which a node lets go of its work in good order.
var leaves = map[string]struct {
	reason string
	do     func(c *cluster, first *peer) func()
}{
	"it is stopped": {"the node is stopping", func(_ *cluster, first *peer) func() {
		first.down()
		return func() {}
	}},
	"it is drained": {"the partition moves to another node", func(c *cluster, first *peer) func() {
		_ = c.disk.Drain(c.t.Context(), first.name, true)
		return func() {}
	}},
	"others come, and take their share": {"the partition moves to another node", func(c *cluster, first *peer) func() {
		var came []*peer
		for i := 0; c.owner() == first.name && i < 20; i++ {
			came = append(came, c.up(fmt.Sprint("late", i)))
			<-time.After(5 * time.Second)
		}
		return func() {
			for _, p := range came {
				p.down()
			}
		}
	}},
}

// Elsewhere the shutdown of a worker was taken for the user's stop. Here a node
// lets go of two runs in the middle of a call, in each way it can: they are
// suspended by the node, with the reason, not interrupted; nothing is handed back
// to be read again; and they go on elsewhere as the same runs.
func TestB24NotTheUsersStop(t *testing.T) {
	for how, leave := range leaves {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate := make(chan struct{})
				c := newCluster(t, func(ctx context.Context, _ model.Caller, _ request) (model.Reply, error) {
					return say("done"), until(ctx, gate)
				})
				first, second := c.pair()
				if how == "others come, and take their share" {
					second.down()
					c.owns(first.name)
				}
				defer second.down()
				defer first.down()
				c.do(withMembers("go", "Ada"))
				c.do(post("m1", "work", 0))
				c.until("both are at it", func(*domain.State) bool { return c.called(first.name) == 2 })
				began := time.Now()
				after := leave.do(c, first)
				defer after()
				if how == "it is stopped" && time.Since(began) > time.Second {
					t.Errorf("to stop took %v", time.Since(began))
				}
				c.until("both are asked again", func(*domain.State) bool { return len(c.brain.record()) == 4 })
				if took := time.Since(began); how != "others come, and take their share" && took > 2*time.Second {
					t.Errorf("from the order to the next step: %v", took)
				}
				if c.called(first.name) != 2 || c.owner() == first.name {
					t.Errorf("%s made %d calls, the owner is %s", first.name, c.called(first.name), c.owner())
				}
				c.apart(t)
				close(gate)
				c.quiet()
				events := c.events()
				suspended := map[string]string{}
				for _, e := range events {
					if s := e.GetRunSuspended(); s != nil {
						suspended[s.GetRun()] = s.GetReason()
					}
				}
				if len(suspended) != 2 || resumed(events) != 2 {
					t.Errorf("suspended were %v, taken up %d\n%s", suspended, resumed(events), c.story())
				}
				for run, reason := range suspended {
					if reason != leave.reason {
						t.Errorf("run %s is suspended because %q", run, reason)
					}
				}
				returned := count(events, (*rollcallv1.Event).GetMessagesReturned, func(r *rollcallv1.MessagesReturned) bool { return r != nil })
				idle := finished(events, rollcallv1.FinishReason_FINISH_REASON_IDLE)
				if returned > 0 || idle != 2 || count(events, (*rollcallv1.Event).GetRunFinished, func(f *rollcallv1.RunFinished) bool { return f != nil }) != idle {
					t.Errorf("%d times mail was handed back, %d runs ended by themselves\n%s", returned, idle, c.story())
				}
				c.fenced(t)
				once(t, events)
				checkCalls(t, c.world, events, 0)
			})
		})
	}
}

// Elsewhere a history that was too long ended the run. Here a conversation of
// 60,000 events changes hands in the middle of a step: who takes over reads no
// more than what came after the snapshot.
func TestB25LongHistoryMoves(t *testing.T) { synctest.Test(t, longHistory) }

func longHistory(t *testing.T) {
	commits := 2_000
	if os.Getenv("ROLLCALL_SOAK") != "" {
		commits = 20_000
	}
	const every, turn = 200, 20
	gate := make(chan struct{})
	settleLetters(t)
	c := &cluster{world: &world{t: t, disk: memory.New(), answers: map[string]chan *rollcallv1.Answer{}, brain: &brain{
		think: func(ctx context.Context, _ model.Caller, r request) (model.Reply, error) {
			if r.has("take your time") {
				return say("well"), until(ctx, gate)
			}
			return say("well"), nil
		},
	}}}
	t.Cleanup(c.disk.Close)
	at, events := eventstore.Position{}, 0
	rules := &domain.Rules{Contracts: contract.All(), DefaultModel: "test"}
	domaintest.Long(t, key, rules, commits, func(commit *rollcallv1.Commit) {
		r, err := c.disk.Append(t.Context(), key, at, commit)
		if err != nil {
			t.Fatal(err)
		}
		at, events = r.Position(), events+len(commit.GetEvents())
	})
	read := map[string]*counted{}
	c.seen = func(name string) eventstore.Store {
		read[name] = &counted{Store: c.disk}
		return read[name]
	}
	c.warm = -1
	first := c.up("n1")
	c.do(post("lead", "leave a snapshot", 0))
	c.quiet()
	if n := read["n1"].loaded.Load(); n != int64(commits) {
		t.Errorf("without a snapshot %d commits were read, want %d", n, commits)
	}
	second := c.up("n2")
	defer second.down()
	defer first.down()
	c.do(post("lead", "take your time", 0))
	c.until("it is at it", func(*domain.State) bool { return len(c.brain.record()) == 2 })
	first, second = c.byOwner(first, second)
	read[second.name].loaded.Store(0)
	first.store.Crash()
	began := time.Now()
	c.until("the other asks", func(*domain.State) bool { return c.called(second.name) == 1 })
	if took := time.Since(began); took > eventstore.LeaseTTL+2*time.Second {
		t.Errorf("it was taken over after %v", took)
	}
	if n := read[second.name].loaded.Load(); n > every+turn {
		t.Errorf("who takes over reads %d of %d commits", n, commits)
	}
	close(gate)
	s := c.quiet()
	t.Logf("%d events in %d commits; who takes over reads %d", events, commits, read[second.name].loaded.Load())
	if s.Lead().Held || resumed(c.events()) != 1 || !strings.HasSuffix(c.last(), "well") {
		t.Errorf("taken up %d times, the end is %q", resumed(c.events()), c.last())
	}
}

// byOwner tells who has the partition.
func (c *cluster) byOwner(a, b *peer) (owner, other *peer) {
	if c.owner() == b.name {
		return b, a
	}
	return a, b
}

// last is the Lead's last word.
func (w *world) last() (text string) {
	for _, e := range w.events() {
		if r := e.GetLeadReplied(); r != nil {
			text = r.GetText().GetText()
		}
	}
	return text
}
