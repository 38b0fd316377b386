package actors_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// waits are the suspensions of a log, and how many of its runs went on by
// themselves.
func waits(events []*rollcallv1.Event) (reasons []string, wentOn int) {
	for _, e := range events {
		if s := e.GetRunSuspended(); s != nil {
			reasons = append(reasons, s.GetReason())
		}
		if e.GetRunResumed().GetWaited() {
			wentOn++
		}
	}
	return reasons, wentOn
}

// attempts are the model calls that the log started.
func attempts(events []*rollcallv1.Event) int {
	return count(events, (*rollcallv1.Event).GetModelCallStarted, func(c *rollcallv1.ModelCallStarted) bool { return c != nil })
}

func TestARunThatWaitsForASlotIsSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w := newWorld(t, func(ctx context.Context, _ model.Caller, r request) (model.Reply, error) {
			if r.has("begin") && r.called("team_create") == 0 {
				return calls(call("team_create", `{"name":"crew"}`), call("team_member_add", `{"name":"A","initial_prompt":"work"}`)), nil
			}
			select {
			case <-release:
				return say("done"), nil
			case <-ctx.Done():
				return model.Reply{}, ctx.Err()
			}
		})
		w.runs = 1
		n, _ := w.node()
		defer w.close(n)
		w.open("begin")
		s := w.until("one of two runs is suspended", func(*domain.State) bool {
			reasons, _ := waits(w.events())
			return len(reasons) == 1
		})
		suspended := slices.IndexFunc(s.Members, func(m *domain.Member) bool { return m.Run.Suspended })
		if suspended < 0 || len(w.brain.record()) != 2 {
			t.Fatalf("suspended is %d, %d calls\n%s", suspended, len(w.brain.record()), w.story())
		}
		close(release)
		w.quiet()
		reasons, wentOn := waits(w.events())
		if len(reasons) != 1 || reasons[0] != "all model calls of this node are in use" || wentOn != 1 {
			t.Errorf("suspended by %q, %d went on", reasons, wentOn)
		}
		if calls, started := len(w.brain.record()), attempts(w.events()); calls != 3 || started != 3 {
			t.Errorf("%d calls, %d started, want 3", calls, started)
		}
	})
}

// held is a server that wants no requests for a while.
func held(w *world, d time.Duration) {
	until := time.Now().Add(d)
	w.brain.held = func() time.Duration { return max(0, time.Until(until)) }
	w.brain.pass = func(ctx context.Context) error {
		select {
		case <-time.After(time.Until(until)):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func answering(context.Context, model.Caller, request) (model.Reply, error) { return say("done"), nil }

func TestARunThatWaitsAtTheGateIsSuspended(t *testing.T) {
	suspended := func(s *domain.State) bool { return s.Opened && s.Lead().Run != nil && s.Lead().Run.Suspended }
	story := func(name string, hold time.Duration, test func(t *testing.T, w *world)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, answering)
				held(w, hold)
				test(t, w)
			})
		})
	}
	story("it goes on by itself", time.Hour, func(t *testing.T, w *world) {
		n, _ := w.node()
		defer w.close(n)
		w.open("work")
		w.until("suspended", suspended)
		if calls := len(w.brain.record()); calls != 0 {
			t.Fatalf("%d calls", calls)
		}
		<-time.After(time.Hour)
		w.quiet()
		reasons, wentOn := waits(w.events())
		if len(reasons) != 1 || reasons[0] != "the model server wants no requests yet" || wentOn != 1 || len(w.brain.record()) != 1 {
			t.Errorf("suspended by %q, %d went on, %d calls", reasons, wentOn, len(w.brain.record()))
		}
	})
	story("a short wait is not worth a word", patienceShort, func(t *testing.T, w *world) {
		n, _ := w.node()
		defer w.close(n)
		w.open("work")
		w.quiet()
		if reasons, _ := waits(w.events()); len(reasons) != 0 || len(w.brain.record()) != 1 {
			t.Errorf("suspended by %q, %d calls", reasons, len(w.brain.record()))
		}
	})
	story("a lost node is no loss to it", time.Hour, func(t *testing.T, w *world) {
		n, store := w.node()
		w.open("work")
		w.until("suspended", suspended)
		store.Crash()
		w.close(n)
		n, _ = w.node()
		defer w.close(n)
		<-time.After(time.Hour)
		s := w.quiet()
		if s.Lead().Run != nil || len(w.brain.record()) != 1 {
			t.Errorf("%d calls\n%s", len(w.brain.record()), w.story())
		}
		if lost := count(w.events(), (*rollcallv1.Event).GetRunResumed, func(r *rollcallv1.RunResumed) bool { return r.GetAttempt() > 0 }); lost != 0 {
			t.Errorf("%d runs are counted as lost", lost)
		}
	})
	story("a pause parks it without a call", time.Hour, func(t *testing.T, w *world) {
		n, _ := w.node()
		defer w.close(n)
		w.open("work")
		w.until("suspended", suspended)
		w.do(pauseCommand())
		<-time.After(2 * time.Hour)
		if s := w.quiet(); s.Lead().Run.Phase != domain.Parked || len(w.brain.record()) != 0 {
			t.Fatalf("it is %s, %d calls", s.Lead().Run.Phase, len(w.brain.record()))
		}
		w.do(resumeCommand())
		if s := w.quiet(); s.Lead().Run != nil || len(w.brain.record()) != 1 {
			t.Errorf("%d calls\n%s", len(w.brain.record()), w.story())
		}
	})
	story("the operator interrupts it", time.Hour, func(t *testing.T, w *world) {
		n, _ := w.node()
		defer w.close(n)
		w.open("work")
		w.until("suspended", suspended)
		w.do(interruptCommand("lead"))
		<-time.After(2 * time.Hour)
		if s := w.quiet(); s.Lead().Run != nil || len(w.brain.record()) != 0 {
			t.Errorf("%d calls\n%s", len(w.brain.record()), w.story())
		}
	})
}

// patienceShort is less than a run waits before the log hears of it.
const patienceShort = 900 * time.Millisecond
