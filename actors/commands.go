package actors

import (
	"errors"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// runOf names the run that an outcome belongs to; empty for other commands.
func runOf(c *rollcallv1.Command) (member, run string) {
	type outcome interface {
		GetMember() string
		GetRun() string
	}
	var o outcome
	switch k := c.GetKind().(type) {
	case *rollcallv1.Command_RecordReply:
		o = k.RecordReply
	case *rollcallv1.Command_RecordModelFailure:
		o = k.RecordModelFailure
	case *rollcallv1.Command_RecordToolOutcome:
		o = k.RecordToolOutcome
	case *rollcallv1.Command_FailRun:
		o = k.FailRun
	case *rollcallv1.Command_ResumeRun:
		o = k.ResumeRun
	case *rollcallv1.Command_SuspendRun:
		o = k.SuspendRun
	default:
		return "", ""
	}
	return o.GetMember(), o.GetRun()
}

func failRun(member, run, code, why string) *item {
	return &item{command: &rollcallv1.Command{
		Actor: domain.Framework,
		Kind:  &rollcallv1.Command_FailRun{FailRun: &rollcallv1.FailRun{Member: member, Run: run, Code: code, Error: why}},
	}}
}

func resumeRun(member, run string) *item {
	return &item{command: &rollcallv1.Command{
		Actor: domain.Framework,
		Kind:  &rollcallv1.Command_ResumeRun{ResumeRun: &rollcallv1.ResumeRun{Member: member, Run: run}},
	}}
}

// goOn takes up a run that was suspended while it waited.
func goOn(member, run string) *item {
	it := resumeRun(member, run)
	it.command.GetResumeRun().Waited = true
	return it
}

func suspendRun(member, run, reason string) *item {
	return &item{command: &rollcallv1.Command{
		Actor: domain.Framework,
		Kind:  &rollcallv1.Command_SuspendRun{SuspendRun: &rollcallv1.SuspendRun{Member: member, Run: run, Reason: reason}},
	}}
}

func asRefusal(err error) (*rollcallv1.Refusal, bool) {
	r, ok := errors.AsType[*domain.Refusal](err)
	if !ok {
		return nil, false
	}
	return &rollcallv1.Refusal{Code: r.Code, What: r.What, Why: r.Why, Try: r.Try}, true
}

// delays doubles from first to last.
func delays(first, last time.Duration) func() time.Duration {
	next := first
	return func() time.Duration {
		d := next
		next = min(2*next, last)
		return d
	}
}
