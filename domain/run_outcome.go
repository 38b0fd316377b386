package domain

import (
	"fmt"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// recordToolOutcome takes what an external tool came to and goes on.
func (d *Decision) recordToolOutcome(c *rollcallv1.RecordToolOutcome) *Refusal {
	m, refusal := d.open(c.GetMember(), c.GetRun())
	if refusal != nil {
		return refusal
	}
	if m.Run.Phase != InTool || c.GetStep() != m.Run.Step || c.GetCall() != m.Run.Calls[0].ID {
		return stale(fmt.Sprintf("run %s does not wait for call %s of step %d", m.Run.ID, c.GetCall(), c.GetStep()))
	}
	if len(c.GetOutput().GetText()) > MaxInline {
		return Refuse("text-too-long", "the tool's outcome is not recorded", fmt.Sprintf("its output has %d bytes", len(c.GetOutput().GetText())), "put it into the object store first")
	}
	if refusal := checkFiles(c.GetFiles()); refusal != nil {
		return refusal
	}
	d.emitFiles(d.State().host(m).ID, c.GetFiles())
	d.emit(&rollcallv1.ToolCallFinished{
		Run: m.Run.ID, Member: m.ID, Step: m.Run.Step, Call: c.GetCall(), Name: m.Run.Calls[0].Name,
		Output: cleanBody(c.GetOutput()), Error: c.GetError(),
	})
	d.proceed(m)
	return nil
}

// A server that is only busy is asked more often before the run fails: the
// waits between are its own wish, and its answer costs nothing.
const (
	rateLimited  = "model-rate-limited"
	busyPatience = 5
)

// recordModelFailure takes a model call that brought no complete answer:
// another attempt while that may help, else the end of the run.
func (d *Decision) recordModelFailure(c *rollcallv1.RecordModelFailure) *Refusal {
	m, refusal := d.open(c.GetMember(), c.GetRun())
	if refusal != nil {
		return refusal
	}
	if m.Run.Phase != Calling || c.GetStep() != m.Run.Step || c.GetAttempt() != m.Run.Attempt {
		return stale(fmt.Sprintf("run %s is at step %d, attempt %d", m.Run.ID, m.Run.Step, m.Run.Attempt))
	}
	attempts := d.b.limits.Attempts
	if c.GetCode() == rateLimited {
		attempts *= busyPatience
	}
	retry := c.GetTransient() && int(m.Run.Failures)+1 < attempts
	d.emit(&rollcallv1.ModelCallFailed{
		Run: m.Run.ID, Member: m.ID, Step: c.GetStep(), Attempt: c.GetAttempt(), Code: Clean(c.GetCode()),
		Error: cut(Clean(c.GetError()), 2000), Retry: retry, RequestHash: Clean(c.GetRequestHash()),
	})
	d.settleFailure(m, c.GetCode())
	if retry {
		d.boundary(m)
		return nil
	}
	d.finish(m, failing(Clean(c.GetCode()), c.GetError()))
	return nil
}

// failRun ends a run that cannot go on: a panic, a request that cannot be built.
func (d *Decision) failRun(c *rollcallv1.FailRun) *Refusal {
	m, refusal := d.open(c.GetMember(), c.GetRun())
	if refusal != nil {
		return refusal
	}
	d.finish(m, failing(cut(Clean(c.GetCode()), 100), c.GetError()))
	return nil
}
