package actors

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// modelJob makes one model call.
type modelJob struct{ plan domain.StepPlan }

func (j modelJob) owner() (string, string) { return j.plan.Member.ID, j.plan.Run }

func (j modelJob) run(ctx context.Context, m *member, wait time.Duration) (*rollcallv1.Command, time.Duration) {
	p := j.plan
	again := time.Now().Add(wait)
	req, err := buildRequest(ctx, m.Store, p)
	if ctx.Err() != nil {
		return nil, 0
	}
	if err != nil {
		return failRun(p.Member.ID, p.Run, "request-not-built", err.Error()).command, 0
	}
	leave, ok := m.admit(ctx, p, again)
	if !ok {
		return nil, 0
	}
	defer leave()
	m.busy()
	from := model.Caller{Key: p.Key, Member: p.Member.Name, Run: p.Run, Step: p.Step}
	reply, err := m.Models.Call(ctx, from, req, func(text string) { m.Feed.Text(from, p.Member.ID, text) })
	if ctx.Err() != nil {
		return nil, 0
	}
	if err != nil {
		return j.failed(err)
	}
	return m.recordReply(ctx, p, reply), 0
}

// failed records a call without an answer. The wait before the next attempt
// is the server's wish or ours, whichever is longer.
func (j modelJob) failed(err error) (*rollcallv1.Command, time.Duration) {
	p := j.plan
	f := &rollcallv1.RecordModelFailure{
		Member: p.Member.ID, Run: p.Run, Step: p.Step, Attempt: p.Attempt,
		Code: "model-failed", Error: err.Error(),
	}
	wait := min(500*time.Millisecond<<min(p.Attempt-1, 8), time.Minute)
	wait += rand.N(wait / 2)
	if e, ok := errors.AsType[*model.Error](err); ok {
		f.Code, f.Error, f.Transient, f.RequestHash = e.Code, e.Words(), e.Transient, e.RequestHash
		wait = max(wait, e.RetryAfter)
	}
	return &rollcallv1.Command{
		Actor: p.Member.ID,
		Kind:  &rollcallv1.Command_RecordModelFailure{RecordModelFailure: f},
	}, wait
}

func (m *member) recordReply(ctx context.Context, p domain.StepPlan, r model.Reply) *rollcallv1.Command {
	rec := &rollcallv1.RecordReply{
		Member: p.Member.ID, Run: p.Run, Step: p.Step, Attempt: p.Attempt,
		Text: inline(r.Text), Reasoning: inline(r.Reasoning), Finish: r.Finish,
		Usage: r.Usage, RequestHash: r.RequestHash, Model: r.Model,
	}
	for _, c := range r.Calls {
		rec.Calls = append(rec.Calls, &rollcallv1.ToolCall{Id: c.GetId(), Name: c.GetName(), Arguments: domain.Clean(c.GetArguments()), Extra: c.GetExtra()})
	}
	cmd := &rollcallv1.Command{Actor: p.Member.ID, Kind: &rollcallv1.Command_RecordReply{RecordReply: rec}}
	return m.withBodies(ctx, p.Key, cmd, p.Member.ID, p.Run)
}

// withBodies stores the command's large bodies, for as long as it takes: the
// answer is paid for and must not be lost to a short fault.
func (rt *runtime) withBodies(ctx context.Context, key domain.Key, cmd *rollcallv1.Command, member, run string) *rollcallv1.Command {
	retry := delays(100*time.Millisecond, 5*time.Second)
	for ctx.Err() == nil {
		err := rt.storeBodies(ctx, key, cmd)
		if err == nil {
			return cmd
		}
		rt.Log.Warn("store body; trying again", "conversation", key.String(), "run", run, "member", member, "error", err)
		pause(ctx, retry())
	}
	return nil
}
