package domain

import (
	"fmt"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const (
	verbClaim   = "claim"
	verbRelease = "release"
	verbReopen  = "reopen"
	verbFail    = "fail"
	verbCancel  = "cancel"
)

// TaskStatuses are what a task can be asked to become.
var TaskStatuses = []string{"in_progress", "claimable", "failed", "cancelled"}

func (d *Decision) checkStatus(ch *change, c TaskChange) *Refusal {
	ch.reason = c.Reason
	if refusal := checkText("the reason", c.Reason, MaxTaskText); refusal != nil {
		return refusal
	}
	switch c.Status {
	case "":
		return nil
	case "in_progress":
		return d.checkClaim(ch)
	case "claimable", "pending":
		return d.checkFree(ch)
	case "failed":
		return d.checkFail(ch)
	case "cancelled":
		return d.checkCancel(ch)
	case "completed":
		return Refuse("argument-invalid", fmt.Sprintf("%s is not completed by task_update", ch.t.ID), "a completion has a result", "call task_complete")
	}
	return Refuse("argument-invalid", fmt.Sprintf("%s is not changed", ch.t.ID), fmt.Sprintf("%q is no status to ask for", cut(c.Status, 100)),
		"choose one of: "+quoteAll(TaskStatuses)+"; complete with task_complete")
}

// checkClaim checks that the task can be started by its owner-to-be.
func (d *Decision) checkClaim(ch *change) *Refusal {
	t := ch.t
	what := fmt.Sprintf("%s cannot be claimed", t.ID)
	owner := d.claimant(ch)
	switch {
	case t.Status == inProgress && owner == t.Owner && (d.chief() || d.owns(t)):
		return nil // it is so already
	case t.Status == inProgress && !d.chief():
		return Refuse("task-claimed", what, t.Owner+" has claimed it and works on it", fmt.Sprintf("leave it to %s, or ask the Lead to assign it", t.Owner))
	case t.Status == inProgress: // the Lead hands it over
		ch.owner = &owner
		return nil
	case t.Status == pending || t.Status == blocked:
		why := "it waits for " + quoteAll(d.State().unfinished(t))
		if t.Status == blocked {
			why = "it is blocked: " + t.Reason
		}
		return Refuse("task-not-claimable", what, why, "do other work and end your turn: you are woken when it can start")
	case t.Status != claimable:
		return Refuse("task-closed", what, alreadyClosed(t), "make a new task, or open it again with status claimable")
	case t.Owner != "" && ch.owner == nil && t.Owner != owner, !d.mine(t):
		return notYours(t, what)
	case !d.chief() && owner != d.Caller().Name:
		return Refuse("task-not-yours", what, "you can claim it only for yourself", fmt.Sprintf("set owner to %q", d.Caller().Name))
	}
	ch.verb, ch.owner = verbClaim, &owner
	return nil
}

// claimant is the owner that a claim gives the task.
func (d *Decision) claimant(ch *change) string {
	switch {
	case ch.owner != nil && *ch.owner != "":
		return *ch.owner
	case ch.t.Owner != "":
		return ch.t.Owner
	case d.Caller() != nil:
		return d.Caller().Name
	}
	return User
}

// checkFree checks that the task can be released or opened again.
func (d *Decision) checkFree(ch *change) *Refusal {
	t := ch.t
	switch {
	case t.Status == inProgress && !d.chief() && !d.owns(t):
		return notYours(t, t.ID+" is not released")
	case t.Status == inProgress:
		ch.verb = verbRelease
		return nil
	case t.Open():
		return nil
	case !d.chief() && t.Creator != d.actor:
		return Refuse("task-not-yours", t.ID+" is not opened again", "only the Lead, the operator and who created it can", "ask the Lead")
	}
	if t.Status == completed {
		if refusal := d.State().inUse(t, t.ID+" is not opened again"); refusal != nil {
			return refusal
		}
	}
	ch.verb = verbReopen
	return nil
}

func (d *Decision) checkFail(ch *change) *Refusal {
	t := ch.t
	switch {
	case !t.Open():
		return Refuse("task-closed", t.ID+" cannot fail", alreadyClosed(t), "make a new task, or open it again with status claimable")
	case !d.chief() && !d.owns(t) && !(t.Owner == "" && t.Creator == d.actor):
		return notYours(t, t.ID+" does not fail")
	case ch.reason == "":
		return Refuse("argument-invalid", t.ID+" does not fail", "no failure_reason was given", "say why it cannot be done: others decide on it")
	}
	ch.verb = verbFail
	return nil
}

func (d *Decision) checkCancel(ch *change) *Refusal {
	t := ch.t
	switch {
	case !t.Open() && t.Status != failed:
		return Refuse("task-closed", t.ID+" cannot be cancelled", alreadyClosed(t), "make a new task, or open it again with status claimable")
	case !d.chief() && t.Creator != d.actor:
		return Refuse("task-not-yours", t.ID+" is not cancelled", "only the Lead, the operator and who created it can", "ask the Lead, or set it to failed with a reason")
	}
	ch.verb = verbCancel
	return nil
}

// apply emits a checked change and tells those concerned.
func (d *Decision) apply(ch *change) {
	t, board := ch.t, d.onBoard()
	before := t.Owner
	if ch.edit != nil {
		d.emit(ch.edit)
		board.tell(t, "task.updated", "")
	}
	if ch.owner != nil && *ch.owner != t.Owner && ch.verb != verbRelease {
		d.emit(&rollcallv1.TaskReassigned{Task: t.ID, Owner: *ch.owner, By: d.actor})
	}
	d.applyVerb(ch, board)
	board.assigned(t, before)
	board.settle()
}

func (d *Decision) applyVerb(ch *change, board *board) {
	t := ch.t
	switch ch.verb {
	case verbClaim:
		d.emit(&rollcallv1.TaskClaimed{Task: t.ID, Owner: *ch.owner, By: d.actor})
	case verbRelease:
		concerned := d.concerned(t)
		d.emit(&rollcallv1.TaskReleased{Task: t.ID, By: d.actor})
		if ch.owner != nil && *ch.owner != "" {
			d.emit(&rollcallv1.TaskReassigned{Task: t.ID, Owner: *ch.owner, By: d.actor})
		}
		board.note(concerned, "task.released", t.ID, fmt.Sprintf("Task %s %q is free again", t.ID, t.Title))
	case verbReopen:
		d.reopen(t, ch.reason, board)
	case verbFail:
		d.emit(&rollcallv1.TaskFailed{Task: t.ID, Reason: ch.reason, By: d.actor})
		board.tell(t, "task.failed", ch.reason)
	case verbCancel:
		d.cancel(t, ch.reason, board)
	}
}

// cancel cancels a task. Cancelling a failed one clears the unfinished work
// behind it too; its failure is kept as evidence.
func (d *Decision) cancel(t *Task, reason string, board *board) {
	wasFailed := t.Status == failed
	d.emit(&rollcallv1.TaskCancelled{Task: t.ID, Reason: reason, By: d.actor})
	board.tell(t, "task.cancelled", reason)
	if !wasFailed {
		return
	}
	for _, dep := range d.State().dependents(t.ID) {
		if dep.waiting() {
			d.emit(&rollcallv1.TaskCancelled{Task: dep.ID, Reason: t.ID + " was cancelled", By: d.actor})
			board.tell(dep, "task.cancelled", dep.Reason)
		}
	}
}

// assigned tells a new owner of its task, and the old one that it lost it.
func (b *board) assigned(t *Task, before string) {
	s := b.d.State()
	owner, old := s.Recipient(t.Owner), s.Recipient(before)
	if owner == old {
		return
	}
	if old != nil && old.ID != b.d.actor {
		b.note([]string{old.ID}, "task.reassigned", t.ID, fmt.Sprintf("Task %s %q is no longer yours", t.ID, t.Title))
	}
	switch {
	case owner == nil || owner.ID == b.d.actor:
	case t.Status == claimable || t.Status == inProgress:
		b.ready = append(b.ready, t)
	case t.Open():
		b.note([]string{owner.ID}, "task.assigned", t.ID, "You will own "+taskLine(t))
	}
}
