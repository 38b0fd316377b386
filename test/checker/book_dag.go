package checker

import (
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// contractDag is the contract of members with one assignment each.
const contractDag = "dag"

var dagDoes = map[string]work{
	"team_create":       {must: "TeamCreated", may: []string{"TaskCreated", "MemberAdded", "brief"}},
	"team_status":       {},
	"team_send_message": {must: "text"},
	"team_replan": {may: []string{
		"TaskCreated", "MemberAdded", "brief", "TaskUpdated", "TaskReopened", "TaskReleased", "TaskReassigned", "TaskCancelled", "MemberShutdown",
	}},
	"team_dissolve": {must: "TeamDissolved", may: []string{"MemberShutdown", "TaskCancelled"}},
	"complete":      {must: "TaskCompleted"},
}

// goesOn reports whether a run is open and not let go.
func (b *book) goesOn(run string) bool {
	r := b.runs[run]
	return r != nil && r.open && r.suspended == ""
}

// starts reports whether unread mail asks for a run now.
func (b *book) starts(l *letter) bool {
	if !wakes(l.GetKind()) || l.GetQuiet() || b.goesOn(l.GetAfterRun()) {
		return false
	}
	return l.GetKind() != rollcallv1.MailKind_MAIL_KIND_BRIEF || b.ready(b.members[l.GetTo()])
}

// ready reports whether all that a member's assignment depends on is delivered.
func (b *book) ready(m *member) bool {
	if m == nil || b.tasks[m.task] == nil {
		return true
	}
	t := b.tasks[m.task]
	return t.status != pending && t.status != blocked
}

// takesUp reports whether it is this member's own assignment: it is claimed by
// the start of its run, without a call.
func (b *book) takesUp(member, task string) bool {
	m := b.members[member]
	return m != nil && m.task != "" && m.task == task && m.run == nil
}

// assigned reports changes of the board that follow from a member's runs: it
// takes up its assignment when one starts, in the same commit; the framework
// fails it when one failed.
func (b *book) assigned(f fact, taken *[]string) bool {
	if s := f.GetRunStarted(); s != nil {
		*taken = slices.DeleteFunc(*taken, func(id string) bool { return id == s.GetMember() })
		return false
	}
	if c := f.GetTaskClaimed(); c != nil && b.takesUp(c.GetBy(), c.GetTask()) {
		*taken = append(*taken, c.GetBy())
		return true
	}
	if r := f.GetTaskReopened(); r != nil && b.takesUp(r.GetBy(), r.GetTask()) {
		return true
	}
	if t := f.GetTaskFailed(); t != nil && t.GetBy() == framework {
		return slices.ContainsFunc(b.order, func(m *member) bool {
			return m.task == t.GetTask() && b.endedHere(m.id, rollcallv1.FinishReason_FINISH_REASON_FAILED)
		})
	}
	return false
}
