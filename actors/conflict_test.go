package actors_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/rollcall-dev/rollcall/actors"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// another writes a commit behind the back of the node that owns the conversation.
func (w *world) another() {
	w.t.Helper()
	s, at, err := actors.Load(w.t.Context(), w.disk, key)
	if err == nil {
		_, err = w.disk.Append(w.t.Context(), key, at, &rollcallv1.Commit{
			Node: "n1", Epoch: s.Epoch, EvolveVersion: domain.EvolveVersion, Time: timestamppb.Now(),
			Events: []*rollcallv1.Event{{Kind: &rollcallv1.Event_CommandRefused{CommandRefused: &rollcallv1.CommandRefused{Command: "x"}}}},
		})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// A stop in good order suspends the open runs although another writer was
// first: they are not counted as lost.
func TestDrainSuspendsAfterAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(ctx context.Context, _ model.Caller, _ request) (model.Reply, error) {
			<-ctx.Done()
			return model.Reply{}, ctx.Err()
		})
		n, _ := w.node()
		w.open("work")
		w.until("the call", func(*domain.State) bool { return w.brain.count("Lead") == 1 })
		w.another()
		w.close(n)
		if got := count(w.events(), (*rollcallv1.Event).GetRunSuspended, func(s *rollcallv1.RunSuspended) bool { return s != nil }); got != 1 {
			t.Errorf("%d runs suspended\n%s", got, w.story())
		}
	})
}

// blind does not see the newest commit for a while, though the log refuses to
// append before it.
type blind struct {
	eventstore.Store
	from    atomic.Uint64
	appends atomic.Int64
}

func (b *blind) Append(ctx context.Context, k domain.Key, after eventstore.Position, c *rollcallv1.Commit) (eventstore.Recorded, error) {
	b.appends.Add(1)
	return b.Store.Append(ctx, k, after, c)
}

func (b *blind) Load(ctx context.Context, k domain.Key, after eventstore.Position, fn func(eventstore.Recorded) error) error {
	return b.Store.Load(ctx, k, after, func(r eventstore.Recorded) error {
		if from := b.from.Load(); from > 0 && r.Commit.GetVersion() >= from {
			return nil
		}
		return fn(r)
	})
}

// Who cannot see what is before it waits for it, and does not try as fast as it
// can.
func TestConflictThatIsNotSeenIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(context.Context, model.Caller, request) (model.Reply, error) { return say("ok"), nil })
		store := &blind{Store: w.disk}
		n := w.on(store)
		defer w.close(n)
		w.open("go")
		version := w.quiet().Version
		w.another()
		store.from.Store(version + 1)
		before := store.appends.Load()
		answer := w.ask(post("lead", "hello", 0))
		<-time.After(time.Minute)
		if tries := store.appends.Load() - before; tries < 2 || tries > 60 || len(answer) > 0 {
			t.Errorf("%d tries in a minute, %d answers", tries, len(answer))
		}
		store.from.Store(0)
		if r := (<-answer).GetRefusal(); r != nil {
			t.Error(r)
		}
		w.quiet()
	})
}
