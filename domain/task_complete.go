package domain

import (
	"fmt"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// CompleteTask delivers a task: a summary and paths of files. Whoever owns it
// can; one that nobody owns is claimed by completing it. What depends on it is
// promoted in the same commit.
func (d *Decision) CompleteTask(id, result string, paths []string) (*Task, *Refusal) {
	t, refusal := d.FindTask(id)
	if refusal != nil {
		return nil, refusal
	}
	me := d.Caller()
	what := fmt.Sprintf("%s cannot be completed", t.ID)
	switch {
	case t.Owner != "" && t.Owner != me.Name:
		return nil, notYours(t, what)
	case t.Status == completed || t.Status == cancelled || t.Status == failed:
		return nil, Refuse("task-closed", what, alreadyClosed(t), "make a new task, or have it opened again (task_update, status claimable)")
	case t.Status == blocked:
		return nil, Refuse("task-not-claimable", what, "it is blocked: "+t.Reason, "tell the Lead, or have its dependencies changed")
	case t.Status == pending:
		return nil, Refuse("task-not-claimable", what, "it waits for "+quoteAll(d.State().unfinished(t)), "complete those first")
	}
	if refusal := checkText("the result", result, MaxTaskText); refusal != nil {
		return nil, refusal
	}
	cleaned, refusal := d.checkPaths(me, paths)
	if refusal != nil {
		return nil, refusal
	}
	if t.Status == claimable {
		d.emit(&rollcallv1.TaskClaimed{Task: t.ID, Owner: me.Name, By: me.ID})
	}
	d.complete(t, result, cleaned)
	return t, nil
}

func (d *Decision) complete(t *Task, result string, paths []string) {
	d.emit(&rollcallv1.TaskCompleted{Task: t.ID, Delivery: &rollcallv1.Delivery{Summary: result, Paths: paths}, By: d.actor})
	board := d.onBoard()
	detail := result
	if paths := d.State().DeliveredPaths(t); len(paths) > 0 {
		detail = fmt.Sprintf("%s (files: %s)", detail, cut(quoteAll(paths), 500))
	}
	board.tell(t, "task.completed", detail)
	board.settle()
}

// alreadyClosed says why nothing more is done with a task that has ended.
func alreadyClosed(t *Task) string { return "it is " + Word(t.Status) + " already" }

// changeTask is the operator's hand on the board.
func (d *Decision) changeTask(c *rollcallv1.ChangeTask) (string, *Refusal) {
	if !d.hasBoard() {
		return "", Refuse("no-board", "the task is not changed", fmt.Sprintf("a conversation with the contract %s has no board", d.State().Contract), "start one with: rollcall run --contract mailbox")
	}
	d.actor = Operator
	if d.contract().Policy().Assignments {
		return d.changeAssignment(c)
	}
	if c.GetOperation() == rollcallv1.ChangeTask_OPERATION_ADD {
		t, refusal := d.CreateTask(NewTask{Title: c.GetTitle(), Description: c.GetDescription(), Owner: c.GetOwner(), Dependencies: c.GetDependencies()})
		if refusal != nil {
			return "", refusal
		}
		return t.ID, nil
	}
	t, refusal := d.FindTask(c.GetTask())
	if refusal != nil {
		return "", refusal
	}
	owner := c.GetOwner()
	switch c.GetOperation() {
	case rollcallv1.ChangeTask_OPERATION_ASSIGN:
		_, refusal = d.UpdateTask(TaskChange{Task: t.ID, Owner: &owner})
	case rollcallv1.ChangeTask_OPERATION_DONE:
		refusal = d.done(t, c.GetText(), c.GetPaths())
	case rollcallv1.ChangeTask_OPERATION_FAIL:
		_, refusal = d.UpdateTask(TaskChange{Task: t.ID, Status: "failed", Reason: c.GetText()})
	case rollcallv1.ChangeTask_OPERATION_CANCEL:
		_, refusal = d.UpdateTask(TaskChange{Task: t.ID, Status: "cancelled", Reason: c.GetText()})
	default:
		refusal = Refuse("argument-invalid", "the task is not changed", "the operation is unknown", "choose add, assign, done, fail or cancel")
	}
	return t.ID, refusal
}

// done completes any open task by the operator's word.
func (d *Decision) done(t *Task, result string, paths []string) *Refusal {
	if !t.Open() {
		return Refuse("task-closed", fmt.Sprintf("%s cannot be completed", t.ID), alreadyClosed(t), "add a new task")
	}
	if refusal := checkText("the result", result, MaxTaskText); refusal != nil {
		return refusal
	}
	var cleaned []string
	for _, p := range paths {
		c, refusal := CleanPath(p)
		if refusal != nil {
			return refusal
		}
		cleaned = append(cleaned, c)
	}
	d.complete(t, result, cleaned)
	return nil
}
