package domain

import (
	"fmt"
	"slices"
	"strings"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Operations of a replan.
const (
	OpAdd    = "add"
	OpRevise = "revise"
	OpCancel = "cancel"
)

// Operation is one change of a team's plan.
type Operation struct {
	// Op is add, revise or cancel.
	Op string
	Assignment
	// Redepend is true when DependsOn replaces what a revised task depends on.
	Redepend bool
	// Reason of a revision or cancellation.
	Reason string
}

// Outcome is what became of an operation.
type Outcome struct {
	Operation
	// Refusal is nil when it was done.
	Refusal *Refusal
	// Also names members that the operation concerned beside its own.
	Also []string
}

// Replan applies operations in order and reports each: what is refused changes
// nothing, and the others are done all the same. An atomic replan is done whole
// or not at all; then it reports the operation that was refused.
func (d *Decision) Replan(operations []Operation, atomic bool) (outcomes []Outcome, done bool, refusal *Refusal) {
	const what = "the plan is not changed"
	if d.State().ActiveTeam() == nil {
		return nil, false, noTeam(what)
	}
	if len(operations) == 0 {
		return nil, false, Refuse("argument-invalid", what, "there are no operations", "name at least one: add, revise or cancel")
	}
	if atomic {
		if failed := d.trial().replan(operations, true); failed[len(failed)-1].Refusal != nil {
			return failed, false, nil
		}
	}
	return d.replan(operations, false), true, nil
}

// trial is a decision on a copy of the state, which is thrown away.
func (d *Decision) trial() *Decision {
	data, err := d.State().Marshal()
	if err != nil { // it is saved as a snapshot again and again
		panic(fmt.Sprintf("domain: copy the state: %v", err))
	}
	s, err := Unmarshal(data)
	if err != nil {
		panic(fmt.Sprintf("domain: copy the state: %v", err))
	}
	return &Decision{b: &Batch{s: s, r: d.b.r, limits: d.b.limits, commit: &rollcallv1.Commit{
		Version: s.Version, Epoch: s.Epoch, Time: d.b.commit.GetTime(), EvolveVersion: EvolveVersion,
	}}, actor: d.actor}
}

// replan applies operations in order, all of them or up to the first refusal.
func (d *Decision) replan(operations []Operation, stop bool) []Outcome {
	var outcomes []Outcome
	for _, op := range operations {
		before := len(d.b.commit.GetEvents())
		o := Outcome{Operation: op}
		if o.Also, o.Refusal = d.operate(op); o.Refusal != nil {
			d.b.mustNotHaveChanged(before, o.Refusal)
		}
		outcomes = append(outcomes, o)
		if stop && o.Refusal != nil {
			break
		}
	}
	return outcomes
}

func (d *Decision) operate(op Operation) (also []string, refusal *Refusal) {
	switch op.Op {
	case OpAdd:
		_, refusal = d.AddAssignment(op.Assignment)
		return nil, refusal
	case OpRevise:
		return d.revise(op)
	case OpCancel:
		return d.cancelBranch(op.Name, op.Reason)
	}
	return nil, Refuse("argument-invalid", fmt.Sprintf("%q is not done", cut(op.Op, 100)), "it is no operation", "choose add, revise or cancel")
}

// assigned finds a member of the active team with its task.
func (d *Decision) assigned(name, what string) (*Member, *Task, *Refusal) {
	s := d.State()
	m := s.Named(Name(name))
	t := s.assignment(m)
	if t == nil {
		return nil, nil, Refuse("member-not-found", fmt.Sprintf("%q is not %s", cut(Name(name), 4*maxName), what), "the team has no such member", "choose one of: "+quoteAll(s.assignees()))
	}
	return m, t, nil
}

// revise gives a member its assignment anew: one that was delivered is opened
// again and marks what was built on it stale, one that failed is tried again,
// one that has not begun gets another brief.
func (d *Decision) revise(op Operation) (also []string, refusal *Refusal) {
	s := d.State()
	m, t, refusal := d.assigned(op.Name, "revised")
	if refusal != nil {
		return nil, refusal
	}
	what := m.Name + " is not revised"
	switch {
	case t.Status == cancelled:
		return nil, Refuse("task-closed", what, "it was cancelled", "add a member with a new name")
	case t.Status == inProgress && m.Run != nil:
		return nil, Refuse("member-working", what, "it works on its task now", "send it a message: it reads it at its next step")
	}
	if refusal := CheckBrief(m.Name, op.Brief); refusal != nil {
		return nil, refusal
	}
	needs, refusal := d.revisedNeeds(op, m, t)
	if refusal != nil {
		return nil, refusal
	}
	if t.Status == completed {
		if refusal := s.inUse(t, what); refusal != nil {
			return nil, refusal
		}
	}
	if op.Redepend {
		d.emit(&rollcallv1.TaskUpdated{Task: t.ID, By: d.actor, DependenciesChanged: true, Dependencies: needs})
	}
	board := d.onBoard()
	if t.ended() {
		also = d.reopen(t, reasonOf(op.Reason, "its assignment was revised"), board)
	} else if t.Status == inProgress {
		d.emit(&rollcallv1.TaskReleased{Task: t.ID, By: d.actor})
		d.emit(&rollcallv1.TaskReassigned{Task: t.ID, Owner: m.Name, By: d.actor})
	}
	d.brief(m.ID, op.Brief)
	board.settle()
	return also, nil
}

func reasonOf(given, otherwise string) string {
	if given = strings.TrimSpace(given); given != "" {
		return cut(Clean(given), 2000)
	}
	return otherwise
}

// revisedNeeds are the tasks that a revised one depends on from now.
func (d *Decision) revisedNeeds(op Operation, m *Member, t *Task) ([]string, *Refusal) {
	var needs []string
	for _, n := range op.DependsOn {
		dep, refusal := d.State().prerequisite(m.Name, Name(n), nil)
		if refusal != nil {
			return nil, refusal
		}
		needs = append(needs, dep.ID)
	}
	if !op.Redepend {
		return nil, nil
	}
	return d.dependencies(t.ID, needs)
}

// inUse refuses to open a delivered task again while something that depends on
// it is under way.
func (s *State) inUse(t *Task, what string) *Refusal {
	var open []string
	for _, dep := range s.dependents(t.ID) {
		if dep.Status != completed && dep.Status != cancelled {
			open = append(open, fmt.Sprintf("%s (%s%s)", dep.ID, ownerPrefix(dep), Word(dep.Status)))
		}
	}
	if len(open) == 0 {
		return nil
	}
	return Refuse("task-in-use", what, "tasks that depend on it are neither completed nor cancelled: "+quoteAll(open), "complete or cancel these first")
}

func ownerPrefix(t *Task) string {
	if t.Owner == "" {
		return ""
	}
	return t.Owner + ", "
}

// reopen opens a task that has ended and marks what was built on it stale.
// Nothing stale runs again by itself. It names the owners of what is stale.
func (d *Decision) reopen(t *Task, reason string, board *board) (stale []string) {
	d.emit(&rollcallv1.TaskReopened{Task: t.ID, Reason: reason, By: d.actor, Revision: t.Revision + 1})
	board.tell(t, "task.reopened", reason)
	for _, dep := range d.State().dependents(t.ID) {
		if dep.Status == completed {
			d.emit(&rollcallv1.TaskMarkedStale{Task: dep.ID, Reason: t.ID + " was opened again"})
			board.tell(dep, "task.stale", dep.StaleReason)
			stale = append(stale, dep.Owner)
		}
	}
	return stale
}

// cancelBranch gives up a member's assignment and all unfinished work that
// depends on it; these members are shut down. What failed stays as evidence.
func (d *Decision) cancelBranch(name, reason string) (also []string, refusal *Refusal) {
	m, t, refusal := d.assigned(name, "cancelled")
	if refusal != nil {
		return nil, refusal
	}
	switch t.Status {
	case completed:
		return nil, Refuse("task-closed", m.Name+" is not cancelled", "its task is delivered", "keep it, or give it another brief with revise")
	case cancelled:
		return nil, Refuse("task-closed", m.Name+" is not cancelled", alreadyClosed(t), "rest")
	}
	if refusal := checkText("the reason", reason, MaxTaskText); refusal != nil {
		return nil, refusal
	}
	reason = reasonOf(reason, "no longer wanted")
	branch := slices.DeleteFunc(d.State().dependents(t.ID), func(dep *Task) bool { return !dep.Open() && dep.Status != failed })
	board := d.onBoard()
	for _, gone := range append([]*Task{t}, branch...) {
		why := reason
		if gone != t {
			why = t.ID + " was cancelled"
			also = append(also, gone.Owner)
		}
		d.emit(&rollcallv1.TaskCancelled{Task: gone.ID, Reason: why, By: d.actor})
		if owner := d.State().Recipient(gone.Owner); owner != nil && owner.Task == gone.ID {
			d.shutDown(owner, why)
		}
	}
	board.settle()
	return also, nil
}
