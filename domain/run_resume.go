package domain

import (
	"fmt"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// resumeRun takes up an open run whose node, or actor, was lost. A model call
// is made again; an idempotent tool runs again under the same call id; of any
// other tool the member is told that its outcome is unknown.
func (d *Decision) resumeRun(c *rollcallv1.ResumeRun) *Refusal {
	m, refusal := d.open(c.GetMember(), c.GetRun())
	if refusal != nil {
		return refusal
	}
	run := m.Run
	switch run.Phase {
	case Parked, Reserving, Asking, Delegating: // the pause, a budget, an approval or a subagent holds it, not a lost node
		return nil
	}
	if c.GetWaited() {
		d.goOn(m)
		return nil
	}
	resumes := run.Resumes
	if !run.Suspended { // what was let go in good order is no loss
		resumes++
	}
	if int(resumes) > d.b.limits.Resumes {
		d.finish(m, failing("too-many-resumes", fmt.Sprintf("the run was lost and taken up %d times without a reply between", run.Resumes)))
		return nil
	}
	inTool := run.Phase == InTool
	d.emit(&rollcallv1.RunResumed{Run: run.ID, Member: m.ID, Node: d.b.commit.GetNode(), Attempt: resumes})
	if !inTool {
		d.boundary(m)
		return nil
	}
	call := run.Calls[0]
	if tool, refusal := d.tool(m, &call); refusal == nil && tool.GetIdempotent() {
		return nil
	}
	d.emit(&rollcallv1.ToolCallFinished{
		Run: run.ID, Member: m.ID, Step: run.Step, Call: call.ID, Name: call.Name, Output: textBody(unknownOutcome), Error: true, Unknown: true,
	})
	d.proceed(m)
	return nil
}

// goOn takes up a run that waited for its turn, with the call that it had
// started. A conversation that was paused meanwhile parks it instead.
func (d *Decision) goOn(m *Member) {
	switch {
	case !m.Run.Suspended:
	case d.State().Paused:
		d.emit(&rollcallv1.RunSuspended{Run: m.Run.ID, Member: m.ID, Reason: suspendedPaused})
	default:
		d.emit(&rollcallv1.RunResumed{Run: m.Run.ID, Member: m.ID, Node: d.b.commit.GetNode(), Attempt: m.Run.Resumes, Waited: true})
	}
}

// suspendRun lets go of an open run in good order. It stays open, and owed.
func (d *Decision) suspendRun(c *rollcallv1.SuspendRun) *Refusal {
	m, refusal := d.open(c.GetMember(), c.GetRun())
	if refusal != nil {
		return refusal
	}
	if m.Run.Suspended || m.Run.Phase == Parked {
		return nil
	}
	reason := cut(Clean(c.GetReason()), 200)
	if reason == suspendedPaused || reason == "" {
		reason = "let go"
	}
	d.emit(&rollcallv1.RunSuspended{Run: m.Run.ID, Member: m.ID, Reason: reason})
	return nil
}

// pause stops the conversation at its step boundaries. Again is no error.
func (d *Decision) pause() *Refusal {
	if !d.State().Paused {
		d.emit(&rollcallv1.ConversationPaused{By: d.actor})
	}
	return nil
}

// resume lets parked runs go on.
func (d *Decision) resume() *Refusal {
	if !d.State().Paused {
		return nil
	}
	d.emit(&rollcallv1.ConversationResumed{By: d.actor})
	for _, m := range d.State().Members {
		if m.Run != nil && m.Run.Phase == Parked {
			d.emit(&rollcallv1.RunResumed{Run: m.Run.ID, Member: m.ID, Node: d.b.commit.GetNode(), Attempt: m.Run.Resumes})
			d.boundary(m)
		}
	}
	return nil
}
