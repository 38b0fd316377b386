package actors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/tool"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// toolJob runs one external tool call.
type toolJob struct{ plan domain.ToolPlan }

func (j toolJob) owner() (string, string) { return j.plan.Member.ID, j.plan.Run }

func (j toolJob) run(ctx context.Context, m *member, _ time.Duration) (*rollcallv1.Command, time.Duration) {
	p := j.plan
	t := m.tools[p.Call.GetName()]
	if t == nil {
		return j.record(ctx, m, tool.Outcome{Error: true, Output: fmt.Sprintf("tool %q is not on this node", p.Call.GetName())}), 0
	}
	args, err := readArguments(ctx, m.Store, p.Key, p.Call)
	if err != nil {
		return j.record(ctx, m, tool.Outcome{Error: true, Output: "the arguments of this call cannot be read: " + err.Error()}), 0
	}
	limited, cancel := context.WithTimeout(ctx, m.ToolTimeout)
	defer cancel()
	retry := delays(100*time.Millisecond, 5*time.Second)
	for attempt := 1; ; attempt++ {
		out, err := j.call(limited, m, t, args)
		switch {
		case ctx.Err() != nil:
			return nil, 0
		case err == nil:
			return j.record(ctx, m, out), 0
		case limited.Err() != nil:
			return j.record(ctx, m, tool.Outcome{Error: true, Output: fmt.Sprintf("the tool did not end within %s; its outcome is unknown: verify first", m.ToolTimeout)}), 0
		case attempt == maxToolAttempts || !t.Definition().GetIdempotent():
			return j.record(ctx, m, tool.Outcome{Error: true, Output: "the tool failed: " + err.Error()}), 0
		}
		pause(limited, retry())
	}
}

// toolGrace is how long a tool has to end once its context has ended.
const toolGrace = 5 * time.Second

// errDeaf: a tool did not hear that its context had ended.
var errDeaf = errors.New("the tool does not end")

// call runs the tool beside the step, so that one that never ends holds neither
// the run nor a stop of the node: it is left behind, and what it still does is
// unknown. A panic in it is one of the step.
func (j toolJob) call(ctx context.Context, m *member, t tool.Tool, args string) (tool.Outcome, error) {
	var ended struct {
		out   tool.Outcome
		err   error
		crash any
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		crashed := true
		defer func() {
			if ended.crash = recover(); crashed && ended.crash == nil {
				ended.crash = "the tool ended its goroutine"
			}
			if crashed {
				m.Log.Error("a tool crashed", "conversation", m.key.String(), "tool", j.plan.Call.GetName(), "stack", string(debug.Stack()))
			}
		}()
		ended.out, ended.err = t.Call(ctx, j.plan, json.RawMessage(args))
		crashed = false
	}()
	select {
	case <-done:
	case <-ctx.Done():
		grace := time.NewTimer(toolGrace)
		defer grace.Stop()
		select {
		case <-done:
		case <-grace.C:
			m.Log.Error("a tool does not end; it is left behind", "conversation", m.key.String(), "member", j.plan.Member.ID, "run", j.plan.Run, "tool", j.plan.Call.GetName())
			return tool.Outcome{}, errDeaf
		}
	}
	if ended.crash != nil {
		panic(ended.crash)
	}
	return ended.out, ended.err
}

// maxToolAttempts bounds how often an idempotent tool meets a fault of its
// surroundings before the model hears of it.
const maxToolAttempts = 5

func (j toolJob) record(ctx context.Context, m *member, out tool.Outcome) *rollcallv1.Command {
	p := j.plan
	cmd := &rollcallv1.Command{Actor: p.Member.ID, Kind: &rollcallv1.Command_RecordToolOutcome{
		RecordToolOutcome: &rollcallv1.RecordToolOutcome{
			Member: p.Member.ID, Run: p.Run, Step: p.Step, Call: p.Call.GetId(),
			Output: inline(out.Output), Error: out.Error, Files: out.Files,
		},
	}}
	return m.withBodies(ctx, p.Key, cmd, p.Member.ID, p.Run)
}
