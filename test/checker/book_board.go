package checker

import (
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const (
	pending    = rollcallv1.TaskStatus_TASK_STATUS_PENDING
	claimable  = rollcallv1.TaskStatus_TASK_STATUS_CLAIMABLE
	inProgress = rollcallv1.TaskStatus_TASK_STATUS_IN_PROGRESS
	completed  = rollcallv1.TaskStatus_TASK_STATUS_COMPLETED
	failed     = rollcallv1.TaskStatus_TASK_STATUS_FAILED
	blocked    = rollcallv1.TaskStatus_TASK_STATUS_BLOCKED
	cancelled  = rollcallv1.TaskStatus_TASK_STATUS_CANCELLED
)

type task struct {
	id, owner    string
	team, reason string
	status       rollcallv1.TaskStatus
	dependencies []string
	revision     uint32
}

// unbegun reports whether the status follows from the dependencies.
func (t *task) unbegun() bool {
	return t.status == pending || t.status == claimable || t.status == blocked
}

func (t *task) open() bool { return t.unbegun() || t.status == inProgress }

// undone reports whether a task that there may be is neither delivered nor given up.
func (t *task) undone() bool { return t == nil || t.open() }

func (b *book) enterBoard(f fact) bool {
	id, _, ok := f.taskEvent()
	if !ok {
		return false
	}
	if c := f.GetTaskCreated(); c != nil {
		b.tasks[id] = &task{id: id, owner: c.GetOwner(), team: c.GetTeam(), status: c.GetStatus(), dependencies: slices.Clone(c.GetDependencies())}
		return true
	}
	t := b.tasks[id]
	if t == nil {
		return true
	}
	switch k := f.GetKind().(type) {
	case *rollcallv1.Event_TaskUpdated:
		if k.TaskUpdated.Owner != nil {
			t.owner = k.TaskUpdated.GetOwner()
		}
		if k.TaskUpdated.GetDependenciesChanged() {
			t.dependencies = slices.Clone(k.TaskUpdated.GetDependencies())
		}
	case *rollcallv1.Event_TaskPromoted:
		t.status = k.TaskPromoted.GetStatus()
	case *rollcallv1.Event_TaskClaimed:
		t.status, t.owner = inProgress, k.TaskClaimed.GetOwner()
	case *rollcallv1.Event_TaskReleased:
		t.owner = ""
		if t.status == inProgress {
			t.status = claimable
		}
	case *rollcallv1.Event_TaskReassigned:
		t.owner = k.TaskReassigned.GetOwner()
	case *rollcallv1.Event_TaskCompleted:
		t.status = completed
		if m := b.members[k.TaskCompleted.GetBy()]; m != nil && m.run != nil {
			m.run.delivered = true
		}
	case *rollcallv1.Event_TaskFailed:
		t.status = failed
	case *rollcallv1.Event_TaskBlocked:
		t.status, t.reason = blocked, k.TaskBlocked.GetReason()
	case *rollcallv1.Event_TaskCancelled:
		t.status = cancelled
	case *rollcallv1.Event_TaskReopened:
		t.status, t.revision = pending, k.TaskReopened.GetRevision()
	}
	return true
}

// demanded is the status that dependencies demand of a task that is not begun:
// blocked by one that failed, was cancelled, is blocked or is missing, pending
// while one is not completed, else claimable.
func (b *book) demanded(t *task) rollcallv1.TaskStatus {
	want := claimable
	for _, id := range t.dependencies {
		switch d := b.tasks[id]; {
		case d == nil || d.status == failed || d.status == cancelled || d.status == blocked:
			return blocked
		case d.status != completed:
			want = pending
		}
	}
	return want
}

// circle reports whether a task depends on itself, directly or not.
func (b *book) circle(t *task) bool {
	seen := map[string]bool{}
	open := slices.Clone(t.dependencies)
	for len(open) > 0 {
		id := open[len(open)-1]
		open = open[:len(open)-1]
		if id == t.id {
			return true
		}
		if d := b.tasks[id]; d != nil && !seen[id] {
			seen[id] = true
			open = append(open, d.dependencies...)
		}
	}
	return false
}
