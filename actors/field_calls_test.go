package actors_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/actors"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore/faulty"
	"github.com/rollcall-dev/rollcall/internal/model"
	"github.com/rollcall-dev/rollcall/internal/tool"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// batch is a world whose Lead makes a batch of calls of devices, and afterwards
// says ok to anything.
func batch(t *testing.T, devices ...*device) *world {
	w := newWorld(t, strict(t, func(_ context.Context, from model.Caller, r request) (model.Reply, error) {
		if from.Member != "Lead" || r.called(devices[0].name) > 0 {
			return say("ok"), nil
		}
		var batch []*rollcallv1.ToolCall
		for _, d := range devices {
			batch = append(batch, call(d.name, `{}`))
		}
		return calls(batch...), nil
	}))
	seen := map[string]bool{}
	for _, d := range devices {
		if !seen[d.name] {
			seen[d.name] = true
			w.extra = append(w.extra, d)
		}
	}
	return w
}

// Elsewhere a turn that was broken off began its whole batch again, and with it
// what had been done. Here of a batch of three, broken off after two, only the
// third is open: one that can be repeated runs again as the same call, of any
// other the model is told that its outcome is unknown.
func TestB20OnlyTheOpenCallIsRepeated(t *testing.T) {
	for _, idempotent := range []bool{false, true} {
		t.Run(fmt.Sprint("the third can be repeated ", idempotent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one, two, three := newDevice("one"), newDevice("two"), newDevice("three")
				three.idempotent, two.idempotent = idempotent, true
				w := batch(t, one, two, three)
				n, store := w.node()
				w.open("go")
				synctest.Wait()
				one.end("one is done")
				synctest.Wait()
				two.end("two is done")
				synctest.Wait()
				store.Crash()
				w.close(n)
				n, _ = w.node()
				defer w.close(n)
				<-time.After(time.Minute)
				if idempotent {
					three.end("three is done")
				}
				w.quiet()
				want := 1
				if idempotent {
					want = 2
				}
				if len(one.calls()) != 1 || len(two.calls()) != 1 || len(three.calls()) != want || len(slices.Compact(three.calls())) != 1 {
					t.Errorf("the calls were %v, %v and %v", one.calls(), two.calls(), three.calls())
				}
				last := lastOf(w, "Lead")
				for _, words := range []string{"one is done", "two is done"} {
					if strings.Count(last, words) != 1 {
						t.Errorf("%q is not shown once", words)
					}
				}
				shown := lastRequest(t, w, "Lead")
				third := shown[len(shown)-1].Content
				if strings.HasPrefix(third, "three is done") != idempotent || strings.HasPrefix(third, "Outcome unknown") == idempotent {
					t.Errorf("the third came to %q", third)
				}
			})
		})
	}
	t.Run("a crash anywhere", crashAnywhereInABatch)
}

// crashAnywhereInABatch crashes at each commit of the batch: what cannot be
// repeated runs at most once, and every call has one outcome.
func crashAnywhereInABatch(t *testing.T) {
	play := func(t *testing.T, faults ...faulty.Fault) (hits int) {
		synctest.Test(t, func(t *testing.T) {
			one, two, three := newDevice("one"), newDevice("two"), newDevice("three")
			two.idempotent = true
			one.takes, two.takes, three.takes = time.Second, time.Second, time.Second
			w := batch(t, one, two, three)
			n, store := w.node(faults...)
			w.ask(openCommand("go"))
			<-time.After(20 * time.Second)
			for _, h := range store.Hits() {
				if h.Point == faulty.Append {
					hits++
				}
			}
			if len(faults) > 0 {
				w.close(n)
				n, _ = w.node()
				<-time.After(20 * time.Second)
			}
			defer w.close(n)
			w.quiet()
			outcomes := map[string]int{}
			for _, e := range w.events() {
				if f := e.GetToolCallFinished(); f != nil {
					outcomes[f.GetName()]++
				}
			}
			if len(one.calls()) > 1 || len(three.calls()) > 1 {
				t.Errorf("one ran %d times and three %d times", len(one.calls()), len(three.calls()))
			}
			if fmt.Sprint(outcomes) != "map[one:1 three:1 two:1]" {
				t.Errorf("outcomes: %v\n%s", outcomes, w.story())
			}
			justified(t, w.events(), len(w.brain.record()))
		})
		return hits
	}
	hits := play(t)
	if hits < 5 {
		t.Fatalf("the batch takes only %d commits", hits)
	}
	for n := range hits {
		for _, how := range faulty.Crashes {
			play(t, faulty.Fault{Point: faulty.Append, N: n + 1, How: how})
		}
	}
}

// breaks are the ways in which a call can stay without an outcome of its own.
var breaks = map[string]func(w *world, n *actors.Node, store *faulty.Store, open *device) *actors.Node{
	"the operator writes": func(w *world, n *actors.Node, _ *faulty.Store, _ *device) *actors.Node {
		w.do(post("lead", "never mind", 0))
		return n
	},
	"interrupted by hand": func(w *world, n *actors.Node, _ *faulty.Store, _ *device) *actors.Node {
		w.do(interruptCommand("lead"))
		w.do(retryCommand(""))
		return n
	},
	"the node crashes": func(w *world, n *actors.Node, store *faulty.Store, _ *device) *actors.Node {
		store.Crash()
		w.close(n)
		n, _ = w.node()
		return n
	},
	"the node is stopped": func(w *world, n *actors.Node, _ *faulty.Store, _ *device) *actors.Node {
		w.close(n)
		n, _ = w.node()
		return n
	},
	"the tool hangs": func(_ *world, n *actors.Node, _ *faulty.Store, _ *device) *actors.Node {
		<-time.After(11 * time.Minute)
		return n
	},
	"the tool crashes": func(w *world, n *actors.Node, _ *faulty.Store, open *device) *actors.Node {
		open.crash()
		w.until("the run fails", func(s *domain.State) bool { return s.Lead().Held })
		w.do(retryCommand(""))
		return n
	},
	"paused meanwhile": func(w *world, n *actors.Node, _ *faulty.Store, open *device) *actors.Node {
		w.do(pauseCommand())
		open.end("done while paused")
		w.do(resumeCommand())
		return n
	},
	"paused, then interrupted": func(w *world, n *actors.Node, _ *faulty.Store, _ *device) *actors.Node {
		w.do(pauseCommand())
		w.do(interruptCommand("lead"))
		w.do(resumeCommand())
		w.do(retryCommand(""))
		return n
	},
	"everything at once": func(w *world, n *actors.Node, store *faulty.Store, _ *device) *actors.Node {
		w.ask(post("lead", "never mind", 0))
		w.ask(interruptCommand("lead"))
		w.ask(pauseCommand())
		store.Crash()
		w.close(n)
		n, _ = w.node()
		w.do(resumeCommand())
		w.ask(retryCommand(""))
		return n
	},
}

// Elsewhere a call without a result made every later request invalid, and the
// conversation was lost. Here a batch of two calls is broken off in every way, in
// the first call and in the second; every later request is one that the strictest
// server takes, each call in it has one result, and the turn after can work.
func TestB42EveryCallIsAnswered(t *testing.T) {
	for way, breakOff := range breaks {
		for _, at := range []string{"one", "two"} {
			t.Run(way+", in "+at, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					one, two := newDevice("one"), newDevice("two")
					w := batch(t, one, two)
					n, store := w.node()
					defer func() { w.close(n) }()
					w.open("go")
					synctest.Wait()
					open := one
					if at == "two" {
						one.end("one is done")
						synctest.Wait()
						open = two
					}
					if len(open.calls()) != 1 {
						t.Fatalf("%s has not begun", at)
					}
					n = breakOff(w, n, store, open)
					go drainDevices(t.Context(), one, two)
					<-time.After(time.Hour)
					w.quiet()
					calls := w.brain.count("Lead")
					w.do(post("lead", "what now?", 0))
					w.quiet()
					if w.brain.count("Lead") != calls+1 {
						t.Errorf("the next turn made %d calls", w.brain.count("Lead")-calls)
					}
					body := lastOf(w, "Lead")
					if strings.Count(body, `"role":"tool"`) != 2 || at == "two" && strings.Count(body, "one is done") != 1 {
						t.Errorf("the calls came to\n%s", body)
					}
					if len(one.calls()) > 1 || len(two.calls()) > 1 {
						t.Errorf("one ran %d times, two ran %d times", len(one.calls()), len(two.calls()))
					}
				})
			})
		}
	}
}

// drainDevices ends calls that are still open.
func drainDevices(ctx context.Context, devices ...*device) {
	for _, d := range devices {
		select {
		case d.gate <- tool.Outcome{Output: d.name + " is done"}:
		case <-time.After(time.Minute):
		case <-ctx.Done():
		}
	}
}

// Elsewhere a word of the framework came between a call and its result, and no
// server took the conversation any more. Here mail of every kind arrives while the
// first and while the second call of a batch runs; in the next request it stands
// behind all results of the batch, in one frame, the operator's words outside.
func TestB44MailWhileToolsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := newDevice("one"), newDevice("two")
		w := newWorld(t, strict(t, func(_ context.Context, from model.Caller, r request) (model.Reply, error) {
			switch {
			case from.Member == "Ada" && r.has("begin") && r.called("one") == 0:
				return calls(call("one", `{}`), call("task_list", `{}`), call("two", `{}`)), nil
			case from.Member == "Lead" && r.has("tell Ada") && r.called("send_message") == 0:
				return calls(call("send_message", `{"to":"Ada","text":"mark: text"}`)), nil
			}
			return say("ok"), nil
		}))
		w.extra = []tool.Tool{one, two}
		n, _ := w.node()
		defer w.close(n)
		w.do(withMembers("go", "Ada"))
		w.quiet()
		w.do(post("m1", "begin", 0))
		synctest.Wait()
		for i, d := range []*device{one, two} {
			w.do(alertCommand("m1", fmt.Sprintf("mark: alert %d", i)))
			w.do(post("m1", fmt.Sprintf("mark: operator %d", i), rollcallv1.MailMode_MAIL_MODE_STEER))
			w.do(addTask("Ada", fmt.Sprintf("mark: ready %d", i)))
			w.do(addTask("user", "mine"))
			w.do(addTask("Ada", fmt.Sprintf("mark: assigned %d", i), fmt.Sprintf("t%d", 3*i+2)))
			if i == 0 {
				w.do(post("lead", "tell Ada", 0))
				w.until("the Lead has told her", func(s *domain.State) bool { return s.Lead().Run == nil })
			}
			d.end(d.name + " is done")
			synctest.Wait()
		}
		w.quiet()
		var roles, last []string
		for _, m := range lastRequest(t, w, "Ada") {
			roles = append(roles, m.Role)
			last = append(last, m.Content)
		}
		if got := strings.Join(roles, " "); got != "system user assistant user assistant tool tool tool user" {
			t.Errorf("the request is %s", got)
		}
		frame, outside, ok := strings.Cut(last[len(last)-1], "</team-mailbox>")
		if !ok || !strings.HasPrefix(frame, "<team-mailbox>") {
			t.Fatalf("no frame: %s", last[len(last)-1])
		}
		for i := range 2 {
			for _, mark := range []string{"mark: alert %d", "mark: ready %d", "mark: assigned %d"} {
				if strings.Count(frame, fmt.Sprintf(mark, i)) == 0 {
					t.Errorf("the frame lacks %s, %d", mark, i)
				}
			}
			if strings.Count(outside, fmt.Sprintf("mark: operator %d", i)) != 1 {
				t.Errorf("outside the frame stands %q", outside)
			}
		}
		if !strings.Contains(frame, "mark: text") {
			t.Error("the frame lacks the Lead's word")
		}
	})
}
