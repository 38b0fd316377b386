package domain

import (
	"fmt"
	"strings"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// TaskChange is a change of a task; absent fields stay as they are.
type TaskChange struct {
	Task        string
	Title       *string
	Description *string
	Owner       *string
	// Dependencies replace the present ones when Redepend is true.
	Redepend     bool
	Dependencies []string
	// Status is empty, or what the task should become: in_progress (a claim),
	// claimable (released, or opened again), failed, cancelled.
	Status string
	// Reason of a failure or cancellation, or of opening it again.
	Reason string
}

// change is a checked TaskChange: what must be emitted.
type change struct {
	t    *Task
	edit *rollcallv1.TaskUpdated
	// owner is the new owner, when it changes.
	owner *string
	// verb is what happens to the status: claim, release, reopen, fail, cancel.
	verb   string
	reason string
}

// UpdateTask changes a task. Everything is checked before anything happens.
func (d *Decision) UpdateTask(c TaskChange) (*Task, *Refusal) {
	t, refusal := d.FindTask(c.Task)
	if refusal != nil {
		return nil, refusal
	}
	ch := &change{t: t}
	if refusal := d.checkOwner(ch, c); refusal != nil {
		return nil, refusal
	}
	if refusal := d.checkStatus(ch, c); refusal != nil {
		return nil, refusal
	}
	if refusal := d.checkEdit(ch, c); refusal != nil {
		return nil, refusal
	}
	d.apply(ch)
	return t, nil
}

// FindTask finds a task by its id, or refuses and names the ids there are.
func (d *Decision) FindTask(id string) (*Task, *Refusal) {
	if t := d.State().Task(strings.TrimSpace(id)); t != nil {
		return t, nil
	}
	return nil, Refuse("task-not-found", fmt.Sprintf("there is no task %q", cut(id, 100)), "the board does not have it", "choose one of: "+d.taskIDs())
}

// mine reports whether the actor may change what the task is: its owner, its
// creator, anybody when nobody owns it, the Lead and the operator.
func (d *Decision) mine(t *Task) bool {
	return d.chief() || t.Owner == "" || d.owns(t) || t.Creator == d.actor
}

func (d *Decision) owns(t *Task) bool {
	c := d.Caller()
	return c != nil && t.Owner == c.Name || d.actor == Operator && t.Owner == User
}

func notYours(t *Task, what string) *Refusal {
	return Refuse("task-not-yours", what, fmt.Sprintf("%s belongs to %s and is %s", t.ID, t.Owner, Word(t.Status)),
		fmt.Sprintf("leave it to %s, or ask the Lead to assign it", t.Owner))
}

func (d *Decision) checkOwner(ch *change, c TaskChange) *Refusal {
	if c.Owner == nil {
		return nil
	}
	owner, refusal := d.taskOwner(*c.Owner)
	if refusal != nil {
		return refusal
	}
	if owner == ch.t.Owner {
		return nil
	}
	if ch.t.Status == inProgress && !d.chief() && !d.owns(ch.t) {
		return Refuse("task-claimed", fmt.Sprintf("%s cannot change hands", ch.t.ID), fmt.Sprintf("%s has claimed it and works on it", ch.t.Owner),
			fmt.Sprintf("leave it to %s, or ask the Lead to assign it", ch.t.Owner))
	}
	if !d.mine(ch.t) {
		return notYours(ch.t, fmt.Sprintf("%s cannot change hands", ch.t.ID))
	}
	if owner == "" && ch.t.Status == inProgress && c.Status == "" {
		ch.verb = verbRelease
	}
	ch.owner = &owner
	return nil
}

func (d *Decision) checkEdit(ch *change, c TaskChange) *Refusal {
	if c.Title == nil && c.Description == nil && !c.Redepend {
		if ch.verb == "" && ch.owner == nil && c.Owner == nil && c.Status == "" {
			return Refuse("argument-invalid", fmt.Sprintf("%s is not changed", ch.t.ID), "nothing to change was named", "give owner, status, title, description or dependencies")
		}
		return ch.closedRefusal()
	}
	if !d.mine(ch.t) {
		return notYours(ch.t, fmt.Sprintf("%s is not changed", ch.t.ID))
	}
	edit := &rollcallv1.TaskUpdated{Task: ch.t.ID, By: d.actor}
	if c.Title != nil {
		name, refusal := d.taskTitle(*c.Title)
		if refusal != nil {
			return refusal
		}
		edit.Title = &name
	}
	if c.Description != nil {
		if refusal := checkText("the description", *c.Description, MaxTaskText); refusal != nil {
			return refusal
		}
		edit.Description = c.Description
	}
	if c.Redepend {
		if ch.t.Status == inProgress && ch.verb != verbRelease {
			return Refuse("task-claimed", fmt.Sprintf("the dependencies of %s do not change", ch.t.ID), ch.t.Owner+" works on it", "have it released first (status claimable)")
		}
		dependencies, refusal := d.dependencies(ch.t.ID, c.Dependencies)
		if refusal != nil {
			return refusal
		}
		if status, reason := d.State().demanded(dependencies); ch.verb == verbClaim && status != claimable {
			return Refuse("task-not-claimable", fmt.Sprintf("%s cannot be claimed", ch.t.ID), "with these dependencies it is "+Word(status)+" "+reason, "claim it when they are completed")
		}
		edit.DependenciesChanged, edit.Dependencies = true, dependencies
	}
	ch.edit = edit
	return ch.closedRefusal()
}

// closedRefusal refuses changes to a finished task that do not open it again.
func (ch *change) closedRefusal() *Refusal {
	if ch.t.Open() || ch.verb == verbReopen || ch.edit == nil && ch.owner == nil {
		return nil
	}
	return Refuse("task-closed", fmt.Sprintf("%s cannot be changed", ch.t.ID), alreadyClosed(ch.t), "make a new task, or open it again with status claimable")
}
