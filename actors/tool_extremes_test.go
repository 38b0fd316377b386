package actors_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/model"
	"github.com/rollcall-dev/rollcall/internal/tool"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// rogue is a tool that does as it likes.
type rogue struct {
	do func(ctx context.Context, way string) (tool.Outcome, error)
}

func (r rogue) Definition() *rollcallv1.ToolDefinition {
	return &rollcallv1.ToolDefinition{Name: "rogue", Description: "does as it likes", Schema: `{"type":"object"}`}
}

func (r rogue) Call(ctx context.Context, _ domain.ToolPlan, raw json.RawMessage) (tool.Outcome, error) {
	var args struct{ Way string }
	if err := json.Unmarshal(raw, &args); err != nil {
		return tool.Outcome{}, err
	}
	return r.do(ctx, args.Way)
}

// obscene panics once more when it is asked what it is.
type obscene struct{ n *int }

func (o obscene) Error() string { return string(rune(*o.n)) }

// TestInputToolPanics: however a tool crashes, its run fails with a reason that
// can be shown, the mail is unread again, the other member's tool goes on, and
// so does the conversation.
func TestInputToolPanics(t *testing.T) {
	ways := []string{"word", "error", "nil pointer", "index", "obscene", "nil", "goexit", "not UTF-8", "a long word"}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(_ context.Context, from model.Caller, r request) (model.Reply, error) {
			switch {
			case from.Member == "Lead" && r.called("team_create") == 0:
				return calls(call("team_create", `{"name":"x"}`), call("team_member_add", `{"name":"Bob","initial_prompt":"work"}`)), nil
			case from.Member == "Bob" && r.called("rogue") == 0:
				return calls(call("rogue", `{"way":"wait"}`)), nil
			}
			for _, way := range ways {
				if from.Member == "Lead" && strings.HasSuffix(strings.TrimSpace(r.text()), "way: "+way) {
					return calls(call("rogue", `{"way":"`+way+`"}`)), nil
				}
			}
			return say("well"), nil
		})
		end := make(chan struct{})
		w.extra = []tool.Tool{rogue{func(_ context.Context, way string) (tool.Outcome, error) {
			crash(way)
			<-end
			return tool.Outcome{Output: "waited"}, nil
		}}}
		n, _ := w.node()
		defer w.close(n)
		w.open("make a team")
		resting := func(s *domain.State) bool { return s.Lead().Run == nil && len(s.Members) == 2 }
		w.until("the Lead rests", resting)
		for _, way := range ways {
			w.do(post("lead", "way: "+way, rollcallv1.MailMode_MAIL_MODE_UNSPECIFIED))
			lead := w.until("the run ended", resting).Lead()
			if lead.LastCode != "step-crashed" || !lead.Held || len(lead.Unread) == 0 && lead.LastReason != rollcallv1.FinishReason_FINISH_REASON_FAILED {
				t.Errorf("a tool that panics with %s ends the run with %s %.200q", way, lead.LastCode, lead.LastDetail)
			}
			if d := lead.LastDetail; d == "" || len(d) > 3000 || !utf8.ValidString(d) {
				t.Errorf("the reason of %s has %d bytes: %.200q", way, len(d), d)
			}
		}
		w.do(post("lead", "and now?", rollcallv1.MailMode_MAIL_MODE_UNSPECIFIED))
		s := w.until("the Lead rests", resting)
		if s.Lead().Held || s.Named("Bob").Run == nil {
			t.Errorf("the Lead is held: %v; Bob's run is %v", s.Lead().Held, s.Named("Bob").Run)
		}
		close(end)
		w.quiet()
		if got := w.brain.count("Bob"); got != 2 {
			t.Errorf("Bob was called %d times, want 2: his tool was disturbed", got)
		}
	})
}

func crash(way string) {
	var none *rogue
	switch way {
	case "word":
		panic("boom")
	case "error":
		panic(errors.New("boom"))
	case "nil pointer":
		none.do = nil
	case "index":
		_ = []string{}[len(way)]
	case "obscene":
		panic(obscene{})
	case "nil":
		panic(nil) //nolint:govet // some do
	case "goexit":
		runtime.Goexit()
	case "not UTF-8":
		panic("caf\xe9 \x00")
	case "a long word":
		panic(strings.Repeat("é", 1<<20))
	}
}

// TestInputToolDeaf: a tool that never ends and does not hear its context. The
// model is told after the tool's time; an interruption and a stop of the node
// do not wait for it; and it holds up nobody else.
func TestInputToolDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(_ context.Context, _ model.Caller, r request) (model.Reply, error) {
			if r.Messages[len(r.Messages)-1].Role == "user" {
				return calls(call("rogue", `{}`)), nil
			}
			return say("I look first"), nil // a result
		})
		end, called := make(chan struct{}), 0
		release := sync.OnceFunc(func() { close(end) })
		defer release()
		w.extra = []tool.Tool{rogue{func(context.Context, string) (tool.Outcome, error) {
			called++
			<-end
			return tool.Outcome{Output: "too late"}, nil
		}}}
		n, _ := w.node()
		began := time.Now()
		w.open("be deaf")
		<-time.After(10 * time.Minute) // in one piece: virtual time
		if s := w.state(); s.Lead().Run == nil {
			t.Error("the tool was given up before its time")
		}
		w.until("the Lead goes on", func(s *domain.State) bool { return s.Opened && s.Lead().Run == nil })
		if d := time.Since(began); d < 10*time.Minute || d > 11*time.Minute {
			t.Errorf("the model was told after %s, want the tool's 10 minutes", d)
		}
		if out := w.events(); called != 1 || countOutcomes(out, true) != 1 {
			t.Errorf("the tool was called %d times, %d outcomes are errors", called, countOutcomes(out, true))
		}

		// The operator's word interrupts: the next run begins at once.
		w.do(post("lead", "be deaf again", rollcallv1.MailMode_MAIL_MODE_UNSPECIFIED))
		w.until("the tool runs", func(*domain.State) bool { return called == 2 })
		began = time.Now()
		w.do(post("lead", "be deaf again", rollcallv1.MailMode_MAIL_MODE_UNSPECIFIED))
		w.until("the tool runs once more", func(*domain.State) bool { return called == 3 })
		if d := time.Since(began); d > time.Second {
			t.Errorf("the interruption took %s", d)
		}

		// A stop of the node suspends the run and does not wait.
		began = time.Now()
		w.close(n)
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("the node stopped after %s", d)
		}
		if s := w.state(); s.Lead().Run == nil || !s.Lead().Run.Suspended {
			t.Errorf("the run is %+v", s.Lead().Run)
		}
		release() // what was left behind ends, and changes nothing
		synctest.Wait()
		n, _ = w.node()
		defer w.close(n)
		w.quiet()
		if called != 3 || countOutcomes(w.events(), false) > 0 {
			t.Errorf("the tool was called %d times, %d outcomes are good:\n%s", called, countOutcomes(w.events(), false), w.story())
		}
	})
}

func countOutcomes(events []*rollcallv1.Event, failed bool) int {
	return count(events, (*rollcallv1.Event).GetToolCallFinished, func(f *rollcallv1.ToolCallFinished) bool {
		return f != nil && f.GetName() == "rogue" && f.GetError() == failed && !f.GetUnknown()
	})
}
