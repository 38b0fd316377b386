package domain

import (
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// applyBoard folds what happens to tasks. All of it is progress.
func (s *State) applyBoard(e *rollcallv1.Event) bool {
	var t *Task
	switch e := e.GetKind().(type) {
	case *rollcallv1.Event_TaskCreated:
		t = s.taskCreated(e.TaskCreated)
	case *rollcallv1.Event_TaskUpdated:
		if t = s.Task(e.TaskUpdated.GetTask()); t != nil {
			t.updated(e.TaskUpdated)
		}
	case *rollcallv1.Event_TaskPromoted:
		if t = s.Task(e.TaskPromoted.GetTask()); t != nil {
			t.Status, t.Reason = e.TaskPromoted.GetStatus(), ""
		}
	case *rollcallv1.Event_TaskClaimed:
		if t = s.Task(e.TaskClaimed.GetTask()); t != nil {
			t.Status, t.Reason, t.Owner, t.Claim = inProgress, "", e.TaskClaimed.GetOwner(), s.Version
		}
	case *rollcallv1.Event_TaskReleased:
		if t = s.Task(e.TaskReleased.GetTask()); t != nil {
			t.released()
		}
	case *rollcallv1.Event_TaskReassigned:
		if t = s.Task(e.TaskReassigned.GetTask()); t != nil {
			t.reassigned(e.TaskReassigned.GetOwner(), s.Version)
		}
	case *rollcallv1.Event_TaskCompleted:
		if t = s.Task(e.TaskCompleted.GetTask()); t != nil {
			s.taskCompleted(t, e.TaskCompleted)
		}
	case *rollcallv1.Event_TaskFailed:
		if t = s.Task(e.TaskFailed.GetTask()); t != nil {
			t.Status, t.Reason, t.Failure, t.Claim = failed, e.TaskFailed.GetReason(), e.TaskFailed.GetReason(), 0
			t.Told = toldBy(e.TaskFailed.GetBy())
		}
	case *rollcallv1.Event_TaskBlocked:
		if t = s.Task(e.TaskBlocked.GetTask()); t != nil {
			t.Status, t.Reason = blocked, e.TaskBlocked.GetReason()
		}
	case *rollcallv1.Event_TaskCancelled:
		if t = s.Task(e.TaskCancelled.GetTask()); t != nil {
			t.Status, t.Reason, t.Claim = cancelled, e.TaskCancelled.GetReason(), 0
		}
	case *rollcallv1.Event_TaskReopened:
		if t = s.Task(e.TaskReopened.GetTask()); t != nil {
			t.reopened(e.TaskReopened)
		}
	case *rollcallv1.Event_TaskMarkedStale:
		if t = s.Task(e.TaskMarkedStale.GetTask()); t != nil {
			t.Stale, t.StaleReason = true, e.TaskMarkedStale.GetReason()
		}
	default:
		return false
	}
	if t != nil {
		t.Updated = s.Time
	}
	s.Progress++
	return true
}

func (s *State) taskCreated(e *rollcallv1.TaskCreated) *Task {
	t := &Task{
		ID: e.GetTask(), Title: e.GetTitle(), Description: e.GetDescription(), Owner: e.GetOwner(),
		Dependencies: slices.Clone(e.GetDependencies()), Creator: e.GetCreator(), Team: e.GetTeam(),
		Status: e.GetStatus(), Created: s.Time,
	}
	s.Tasks = append(s.Tasks, t)
	return t
}

func (t *Task) updated(e *rollcallv1.TaskUpdated) {
	if e.Title != nil {
		t.Title = e.GetTitle()
	}
	if e.Description != nil {
		t.Description = e.GetDescription()
	}
	if e.Owner != nil {
		t.Owner = e.GetOwner()
	}
	if e.GetDependenciesChanged() {
		t.Dependencies = slices.Clone(e.GetDependencies())
	}
}

func (t *Task) released() {
	t.Owner, t.Claim = "", 0
	if t.Status == inProgress {
		t.Status = claimable
	}
}

// reassigned keeps a task in progress, under a new claim.
func (t *Task) reassigned(owner string, version uint64) {
	t.Owner = owner
	if t.Status == inProgress {
		t.Claim = version
	}
}

func (s *State) taskCompleted(t *Task, e *rollcallv1.TaskCompleted) {
	t.Status, t.Reason, t.Claim = completed, "", 0
	t.Result, t.Paths = e.GetDelivery().GetSummary(), slices.Clone(e.GetDelivery().GetPaths())
	t.CompletedBy, t.Told = e.GetBy(), toldBy(e.GetBy())
	t.Stale, t.StaleReason = false, ""
	m := s.Member(e.GetBy())
	if m != nil && m.Run != nil {
		m.Run.Delivered = true
	}
	if m != nil && !m.IsLead() {
		s.Reports = 0
	}
}

// toldBy: of what it did itself the Lead needs no report.
func toldBy(actor string) string {
	if actor == LeadID {
		return LeadID
	}
	return ""
}

func (t *Task) reopened(e *rollcallv1.TaskReopened) {
	t.Told = ""
	t.Status, t.Reason, t.Claim = pending, "", 0
	t.Result, t.Paths, t.CompletedBy = "", nil, ""
	t.Stale, t.StaleReason = false, ""
	t.Revision = e.GetRevision()
}
