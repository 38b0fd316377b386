package actors_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/actors"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/model"
	"github.com/rollcall-dev/rollcall/internal/tool"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// ends is a world for ending Ada, m1, while Ben, m2, thinks.
type ends struct {
	*world
	lathe *device
	stop  chan struct{}
	// think is Ada's model.
	think func(context.Context, request) (model.Reply, error)
}

func newEnds(t *testing.T) *ends {
	e := &ends{lathe: newDevice("lathe"), stop: make(chan struct{})}
	e.lathe.stubborn, e.lathe.takes = true, 10*time.Minute
	e.world = newWorld(t, strict(t, func(ctx context.Context, from model.Caller, r request) (model.Reply, error) {
		switch {
		case from.Member == "Ada" && r.has("begin"):
			return e.think(ctx, r)
		case from.Member == "Lead" && r.has("remove Ada") && r.called("team_member_remove") == 0:
			return calls(call("team_member_remove", `{"name":"Ada"}`)), nil
		case from.Member == "Lead" && r.has("dissolve it") && r.called("team_dissolve") == 0:
			return calls(call("team_dissolve", `{}`)), nil
		case from.Member == "Ben" && r.has("think it over"):
			return say("thought over"), until(ctx, e.stop)
		}
		return say("ok"), nil
	}))
	e.extra = []tool.Tool{e.lathe}
	return e
}

func until(ctx context.Context, gate <-chan struct{}) error {
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// phases are the states in which a member may be told to end.
var phases = []struct {
	name  string
	bring func(*ends)
}{
	{"idle", func(*ends) {}},
	{"calling", func(e *ends) {
		e.think = func(ctx context.Context, _ request) (model.Reply, error) {
			<-ctx.Done()
			return model.Reply{}, ctx.Err()
		}
	}},
	{"its model does not heed", func(e *ends) {
		e.think = func(context.Context, request) (model.Reply, error) {
			<-time.After(10 * time.Minute)
			return calls(call("send_message", `{"to":"Lead","text":"too late"}`)), nil
		}
	}},
	{"in a tool", func(e *ends) {
		e.think = func(context.Context, request) (model.Reply, error) {
			return calls(call("lathe", `{}`), call("lathe", `{}`)), nil
		}
	}},
	{"waiting for an answer", func(e *ends) {
		e.think = func(_ context.Context, r request) (model.Reply, error) {
			if r.called("send_message") == 0 {
				return calls(call("send_message", `{"to":"Ben","text":"think it over","wait_for_reply":true}`)), nil
			}
			return say("ok"), nil
		}
	}},
	{"between two attempts", func(e *ends) {
		e.think = func(context.Context, request) (model.Reply, error) {
			return model.Reply{}, &model.Error{Code: "model-rate-limited", Transient: true, RetryAfter: time.Hour, What: "429"}
		}
	}},
	{"failed", func(e *ends) {
		e.think = func(context.Context, request) (model.Reply, error) {
			return model.Reply{}, &model.Error{Code: "model-key-refused", What: "401"}
		}
	}},
}

// Elsewhere a member could be ended only if its model agreed, the end hung with
// a tool that hung, or hit another member. Here whatever the member is doing it
// ends within a second, no model of it is asked, its neighbour's turn goes on, and
// what comes of its work too late leaves no trace.
func TestB15ShutdownInEveryPhase(t *testing.T) {
	ways := map[string]func(*ends){
		"the Lead removes it":    func(e *ends) { e.do(post("lead", "remove Ada", 0)) },
		"the Lead dissolves":     func(e *ends) { e.do(post("lead", "dissolve it", 0)) },
		"the operator dissolves": func(e *ends) { e.do(dissolveCommand()) },
	}
	for _, phase := range phases {
		for way, end := range ways {
			t.Run(phase.name+", "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := newEnds(t)
					n, _ := e.node()
					defer e.close(n)
					e.do(withMembers("go", "Ada", "Ben"))
					e.quiet()
					e.do(post("m2", "think it over", 0))
					phase.bring(e)
					if e.think != nil {
						e.do(post("m1", "begin", 0))
					}
					<-time.After(2 * time.Second)
					asked := e.brain.count("Ada")
					began := time.Now()
					end(e)
					gone := e.until("Ada is gone", func(s *domain.State) bool { return !s.Member("m1").Alive() })
					if took := time.Since(began); took > time.Second {
						t.Errorf("it took %s", took)
					}
					version := gone.Version
					close(e.stop)
					<-time.After(2 * time.Hour) // the tool and the model come to their ends
					s := e.quiet()
					if got := e.brain.count("Ada"); got != asked {
						t.Errorf("Ada's model was asked %d times more", got-asked)
					}
					e.leavesNoTrace(t, "m1", version)
					if len(e.lathe.calls()) > 1 {
						t.Errorf("its next tool was begun")
					}
					if left := len(s.Member("m1").Unread) + len(s.Member("m1").Waits); left > 0 {
						t.Errorf("%d messages and waits are left", left)
					}
					if way == "the Lead removes it" && !strings.Contains(e.story(), "thought over") {
						t.Errorf("its neighbour was stopped too\n%s", e.story())
					}
					if refused := e.heard(e.ask(post("m1", "hello", 0))).GetRefusal(); refused.GetCode() != "member-shut-down" {
						t.Errorf("a word to it is answered %v", refused)
					}
				})
			})
		}
	}
	t.Run("paused, and taken up by another node", func(t *testing.T) {
		for _, bring := range []func(*ends, *actors.Node) *actors.Node{
			func(e *ends, n *actors.Node) *actors.Node { e.do(pauseCommand()); return n },
			func(e *ends, n *actors.Node) *actors.Node { e.close(n); n, _ = e.named("n2"); return n },
		} {
			synctest.Test(t, func(t *testing.T) {
				e := newEnds(t)
				n, _ := e.node()
				e.think = func(ctx context.Context, r request) (model.Reply, error) { return say("never"), until(ctx, nil) }
				e.do(withMembers("go", "Ada", "Ben"))
				e.quiet()
				e.do(post("m1", "begin", 0))
				n = bring(e, n)
				defer func() { e.close(n) }()
				began := time.Now()
				e.do(dissolveCommand())
				if took := time.Since(began); took > 3*time.Second { // the other node waits for the lease
					t.Errorf("it took %s", took)
				}
				s := e.quiet()
				if s.Member("m1").Alive() || s.Member("m1").Run != nil {
					t.Errorf("Ada is %v", s.Member("m1").Status)
				}
			})
		}
	})
}

// leavesNoTrace checks that nothing of the member's is in the log after the
// version.
func (w *world) leavesNoTrace(t *testing.T, member string, version uint64) {
	t.Helper()
	err := w.disk.Load(t.Context(), key, eventstore.Position{}, func(r eventstore.Recorded) error {
		if r.Commit.GetVersion() <= version {
			return nil
		}
		for _, e := range r.Commit.GetEvents() {
			for _, of := range []string{
				e.GetModelReplied().GetMember(), e.GetModelCallStarted().GetMember(), e.GetModelCallFailed().GetMember(), e.GetToolCallStarted().GetMember(),
				e.GetToolCallFinished().GetMember(), e.GetRunStarted().GetMember(), e.GetRunFinished().GetMember(), e.GetMessageDelivered().GetFrom(),
			} {
				if of == member {
					t.Errorf("after its end: %v", e)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Elsewhere a tool was begun although the turn had been cancelled, and each
// interruption left a goroutine behind. Here an interruption meets every moment
// between the reply and the tool: before the reply is decided, in one commit with
// it, and while that is being stored. And a hundred interruptions leave nothing.
func TestB48InterruptedBeforeTheTool(t *testing.T) {
	for _, c := range []struct {
		name          string
		reply, cancel time.Duration // when they come; a commit is stored until 200 ms
		begun         int
	}{
		{"the interruption is decided before the reply", 150 * time.Millisecond, 100 * time.Millisecond, 0},
		{"the reply is decided before the interruption, in one commit", 100 * time.Millisecond, 150 * time.Millisecond, 0},
		{"the interruption comes while the reply is being stored", 300 * time.Millisecond, 350 * time.Millisecond, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lathe, gate := newDevice("lathe"), make(chan struct{})
				w := newWorld(t, strict(t, func(ctx context.Context, _ model.Caller, r request) (model.Reply, error) {
					if r.called("lathe") > 0 || r.has("try again") {
						return say("ok"), nil
					}
					return calls(call("lathe", `{}`)), until(ctx, gate)
				}))
				w.extra = []tool.Tool{lathe}
				n := w.on(&slow{Store: w.disk})
				defer w.close(n)
				w.open("go")
				w.until("the call", func(*domain.State) bool { return w.brain.count("Lead") == 1 })
				<-time.After(time.Second)
				w.ask(post("lead", "wait", rollcallv1.MailMode_MAIL_MODE_QUEUE)) // its commit is stored for 200 ms
				time.AfterFunc(c.reply, func() { close(gate) })
				stopped := make(chan *rollcallv1.Answer, 1)
				time.AfterFunc(c.cancel, func() { stopped <- w.heard(w.ask(interruptCommand("lead"))) })
				<-time.After(10 * time.Second)
				if a := <-stopped; a.GetRefusal() != nil {
					t.Fatalf("the interruption was refused: %v", a)
				}
				if got := len(lathe.calls()); got != c.begun {
					t.Errorf("the tool was begun %d times", got)
				}
				if len(lathe.calls()) != lathe.stopped {
					t.Error("the tool was begun and not stopped")
				}
				if got := finished(w.events(), rollcallv1.FinishReason_FINISH_REASON_INTERRUPTED); got != 1 {
					t.Errorf("%d runs were interrupted\n%s", got, w.story())
				}
				w.do(retryCommand("")) // and the history is one that a server takes
				w.quiet()
			})
		})
	}
	t.Run("a hundred times", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			lathe := newDevice("lathe")
			w := newWorld(t, strict(t, func(ctx context.Context, _ model.Caller, r request) (model.Reply, error) {
				if strings.Count(r.text(), "word ")%2 == 0 {
					<-ctx.Done()
					return model.Reply{}, ctx.Err()
				}
				return calls(call("lathe", `{}`)), nil
			}))
			w.extra = []tool.Tool{lathe}
			n, _ := w.node()
			defer w.close(n)
			w.open("go")
			base := 0
			for i := range 110 {
				w.do(post("lead", fmt.Sprintf("word %d", i), rollcallv1.MailMode_MAIL_MODE_INTERRUPT))
				<-time.After(100 * time.Millisecond)
				if i == 9 { // all that there is to start has started
					base = runtime.NumGoroutine()
				}
			}
			w.do(interruptCommand("lead"))
			<-time.After(time.Second)
			synctest.Wait()
			if got := runtime.NumGoroutine(); got > base+2 {
				stacks := make([]byte, 1<<20)
				t.Errorf("%d goroutines, %d after ten interruptions\n%s", got, base, stacks[:runtime.Stack(stacks, true)])
			}
			if begun := len(lathe.calls()); begun < 40 || begun != lathe.stopped {
				t.Errorf("the tool was begun %d times and stopped %d times", begun, lathe.stopped)
			}
			if got := finished(w.events(), rollcallv1.FinishReason_FINISH_REASON_INTERRUPTED); got != 111 {
				t.Errorf("%d runs were interrupted", got)
			}
		})
	})
}
