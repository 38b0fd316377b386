package domain

import (
	"fmt"
	"strings"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// changeAssignment is the operator's hand on a team with assignments: he can end
// one in any state. Who does what is the Lead's plan, which he changes by a word
// to the Lead.
func (d *Decision) changeAssignment(c *rollcallv1.ChangeTask) (string, *Refusal) {
	switch c.GetOperation() {
	case rollcallv1.ChangeTask_OPERATION_ADD, rollcallv1.ChangeTask_OPERATION_ASSIGN:
		return "", Refuse("assignments-fixed", "the task is not changed", fmt.Sprintf("with the contract %s the Lead gives out the work, one task a member", d.State().Contract),
			"tell the Lead with: rollcall send")
	}
	t, refusal := d.FindTask(c.GetTask())
	if refusal != nil {
		return "", refusal
	}
	m := d.State().Named(t.Owner)
	if !t.Open() && !(t.Status == failed && c.GetOperation() == rollcallv1.ChangeTask_OPERATION_CANCEL) {
		return "", Refuse("task-closed", t.ID+" is not changed", alreadyClosed(t), "tell the Lead what should happen: rollcall send")
	}
	switch c.GetOperation() {
	case rollcallv1.ChangeTask_OPERATION_DONE:
		if strings.TrimSpace(c.GetText()) == "" {
			return "", Refuse("text-empty", t.ID+" is not delivered", "it has no result", "say what came out: those who depend on it read that")
		}
		if refusal := d.done(t, c.GetText(), c.GetPaths()); refusal != nil {
			return "", refusal
		}
		d.stop(m, "the operator delivered its task")
	case rollcallv1.ChangeTask_OPERATION_FAIL:
		if _, refusal := d.UpdateTask(TaskChange{Task: t.ID, Status: "failed", Reason: c.GetText()}); refusal != nil {
			return "", refusal
		}
		d.stop(m, "the operator failed its task")
	case rollcallv1.ChangeTask_OPERATION_CANCEL:
		if _, refusal := d.cancelBranch(t.Owner, c.GetText()); refusal != nil {
			return "", refusal
		}
	default:
		return "", Refuse("argument-invalid", "the task is not changed", "the operation is unknown", "choose done, fail or cancel")
	}
	return t.ID, nil
}

// stop ends the run of a member whose task was taken from it, and what it waits
// for. It stays, and can be written to.
func (d *Decision) stop(m *Member, why string) {
	if m == nil || !m.Alive() {
		return
	}
	if m.Run != nil {
		d.control(m, controlCancel, why)
		d.finish(m, ending{Reason: rollcallv1.FinishReason_FINISH_REASON_CANCELLED, Detail: why})
	}
	d.endWaits(m, waitCancelled)
}
