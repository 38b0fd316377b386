package actors_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/rollcall-dev/rollcall/actors"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/faulty"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// course is the story on its way, with the node that plays it now. When a node
// crashes another one takes over, and whatever was asked and not answered is
// asked again, as a client would.
type course struct {
	*world
	node  *actors.Node
	store *faulty.Store
	// next are the faults of the nodes to come; after them nodes are sound.
	next []faulty.Fault
	// away is how long nobody is there after a crash.
	away time.Duration
	// crashed counts the nodes lost so far.
	crashed int
	// calling counts the open calls to the Lead.
	calling atomic.Int64
}

// play drives the story to its end. The first fault is the first node's, the
// second that of the node which takes over, and so on.
func play(w *world, away time.Duration, faults ...faulty.Fault) *course {
	w.t.Helper()
	w.snapshotEvery = 7
	w.warm = -1 // nothing is found again but by its anchor
	c := &course{world: w, next: faults, away: away}
	think := w.brain.think
	w.brain.think = func(ctx context.Context, from model.Caller, r request) (model.Reply, error) {
		if from.Member == "Lead" {
			c.calling.Add(1)
			defer c.calling.Add(-1)
		}
		return think(ctx, from, r)
	}
	c.fresh()
	c.say(openCommand(objective))
	c.tellNobody()
	c.until("the Lead is called", c.leadIsCalled)
	c.restart()
	c.until("the Lead is called again", c.leadIsCalled)
	c.arm()
	more := post("lead", hurry+"\n"+strings.Repeat("With care. ", eventstore.InlineBody/10), rollcallv1.MailMode_MAIL_MODE_UNSPECIFIED)
	more.Id = "more"
	c.say(more)
	c.until("the story ends", func(s *domain.State) bool {
		return len(domain.Due(s)) == 0 && len(s.Timers) == 0 && len(s.OpenTasks()) == 0 && w.disk.Pending(key.Partition()) == 0
	})
	w.close(c.node)
	c.count()
	return c
}

// fresh starts a node that has seen nothing.
func (c *course) fresh() {
	var faults []faulty.Fault
	if len(c.next) > 0 {
		faults, c.next = c.next[:1], c.next[1:]
	}
	c.node, c.store = c.world.node(faults...)
}

// count reports whether the node has crashed since it was looked at last.
func (c *course) count() bool {
	select {
	case <-c.store.Crashed():
		c.crashed++
		return true
	default:
		return false
	}
}

func (c *course) takeOver() {
	if c.count() {
		c.world.close(c.node)
		<-time.After(c.away)
		c.fresh()
	}
}

// restart is a stop in good order: the next node has the same name, and the
// same faults ahead.
func (c *course) restart() {
	c.world.close(c.node)
	if c.count() {
		<-time.After(c.away)
		c.fresh()
		return
	}
	c.node = c.seen("n1", c.store)
}

// until takes over from crashed nodes while it waits.
func (c *course) until(what string, ok func(*domain.State) bool) {
	c.t.Helper()
	c.world.until(what, func(s *domain.State) bool {
		c.takeOver()
		return ok(s)
	})
}

// say asks until it is answered, by the node's own service.
func (c *course) say(cmd *rollcallv1.Command) {
	c.t.Helper()
	for {
		answer, err := c.through(c.store, cmd)
		if err != nil {
			c.takeOver()
			continue
		}
		select {
		case a := <-answer:
			if r := a.GetRefusal(); r != nil {
				c.t.Fatalf("refused: %v", r)
			}
			return
		case <-c.store.Crashed():
			c.takeOver()
		case <-time.After(5 * time.Second):
			// the answer was lost; ask again
		}
	}
}

// tellNobody sends what can never succeed and whose sender does not wait for
// an answer: it ends in the dead letters.
func (c *course) tellNobody() {
	c.t.Helper()
	lost := post("m9", "is anybody there?", rollcallv1.MailMode_MAIL_MODE_QUEUE)
	lost.Id = "lost"
	if err := c.publish(c.disk, lost, ""); err != nil {
		c.t.Fatal(err)
	}
	c.until("it is a dead letter", func(*domain.State) bool { return len(c.dead()) > 0 })
}

func (c *course) dead() []eventstore.DeadLetter {
	c.t.Helper()
	letters, err := c.disk.DeadLetters(c.t.Context(), 10)
	if err != nil {
		c.t.Fatal(err)
	}
	return letters
}

// leadIsCalled: a call to the Lead is open.
func (c *course) leadIsCalled(s *domain.State) bool {
	return s.Opened && s.Lead().Run != nil && s.Lead().Run.Phase == domain.Calling && c.calling.Load() > 0
}

// arm puts a timer into the log. No command of this version arms one, but a
// newer one's may stand in a log that this one takes over: the commit is that
// of another writer, so the node also meets a conflict.
func (c *course) arm() {
	c.t.Helper()
	s, at, err := actors.Load(c.t.Context(), c.disk, key)
	if err != nil {
		c.t.Fatal(err)
	}
	_, err = c.disk.Append(c.t.Context(), key, at, &rollcallv1.Commit{
		Node: "n1", Epoch: s.Epoch, EvolveVersion: domain.EvolveVersion, Time: timestamppb.Now(),
		Events: []*rollcallv1.Event{{Kind: &rollcallv1.Event_TimerArmed{TimerArmed: &rollcallv1.TimerArmed{
			Timer: "dry", Due: timestamppb.New(time.Now().Add(untilDry)), Purpose: dry, Subject: "lead",
		}}}},
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// untilDry is when the timer of the story is due.
const untilDry = 10 * time.Second

// rests: a node that is started on what the story came to has nothing to do.
func rests(t *testing.T, w *world, members int) {
	t.Helper()
	before, version := len(w.brain.record()), w.state().Version
	w.warm = 0
	n, _ := w.node()
	if got, err := n.Roll(t.Context(), key); err != nil || len(got) != members {
		t.Errorf("the roll: %v, %v", got, err)
	}
	<-time.After(time.Minute)
	w.close(n)
	if s := w.state(); len(w.brain.record()) != before || s.Version != version {
		t.Errorf("a restart at the end made %d calls, and commits from %d to %d", len(w.brain.record())-before, version, s.Version)
	}
}
