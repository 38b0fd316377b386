package actors_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/model"
)

// splitOff is a store whose leader answers from the past until somebody asks for
// the present.
type splitOff struct {
	*blind
	asked atomic.Int64
	// gaps is how often a load finds less than it knows of.
	gaps atomic.Int64
}

func (s *splitOff) Current(context.Context) error {
	s.asked.Add(1)
	s.from.Store(0)
	return nil
}

func (s *splitOff) Load(ctx context.Context, k domain.Key, after eventstore.Position, fn func(eventstore.Recorded) error) error {
	if s.gaps.Add(-1) >= 0 {
		return domain.ErrGap
	}
	return s.blind.Load(ctx, k, after, fn)
}

// Nothing is refused on the ground of the past: before a new owner refuses for
// the first time it asks for the present, and once is enough.
func TestNothingIsRefusedByThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(context.Context, model.Caller, request) (model.Reply, error) { return say("ok"), nil })
		n := w.on(w.disk)
		w.open("go")
		w.quiet()
		w.close(n)

		store := &splitOff{blind: &blind{Store: w.disk}}
		store.from.Store(1) // nothing of the conversation is seen
		w.warm = -1         // nor is it rebuilt in the background, which reads otherwise
		n = w.on(store)
		defer w.close(n)
		if r := (<-w.ask(post("lead", "hello", 0))).GetRefusal(); r != nil {
			t.Errorf("refused by the past: %v", r)
		}
		w.quiet()
		for range 2 {
			if r := (<-w.ask(post("nobody", "hello", 0))).GetRefusal(); r == nil {
				t.Error("a message to nobody is not refused")
			}
		}
		if n := store.asked.Load(); n != 1 {
			t.Errorf("the present was asked for %d times", n)
		}
	})
}

// A log that lacks something for a moment is not set aside for ever.
func TestAGapIsLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(context.Context, model.Caller, request) (model.Reply, error) { return say("ok"), nil })
		n := w.on(w.disk)
		w.open("go")
		w.quiet()
		w.close(n)

		store := &splitOff{blind: &blind{Store: w.disk}}
		store.gaps.Store(3)
		n = w.on(store)
		defer w.close(n)
		select {
		case a := <-w.ask(post("lead", "hello", 0)):
			if r := a.GetRefusal(); r != nil {
				t.Error(r)
			}
		case <-time.After(time.Minute):
			t.Error("no answer in a minute: the conversation was set aside")
		}
		w.quiet()
	})
}

// A claim that begins with a refusal reads the log again, and keeps nothing of
// what it put away for that: no snapshot says that the conversation is empty.
func TestARefusalFirstKeepsTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(context.Context, model.Caller, request) (model.Reply, error) { return say("ok"), nil })
		n := w.on(w.disk)
		w.open("go")
		w.quiet()
		w.close(n)

		w.snapshotEvery = 1 // one is overdue when the log is read
		n = w.on(w.disk)
		if r := (<-w.ask(post("nobody", "hello", 0))).GetRefusal(); r == nil {
			t.Error("a message to nobody is not refused")
		}
		w.quiet()
		w.close(n)
		if s := w.state(); !s.Opened {
			t.Fatal("the snapshot holds an empty conversation")
		}
		n = w.on(w.disk)
		defer w.close(n)
		w.do(post("lead", "hello", 0))
		w.quiet()
	})
}
