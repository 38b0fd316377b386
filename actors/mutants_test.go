package actors_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/rollcall-dev/rollcall/actors"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/model"
	"github.com/rollcall-dev/rollcall/internal/tool"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Tests that seeded faults were the first to ask for: docs/mutants.md.

// pending counts the messages in the inbox when all has come to a halt.
func (w *world) pending() int {
	synctest.Wait()
	return w.disk.Pending(key.Partition())
}

// Until a commit is durable its message stays in the inbox, nobody is answered
// and no model is called.
func TestNothingHappensBeforeDurability(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(context.Context, model.Caller, request) (model.Reply, error) { return say("ok"), nil })
		store := &moody{Store: w.disk}
		n := w.on(store)
		defer w.close(n)
		w.open("first")
		w.quiet()
		store.slowAppend.Store(true)
		answer := w.ask(post("lead", "second", rollcallv1.MailMode_MAIL_MODE_QUEUE))
		<-time.After(time.Second)
		if got := w.pending(); got != 1 {
			t.Errorf("%d messages in the inbox, want the one that is not durable", got)
		}
		select {
		case a := <-answer:
			t.Errorf("answered: %v", a)
		default:
		}
		if got := w.brain.count("Lead"); got != 1 {
			t.Errorf("the model was called %d times, want the first run's call", got)
		}
		store.slowAppend.Store(false)
		if r := (<-answer).GetRefusal(); r != nil {
			t.Errorf("refused: %v", r)
		}
		w.quiet()
		if got := w.brain.count("Lead"); got != 2 {
			t.Errorf("the model was called %d times in all", got)
		}
	})
}

// While a call is open the conversation's newest message stays in the inbox,
// and no other one: the next owner gets it, and with it the work.
func TestTheNewestMessageIsTheAnchor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		w := newWorld(t, func(ctx context.Context, _ model.Caller, _ request) (model.Reply, error) {
			select {
			case <-end:
				return say("ok"), nil
			case <-ctx.Done():
				return model.Reply{}, ctx.Err()
			}
		})
		n, _ := w.node()
		w.open("go")
		for _, text := range []string{"one", "two", "three"} {
			cmd := post("lead", text, rollcallv1.MailMode_MAIL_MODE_QUEUE)
			cmd.Id = text
			w.do(cmd)
			if got := w.pending(); got != 1 {
				t.Errorf("%d messages in the inbox after %q, want one", got, text)
			}
		}
		w.close(n)
		if got := w.given(); got != "three" {
			t.Errorf("the next owner is given %q, want the newest message", got)
		}
		close(end)
		n, _ = w.node()
		defer w.close(n)
		w.quiet()
	})
}

// given is the id of the first message that the next owner of the partition is
// given, which lets go of it again.
func (w *world) given() string {
	w.t.Helper()
	lease, err := w.disk.Claim(w.t.Context(), "n2", key.Partition())
	if err != nil {
		w.t.Error(err)
		return ""
	}
	defer func() {
		if err := w.disk.Release(w.t.Context(), lease); err != nil {
			w.t.Error(err)
		}
	}()
	r, err := w.disk.Receive(w.t.Context(), lease)
	if err != nil {
		w.t.Error(err)
		return ""
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	d, err := r.Next(ctx)
	if err != nil {
		w.t.Error(err)
		return ""
	}
	return d.Envelope().Header[eventstore.HeaderID]
}

// noTimers is a store that takes no timer until it is mended.
type noTimers struct {
	eventstore.Store
	mended atomic.Bool
	asked  atomic.Int64
}

func (s *noTimers) ArmTimer(ctx context.Context, k domain.Key, timer string, due time.Time) error {
	if s.asked.Add(1); !s.mended.Load() {
		return errors.New("not now")
	}
	return s.Store.ArmTimer(ctx, k, timer, due)
}

// A message stays in the inbox until the store has the timers that the state
// has: after a crash its redelivery arms them.
func TestAnchorStaysUntilTheTimerIsArmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(context.Context, model.Caller, request) (model.Reply, error) { return say("ok"), nil })
		store := &noTimers{Store: w.disk}
		n := w.on(store)
		defer w.close(n)
		w.open("go")
		s := w.quiet()
		w.behind("n1", s.Epoch, noon())
		w.do(post("lead", "well?", 0))
		w.until("a timer is asked for, and no call is open", func(s *domain.State) bool { return store.asked.Load() > 1 && len(domain.Due(s)) == 0 })
		if got := w.pending(); got != 1 {
			t.Errorf("%d messages in the inbox, want the one that the timer hangs on", got)
		}
		store.mended.Store(true)
		w.quiet()
	})
}

// noon is a timer that is not due before a test ends.
func noon() *rollcallv1.Event {
	return domain.NewEvent(&rollcallv1.TimerArmed{
		Timer: "noon", Due: timestamppb.New(time.Now().Add(time.Hour)), Purpose: "it is noon", Subject: "lead",
	})
}

// behind appends a commit behind the back of the node that holds the partition.
func (w *world) behind(node string, epoch uint64, e *rollcallv1.Event) {
	w.t.Helper()
	_, at, err := actors.Load(w.t.Context(), w.disk, key)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = w.disk.Append(w.t.Context(), key, at, &rollcallv1.Commit{
		Node: node, Epoch: epoch, EvolveVersion: domain.EvolveVersion, Time: timestamppb.Now(), Events: []*rollcallv1.Event{e},
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// A node that meets a higher epoch in the log drops the partition. When that is
// free it claims it anew, and what it had not done is done.
func TestAHigherEpochInTheLogDropsThePartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(context.Context, model.Caller, request) (model.Reply, error) { return say("ok"), nil })
		n, _ := w.node()
		defer w.close(n)
		w.open("go")
		w.quiet()
		higher, err := w.disk.Claim(t.Context(), "n2", (key.Partition()+1)%domain.Partitions)
		if err != nil {
			t.Fatal(err)
		}
		w.behind("n2", higher.Epoch, noon())
		w.do(post("lead", "are you there?", 0))
		if s := w.quiet(); s.Epoch <= higher.Epoch || w.brain.count("Lead") != 2 {
			t.Errorf("epoch %d after %d, %d calls", s.Epoch, higher.Epoch, w.brain.count("Lead"))
		}
	})
}

// lateAnswers renews at once and tells of it later; in the end not at all.
type lateAnswers struct {
	eventstore.Store
	late    time.Duration
	mute    atomic.Bool
	renewed atomic.Int64
}

func (s *lateAnswers) Renew(ctx context.Context, l eventstore.Lease) error {
	if s.mute.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	err := s.Store.Renew(ctx, l)
	s.renewed.Store(time.Now().UnixNano())
	select {
	case <-time.After(s.late):
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mute.Store(true)
	return err
}

// A lease runs from when its renewal was stored, however late the answer is:
// runs end while it still lasts.
func TestALeaseRunsFromBeforeItWasAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int64
		w := newWorld(t, func(ctx context.Context, _ model.Caller, _ request) (model.Reply, error) {
			<-ctx.Done()
			ended.CompareAndSwap(0, time.Now().UnixNano())
			return model.Reply{}, ctx.Err()
		})
		store := &lateAnswers{Store: w.disk, late: eventstore.LeaseTTL / 2}
		n := w.on(store)
		defer w.close(n)
		w.open("go")
		w.until("the run ends", func(*domain.State) bool { return ended.Load() != 0 })
		if d := time.Duration(ended.Load() - store.renewed.Load()); d > eventstore.LeaseTTL*9/10 {
			t.Errorf("the run went on for %s after the renewal was stored, the lease lasts %s", d, eventstore.LeaseTTL)
		}
		store.mute.Store(false)
	})
}

// unsafe is a tool that is not idempotent and meets a fault of its surroundings.
type unsafe struct{ calls atomic.Int64 }

func (u *unsafe) Definition() *rollcallv1.ToolDefinition {
	return &rollcallv1.ToolDefinition{Name: "transfer", Description: "transfers", Schema: `{"type":"object"}`}
}

func (u *unsafe) Call(context.Context, domain.ToolPlan, json.RawMessage) (tool.Outcome, error) {
	u.calls.Add(1)
	return tool.Outcome{}, errors.New("the bank does not answer")
}

// A tool that is not idempotent and fails is called once: what it did before
// it failed nobody knows.
func TestAToolThatIsNotIdempotentIsCalledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(_ context.Context, _ model.Caller, r request) (model.Reply, error) {
			if r.called("transfer") == 0 {
				return calls(call("transfer", `{}`)), nil
			}
			if !r.has("the bank does not answer") {
				return say("nobody told me"), nil
			}
			return say("told"), nil
		})
		u := &unsafe{}
		w.extra = []tool.Tool{u}
		n, _ := w.node()
		defer w.close(n)
		w.open("go")
		w.quiet()
		if got := u.calls.Load(); got != 1 {
			t.Errorf("called %d times", got)
		}
		if got := finished(w.events(), rollcallv1.FinishReason_FINISH_REASON_FAILED); got != 0 || w.brain.count("Lead") != 2 {
			t.Errorf("%d runs failed, %d calls", got, w.brain.count("Lead"))
		}
	})
}

// What coordination tools do, and the outcomes of their calls, are one commit
// with the reply that asked for it: no crash comes between.
func TestCoordinationIsOneCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(_ context.Context, from model.Caller, r request) (model.Reply, error) {
			if from.Member == "Lead" && r.called("team_create") == 0 {
				return calls(call("team_create", `{"name":"crew"}`), call("team_member_add", `{"name":"Ada","initial_prompt":"rest"}`),
					call("task_create", `{"title":"paint","description":"blue","owner":"user"}`)), nil
			}
			return say("ok"), nil
		})
		n, _ := w.node()
		defer w.close(n)
		w.open("go")
		w.quiet()
		replies := 0
		err := w.disk.Load(t.Context(), key, eventstore.Position{}, func(r eventstore.Recorded) error {
			events := map[string]int{}
			for _, e := range r.Commit.GetEvents() {
				events[domain.EventName(e)]++
				replies += len(e.GetModelReplied().GetCalls())
			}
			done := events["TeamCreated"] + events["MemberAdded"] + events["TaskCreated"]
			if events["ConversationOpened"] > 0 { // the Lead was added by no call
				return nil
			}
			if events["ToolCallFinished"] != done || done > 0 && events["ModelReplied"] == 0 {
				t.Errorf("version %d holds %v", r.Commit.GetVersion(), events)
			}
			return nil
		})
		if err != nil || replies != 3 {
			t.Errorf("%d calls, %v", replies, err)
		}
	})
}
