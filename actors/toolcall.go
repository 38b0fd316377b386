package actors

import (
	"context"
	"encoding/json"
	"fmt"
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
		out, err := t.Call(limited, p, json.RawMessage(args))
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
