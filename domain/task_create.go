package domain

import (
	"fmt"
	"slices"
	"strings"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// NewTask is a task to be put on the board.
type NewTask struct {
	Title       string
	Description string
	// Owner is any name; "user" means that the operator must act.
	Owner string
	// Dependencies are ids of tasks that must be completed first.
	Dependencies []string
}

// CreateTask puts a task on the board. It needs no team.
func (d *Decision) CreateTask(n NewTask) (*Task, *Refusal) {
	s := d.State()
	name, refusal := d.taskTitle(n.Title)
	if refusal != nil {
		return nil, refusal
	}
	if refusal := checkText("the description", n.Description, MaxTaskText); refusal != nil {
		return nil, refusal
	}
	owner, refusal := d.taskOwner(n.Owner)
	if refusal != nil {
		return nil, refusal
	}
	id := nth("t", uint64(len(s.Tasks)+1))
	dependencies, refusal := d.dependencies(id, n.Dependencies)
	if refusal != nil {
		return nil, refusal
	}
	if len(s.Tasks) >= d.b.limits.Tasks {
		return nil, tooMany("tasks", d.b.limits.Tasks, len(s.Tasks))
	}
	var team string
	if t := s.ActiveTeam(); t != nil {
		team = t.ID
	}
	status, reason := s.demanded(dependencies)
	made := status
	if made == blocked { // the reason is an event of its own
		made = pending
	}
	d.emit(&rollcallv1.TaskCreated{
		Task: id, Title: name, Description: n.Description, Owner: owner, Dependencies: dependencies, Creator: d.actor, Team: team, Status: made,
	})
	if status == blocked {
		d.emit(&rollcallv1.TaskBlocked{Task: id, Reason: reason})
	}
	d.tellNew(s.Task(id))
	return s.Task(id), nil
}

// tellNew tells the owner of a new task, and the Lead of one that nobody owns.
func (d *Decision) tellNew(t *Task) {
	owner := d.State().Recipient(t.Owner)
	switch {
	case owner != nil && owner.ID == d.actor:
	case owner != nil && t.Status == claimable:
		d.ready(t, 1)
	case owner != nil:
		d.notify(owner.ID, "task.assigned", t.ID, "You will own "+taskLine(t))
	case !d.chief() || d.actor == Operator:
		d.notify(LeadID, "task.created", t.ID, "New: "+taskLine(t))
	}
}

func (d *Decision) taskTitle(raw string) (string, *Refusal) {
	name, refusal := title("the task's title", raw)
	if refusal == nil && name == "" {
		refusal = Refuse("text-empty", "the task is refused", "its title is empty", "give it a short title")
	}
	return name, refusal
}

func (d *Decision) taskOwner(raw string) (string, *Refusal) {
	if refusal := checkText("the owner", raw, 4*MaxTitle); refusal != nil {
		return "", refusal
	}
	owner := ownerName(raw)
	if m := d.State().Named(owner); m != nil && !m.Alive() {
		return "", Refuse("member-shut-down", "the task cannot belong to "+owner, "that member was shut down", "choose one of: "+quoteAll(append(d.State().aliveNames(), User)))
	}
	return owner, nil
}

// dependencies checks what a task depends on: known tasks, and no circle.
func (d *Decision) dependencies(task string, ids []string) ([]string, *Refusal) {
	s := d.State()
	var known []string
	for _, id := range ids {
		if id == task {
			return nil, cycle(task, []string{task, task})
		}
		if s.Task(id) == nil {
			return nil, Refuse("dependency-not-found", "the dependencies are refused", fmt.Sprintf("there is no task %q", cut(id, 100)), "choose from: "+d.taskIDs())
		}
		if !slices.Contains(known, id) {
			known = append(known, id)
		}
		if way := s.path(id, task, map[string]bool{}); way != nil {
			return nil, cycle(task, append([]string{task}, way...))
		}
	}
	return known, nil
}

func cycle(task string, way []string) *Refusal {
	return Refuse("task-cycle", fmt.Sprintf("%s cannot depend on that", task), fmt.Sprintf("tasks would wait for each other: %s", strings.Join(way, " -> ")), "leave one of these dependencies out")
}

// taskIDs lists the tasks one can name.
func (d *Decision) taskIDs() string {
	var ids []string
	for _, t := range d.State().Tasks {
		ids = append(ids, t.ID)
	}
	return cut(quoteAll(ids), 2000)
}
