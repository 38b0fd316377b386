package domain

import (
	"fmt"
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// A run is a machine of the log. Between commits it is in one phase: calling
// (a model call without outcome), tool (an external tool call without
// outcome), asking (a call that waits for its approval), delegating (calls that
// wait for their subagents), parked, or reserving (until budgets have room for
// its next call). An outcome is decided in one commit: what came back, the
// coordination calls it asked for, and the next call or the end.

// boundary decides how a run goes on when nothing of its step is open.
func (d *Decision) boundary(m *Member) {
	switch {
	case m.Run.Result != "": // what its call waits for
		d.finish(m, ending{Reason: rollcallv1.FinishReason_FINISH_REASON_COMPLETED})
	case m.Run.Delivered && m.Task != "": // its whole assignment
		d.finish(m, ending{Reason: rollcallv1.FinishReason_FINISH_REASON_COMPLETED})
	case len(m.Run.Asked) > 0:
		for _, w := range slices.Clone(m.Run.Asked) {
			d.emit(&rollcallv1.WaitStarted{Member: m.ID, Message: w.Message, Awaited: w.Awaited})
		}
		d.finish(m, ending{Reason: rollcallv1.FinishReason_FINISH_REASON_WAITING})
	case d.State().Paused:
		d.emit(&rollcallv1.RunSuspended{Run: m.Run.ID, Member: m.ID, Reason: suspendedPaused})
	default:
		d.nextStep(m)
	}
}

// nextStep starts the run's next model call: the next step after a reply, else
// another attempt. Mail that came in is read before it, unless the operator
// queued it for the run after this one.
func (d *Decision) nextStep(m *Member) {
	d.release(m, 0, 0) // of a call whose node was lost
	if end, over := d.overSteps(m); over {
		d.finish(m, end)
		return
	}
	need, ok := d.admit(m)
	if !ok {
		return
	}
	if mail := keep(slices.Clone(m.Unread), func(mail *Mail) bool { return mail.Mode != rollcallv1.MailMode_MAIL_MODE_QUEUE }); len(mail) > 0 {
		d.emit(&rollcallv1.MessagesConsumed{Member: m.ID, Run: m.Run.ID, Messages: refs(mail)})
	}
	step, attempt := max(m.Run.Step, 1), m.Run.Attempt+1
	if m.Run.Answered {
		step, attempt = m.Run.Step+1, 1
	}
	d.call(m, step, attempt, need)
}

// ending is why a run ends.
type ending struct {
	Reason rollcallv1.FinishReason
	// Code and Detail of what went wrong.
	Code, Detail string
	// Text is the model's last word, where the run ended by one.
	Text *rollcallv1.Body
}

// failing is the ending of a run that cannot go on.
func failing(code, detail string) ending {
	return ending{Reason: rollcallv1.FinishReason_FINISH_REASON_FAILED, Code: code, Detail: cut(Clean(detail), 2000)}
}

// finish ends the open run. Mail that no model answered becomes unread again.
func (d *Decision) finish(m *Member, e ending) {
	run := m.Run
	d.release(m, 0, 0)
	d.voidApprovals(m, e)
	d.cancelSubagents(m, e)
	if len(run.Unanswered) > 0 {
		d.emit(&rollcallv1.MessagesReturned{Member: m.ID, Run: run.ID, Messages: refs(run.Unanswered)})
	}
	if e.Reason == rollcallv1.FinishReason_FINISH_REASON_COMPLETED {
		d.endWaits(m, waitCancelled)
	}
	d.emit(&rollcallv1.RunFinished{
		Run: run.ID, Member: m.ID, Reason: e.Reason, Code: e.Code, Detail: e.Detail, Undelivered: d.State().undelivered(m),
	})
	if e.Reason == rollcallv1.FinishReason_FINISH_REASON_FAILED {
		d.dropAssignment(m)
	}
	d.handBack(m, run, e)
}

// undelivered are the tasks in progress that the member owns.
func (s *State) undelivered(m *Member) []string {
	var ids []string
	for _, t := range s.Tasks {
		if t.Status == inProgress && t.Owner == m.Name {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

// open finds the member whose open run a command speaks of, or refuses: the
// run is over, and a late outcome leaves no trace.
func (d *Decision) open(member, run string) (*Member, *Refusal) {
	m := d.State().running(member, run)
	if m == nil {
		return nil, stale(fmt.Sprintf("run %s of %s is not open", run, member))
	}
	return m, nil
}

func stale(why string) *Refusal {
	return Refuse("stale-outcome", "the outcome came too late", why, "drop it: the run has gone on without it")
}
