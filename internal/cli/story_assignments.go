package cli

import (
	"fmt"
	"strings"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// learn notes what later sentences name, before a commit is told: tasks may
// depend on others that are made after them.
func (t *teller) learn(c *rollcallv1.Commit) {
	for _, e := range c.GetEvents() {
		switch k := e.GetKind().(type) {
		case *rollcallv1.Event_ConversationOpened:
			t.assigned = k.ConversationOpened.GetContract() == contractDag
		case *rollcallv1.Event_TaskCreated:
			t.owners[k.TaskCreated.GetTask()] = k.TaskCreated.GetOwner()
			t.titles[k.TaskCreated.GetTask()] = k.TaskCreated.GetTitle()
		}
	}
}

// assignments tells of the board where each member has one task: by member.
func (t *teller) assignments(e *rollcallv1.Event) (sentence, bool) {
	if !t.assigned {
		return sentence{}, false
	}
	switch k := e.GetKind().(type) {
	case *rollcallv1.Event_MemberAdded:
		if k.MemberAdded.GetTask() != "" { // its assignment tells of it
			return t.quietly(k.MemberAdded.GetMember(), "joined as %s (%s)", k.MemberAdded.GetMember(), k.MemberAdded.GetAgentType())
		}
	case *rollcallv1.Event_TaskCreated:
		c := k.TaskCreated
		what := fmt.Sprintf("gave %s %s", t.owner(c.GetTask()), t.task(c.GetTask()))
		if needs := c.GetDependencies(); len(needs) > 0 {
			what += ", to begin when " + t.deliverers(needs) + " delivered"
		}
		return t.by(c.GetCreator(), "%s", what)
	case *rollcallv1.Event_TaskUpdated:
		u := k.TaskUpdated
		if u.GetDependenciesChanged() && len(u.GetDependencies()) > 0 {
			return t.by(u.GetBy(), "%s now needs what %s delivered", t.owner(u.GetTask()), t.deliverers(u.GetDependencies()))
		} else if u.GetDependenciesChanged() {
			return t.by(u.GetBy(), "%s now needs nobody", t.owner(u.GetTask()))
		}
	case *rollcallv1.Event_TaskClaimed:
		return t.by(k.TaskClaimed.GetBy(), "began %s", t.task(k.TaskClaimed.GetTask()))
	case *rollcallv1.Event_TaskReleased:
		return t.quietly(k.TaskReleased.GetBy(), "took %s back", t.task(k.TaskReleased.GetTask()))
	case *rollcallv1.Event_TaskReassigned:
		return t.by(k.TaskReassigned.GetBy(), "gave %s %s anew", t.owner(k.TaskReassigned.GetTask()), t.task(k.TaskReassigned.GetTask()))
	}
	return t.ends(e)
}

// ends tells how assignments end, and begin again.
func (t *teller) ends(e *rollcallv1.Event) (sentence, bool) {
	switch k := e.GetKind().(type) {
	case *rollcallv1.Event_TaskCompleted:
		d := k.TaskCompleted.GetDelivery()
		what := "delivered " + t.task(k.TaskCompleted.GetTask())
		if len(d.GetPaths()) > 0 {
			what += " (" + oneLine(strings.Join(d.GetPaths(), ", "), titleColumns) + ")"
		}
		return t.by(k.TaskCompleted.GetBy(), "%s: %s", what, oneLine(d.GetSummary(), textColumns))
	case *rollcallv1.Event_TaskFailed:
		f := k.TaskFailed
		if f.GetBy() == domain.Framework {
			return sentence{who: t.owner(f.GetTask()), what: fmt.Sprintf("failed at %s%s", t.task(f.GetTask()), because(f.GetReason()))}, true
		}
	case *rollcallv1.Event_TaskBlocked:
		b := k.TaskBlocked
		return sentence{who: t.owner(b.GetTask()), what: fmt.Sprintf("cannot begin %s%s", t.task(b.GetTask()), because(b.GetReason()))}, true
	case *rollcallv1.Event_TaskCancelled:
		c := k.TaskCancelled
		return t.by(c.GetBy(), "cancelled %s of %s%s", t.task(c.GetTask()), t.owner(c.GetTask()), because(c.GetReason()))
	case *rollcallv1.Event_TaskReopened:
		r := k.TaskReopened
		if t.name(r.GetBy()) == t.owner(r.GetTask()) {
			return t.quietly(r.GetBy(), "tries %s again", t.task(r.GetTask()))
		}
		return t.by(r.GetBy(), "gave %s %s anew, revision %d%s", t.owner(r.GetTask()), t.task(r.GetTask()), r.GetRevision(), because(r.GetReason()))
	case *rollcallv1.Event_TaskMarkedStale:
		s := k.TaskMarkedStale
		return sentence{who: t.owner(s.GetTask()), what: fmt.Sprintf("has a stale delivery, %s%s", t.task(s.GetTask()), because(s.GetReason()))}, true
	}
	return sentence{}, false
}

// owner of a task, safe to print.
func (t *teller) owner(task string) string { return oneLine(t.owners[task], 24) }

// deliverers are those who have the tasks, with their verb: "Scout has",
// "Ana and Ben have".
func (t *teller) deliverers(tasks []string) string {
	const most = 6
	var names []string
	for _, id := range tasks[:min(len(tasks), most)] {
		names = append(names, t.owner(id))
	}
	if more := len(tasks) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if len(names) == 1 {
		return names[0] + " has"
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last] + " have"
}
