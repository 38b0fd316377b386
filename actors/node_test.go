package actors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/model"
	"github.com/rollcall-dev/rollcall/internal/tool"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func count[T any](events []*rollcallv1.Event, pick func(*rollcallv1.Event) T, ok func(T) bool) (n int) {
	for _, e := range events {
		if ok(pick(e)) {
			n++
		}
	}
	return n
}

func finished(events []*rollcallv1.Event, reason rollcallv1.FinishReason) int {
	return count(events, (*rollcallv1.Event).GetRunFinished, func(f *rollcallv1.RunFinished) bool { return f.GetReason() == reason })
}

func resumed(events []*rollcallv1.Event) int {
	return count(events, (*rollcallv1.Event).GetRunResumed, func(r *rollcallv1.RunResumed) bool { return r != nil })
}

// An operator's message aborts the Lead's model call and is read by the next
// run together with what was returned.
func TestInterruptionAbortsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		aborted := 0
		w := newWorld(t, func(ctx context.Context, _ model.Caller, r request) (model.Reply, error) {
			if r.has("second") {
				if !r.has("first") {
					return say("the first word is lost"), nil
				}
				return say("heard both"), nil
			}
			<-ctx.Done()
			aborted++
			return model.Reply{}, ctx.Err()
		})
		n, _ := w.node()
		defer w.close(n)
		w.open("first")
		w.until("the call", func(*domain.State) bool { return w.brain.count("Lead") == 1 })
		w.do(post("lead", "second", rollcallv1.MailMode_MAIL_MODE_UNSPECIFIED))
		w.quiet()
		if aborted != 1 || w.brain.count("Lead") != 2 {
			t.Errorf("aborted %d, called %d", aborted, w.brain.count("Lead"))
		}
		events := w.events()
		if got := finished(events, rollcallv1.FinishReason_FINISH_REASON_INTERRUPTED); got != 1 {
			t.Errorf("%d runs interrupted", got)
		}
		if !strings.Contains(w.story(), "heard both") {
			t.Error(w.story())
		}
	})
}

// A drained node suspends its runs; the next one takes them up.
func TestDrainSuspendsAndTheNextStartGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := true
		w := newWorld(t, func(ctx context.Context, _ model.Caller, _ request) (model.Reply, error) {
			if block {
				<-ctx.Done()
				return model.Reply{}, ctx.Err()
			}
			return say("done"), nil
		})
		n, _ := w.node()
		w.open("work")
		w.until("the call", func(*domain.State) bool { return w.brain.count("Lead") == 1 })
		began := time.Now()
		w.close(n)
		if took := time.Since(began); took > time.Second {
			t.Errorf("draining took %s: it waited for the model", took)
		}
		if got := count(w.events(), (*rollcallv1.Event).GetRunSuspended, func(s *rollcallv1.RunSuspended) bool { return s != nil }); got != 1 {
			t.Fatalf("%d runs suspended\n%s", got, w.story())
		}
		block = false
		n, _ = w.node()
		defer w.close(n)
		w.quiet()
		if resumed(w.events()) != 1 || w.brain.count("Lead") != 2 {
			t.Errorf("resumed %d, called %d", resumed(w.events()), w.brain.count("Lead"))
		}
	})
}

// restart-roll-no-call, the actors' part: idle and waiting members answer the
// roll after a restart, with the same state, and no model is called.
func TestRestartRollNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, storyBrain)
		play(w, 0)
		before := len(w.brain.record())
		hashes := func() map[string]string {
			n, _ := w.node()
			defer w.close(n)
			got, err := n.Roll(t.Context(), domain.Key{Tenant: key.Tenant})
			if err != nil {
				t.Fatal(err)
			}
			out := map[string]string{}
			for _, p := range got {
				out[p.Member] = fmt.Sprint(p.Name, " ", p.Status, " ", p.Version, " ", p.StateHash)
			}
			return out
		}
		one, two := hashes(), hashes()
		if len(one) != 3 || fmt.Sprint(one) != fmt.Sprint(two) {
			t.Errorf("roll %v, then %v", one, two)
		}
		if after := len(w.brain.record()); after != before {
			t.Errorf("%d model calls by restarting", after-before)
		}
	})
}

// A tool that panics fails its run and takes nothing else down; a panic in the
// model client too.
func TestPanicFailsTheRunOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(_ context.Context, _ model.Caller, r request) (model.Reply, error) {
			switch {
			case r.has("model, panic"):
				panic("the model client is broken")
			case r.has("tool, panic"):
				return calls(call("explode", `{}`)), nil
			}
			return say("well"), nil
		})
		w.extra = []tool.Tool{explosive{}}
		n, _ := w.node()
		defer w.close(n)
		w.open("tool, panic")
		w.quiet()
		w.do(post("lead", "model, panic", rollcallv1.MailMode_MAIL_MODE_UNSPECIFIED))
		w.quiet()
		if got := finished(w.events(), rollcallv1.FinishReason_FINISH_REASON_FAILED); got != 2 {
			t.Errorf("%d runs failed, want 2\n%s", got, w.story())
		}
	})
}

type explosive struct{}

func (explosive) Definition() *rollcallv1.ToolDefinition {
	return &rollcallv1.ToolDefinition{Name: "explode", Description: "panics", Schema: `{"type":"object"}`}
}

func (explosive) Call(context.Context, domain.ToolPlan, json.RawMessage) (tool.Outcome, error) {
	panic("boom")
}

// A transient failure is tried again after its Retry-After, a final one fails
// the run at once; its mail is unread again and retry makes it due.
func TestModelFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var err error
		w := newWorld(t, func(context.Context, model.Caller, request) (model.Reply, error) {
			return say("back"), err
		})
		n, _ := w.node()
		defer w.close(n)
		err = &model.Error{Code: "model-rate-limited", Transient: true, RetryAfter: 7 * time.Second, What: "429"}
		began := time.Now()
		w.open("hi")
		w.until("two calls", func(*domain.State) bool {
			if len(w.brain.record()) == 1 {
				err = nil
			}
			return len(w.brain.record()) == 2
		})
		if d := time.Since(began); d < 7*time.Second || d > 9*time.Second {
			t.Errorf("tried again after %s, want 7s", d)
		}
		w.quiet()
		err = &model.Error{Code: "model-key-refused", What: "401"}
		w.do(post("lead", "again", rollcallv1.MailMode_MAIL_MODE_UNSPECIFIED))
		s := w.quiet()
		if len(w.brain.record()) != 3 || !s.Members[0].Held || len(s.Members[0].Unread) != 1 {
			t.Fatalf("%d calls, held %v, unread %d", len(w.brain.record()), s.Members[0].Held, len(s.Members[0].Unread))
		}
		err = nil
		w.do(&rollcallv1.Command{Kind: &rollcallv1.Command_RetryMember{RetryMember: &rollcallv1.RetryMember{}}})
		s = w.quiet()
		if len(w.brain.record()) != 4 || len(s.Members[0].Unread) != 0 {
			t.Errorf("%d calls, unread %d", len(w.brain.record()), len(s.Members[0].Unread))
		}
	})
}

// A message is refused with what to do, and goes to the dead letters when
// nobody waits for the answer.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(context.Context, model.Caller, request) (model.Reply, error) { return say("hello"), nil })
		n, _ := w.node()
		defer w.close(n)
		a := <-w.ask(post("lead", "anybody there?", 0))
		if a.GetRefusal().GetCode() != "conversation-not-found" || a.GetRefusal().GetTry() == "" {
			t.Errorf("unknown conversation: %v", a)
		}
		w.open("hi")
		w.quiet()
		if a := <-w.ask(post("m7", "hello", 0)); a.GetRefusal().GetCode() == "" || !strings.Contains(a.GetRefusal().String(), "lead") {
			t.Errorf("unknown member: %v", a)
		}
		for range 2 { // the same id again does nothing
			cmd := post("lead", "once", 0)
			cmd.Id = "same"
			w.do(cmd)
		}
		w.quiet()
		if n := strings.Count(w.story(), `text:"once"`); n != 1 {
			t.Errorf("delivered %d times", n)
		}
	})
}

// takeover, the actors' part: while another node holds the partition nothing
// is done here; when its lease lapses, its open run goes on here, and the old
// node, awake again, leaves no trace.
func TestTakeoverLeavesNoTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		w := newWorld(t, func(ctx context.Context, _ model.Caller, _ request) (model.Reply, error) {
			select {
			case <-answer:
				return say("answered"), nil
			case <-ctx.Done():
				return model.Reply{}, ctx.Err()
			}
		})
		n, old := w.node()
		w.open("work")
		w.until("the call", func(*domain.State) bool { return w.brain.count("Lead") == 1 })
		old.Crash() // it reaches the storage no more, but its goroutines live on
		second, _ := w.named("n2")
		defer w.close(second)
		w.until("taken over", func(*domain.State) bool { return resumed(w.events()) == 1 })
		close(answer)
		w.quiet()
		w.close(n)
		events := w.events()
		if got := count(events, (*rollcallv1.Event).GetModelReplied, func(r *rollcallv1.ModelReplied) bool { return r != nil }); got != 1 {
			t.Errorf("%d replies recorded\n%s", got, w.story())
		}
		justified(t, events, len(w.brain.record()))
	})
}

// A conversation that crashes while it decides is rebuilt from the log, and
// none of the commands that waited is lost or doubled (B60). One that crashes
// every time is set aside and holds its messages.
func TestCrashingConversationLosesNoCommand(t *testing.T) {
	for _, crashes := range []int{1, 2, 1000} {
		t.Run(fmt.Sprint(crashes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(_ context.Context, _ model.Caller, r request) (model.Reply, error) {
					if r.has("first") && r.called("task_list") == 0 {
						return calls(call("task_list", `{}`)), nil
					}
					return say("ok"), nil
				})
				broken := &crashingContract{left: crashes}
				w.wrap = func(c domain.Contract) domain.Contract { broken.Contract = c; return broken }
				n, _ := w.node()
				defer w.close(n)
				w.open("first")
				var answers []<-chan *rollcallv1.Answer
				for i := range 20 {
					answers = append(answers, w.ask(post("lead", fmt.Sprintf("word %d.", i), rollcallv1.MailMode_MAIL_MODE_QUEUE)))
				}
				if crashes >= 3 {
					w.until("set aside", func(*domain.State) bool { return len(n.Quarantined()) == 1 })
					broken.mend()
					w.do(&rollcallv1.Command{Kind: &rollcallv1.Command_RetryMember{RetryMember: &rollcallv1.RetryMember{}}})
				}
				for _, a := range answers {
					if r := (<-a).GetRefusal(); r != nil {
						t.Errorf("refused: %v", r)
					}
				}
				w.quiet()
				story := w.story()
				for i := range 20 {
					if n := strings.Count(story, fmt.Sprintf(`text:"word %d."`, i)); n != 1 {
						t.Errorf("word %d delivered %d times", i, n)
					}
				}
			})
		})
	}
}

// crashingContract panics at its next calls.
type crashingContract struct {
	domain.Contract
	mu   sync.Mutex
	left int
}

func (c *crashingContract) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = 0
}

func (c *crashingContract) Call(d *domain.Decision, call domain.Call) (string, *domain.Refusal) {
	c.mu.Lock()
	c.left--
	crash := c.left >= 0
	c.mu.Unlock()
	if crash {
		panic("the contract is broken")
	}
	return c.Contract.Call(d, call)
}
