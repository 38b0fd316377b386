package domain

import (
	"slices"
	"time"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Short names of the task states.
const (
	pending    = rollcallv1.TaskStatus_TASK_STATUS_PENDING
	claimable  = rollcallv1.TaskStatus_TASK_STATUS_CLAIMABLE
	inProgress = rollcallv1.TaskStatus_TASK_STATUS_IN_PROGRESS
	completed  = rollcallv1.TaskStatus_TASK_STATUS_COMPLETED
	failed     = rollcallv1.TaskStatus_TASK_STATUS_FAILED
	blocked    = rollcallv1.TaskStatus_TASK_STATUS_BLOCKED
	cancelled  = rollcallv1.TaskStatus_TASK_STATUS_CANCELLED
)

// Task is a unit of work on the board.
type Task struct {
	ID           string
	Title        string
	Description  string   `json:",omitempty"`
	Owner        string   `json:",omitempty"`
	Dependencies []string `json:",omitempty"`
	// Creator is a member id, "operator" or "framework".
	Creator string
	// Team is empty when the task stands outside any team.
	Team   string `json:",omitempty"`
	Status rollcallv1.TaskStatus
	// Reason names what blocks the task, or why it failed or was cancelled.
	Reason string `json:",omitempty"`
	// Failure is kept when a failed task is cancelled or tried again.
	Failure string `json:",omitempty"`
	// Told is what the Lead knows the task's end from: a report's id, or "lead"
	// when it caused it; empty when it does not know.
	Told string `json:",omitempty"`
	// Result, Paths and CompletedBy (a member id or "operator") of a completed task.
	Result      string   `json:",omitempty"`
	Paths       []string `json:",omitempty"`
	CompletedBy string   `json:",omitempty"`
	// Revision counts reopenings.
	Revision    uint32 `json:",omitempty"`
	Stale       bool   `json:",omitempty"`
	StaleReason string `json:",omitempty"`
	// Claim is the version of the commit that claimed the task: the claim's token.
	Claim   uint64 `json:",omitempty"`
	Created time.Time
	Updated time.Time
}

// Open reports whether the task is unfinished: pending, claimable, blocked or
// in progress.
func (t *Task) Open() bool { return t.waiting() || t.Status == inProgress }

// ended reports whether the task came to a result, good or bad.
func (t *Task) ended() bool { return t.Status == completed || t.Status == failed }

// waiting reports whether the task's status follows from its dependencies.
func (t *Task) waiting() bool {
	return t.Status == pending || t.Status == claimable || t.Status == blocked
}

// OpenTasks are the unfinished tasks, in order.
func (s *State) OpenTasks() []*Task {
	var open []*Task
	for _, t := range s.Tasks {
		if t.Open() {
			open = append(open, t)
		}
	}
	return open
}

// dependents are all tasks that depend on the task, directly or not, in order.
func (s *State) dependents(id string) []*Task {
	reached := map[string]bool{id: true}
	for grown := true; grown; {
		grown = false
		for _, t := range s.Tasks {
			if !reached[t.ID] && slices.ContainsFunc(t.Dependencies, func(d string) bool { return reached[d] }) {
				reached[t.ID], grown = true, true
			}
		}
	}
	var found []*Task
	for _, t := range s.Tasks {
		if t.ID != id && reached[t.ID] {
			found = append(found, t)
		}
	}
	return found
}

// path lists the tasks from one to another along dependencies; nil when there
// is no way.
func (s *State) path(from, to string, seen map[string]bool) []string {
	if from == to {
		return []string{to}
	}
	t := s.Task(from)
	if t == nil || seen[from] {
		return nil
	}
	seen[from] = true
	for _, d := range t.Dependencies {
		if rest := s.path(d, to, seen); rest != nil {
			return append([]string{from}, rest...)
		}
	}
	return nil
}

// unfinished are the dependencies that are not completed.
func (s *State) unfinished(t *Task) []string {
	var open []string
	for _, d := range t.Dependencies {
		if dep := s.Task(d); dep == nil || dep.Status != completed {
			open = append(open, d)
		}
	}
	return open
}

// dependenciesFirst are all tasks, each after those it depends on.
func (s *State) dependenciesFirst() []*Task {
	ordered := make([]*Task, 0, len(s.Tasks))
	seen := map[string]bool{}
	var visit func(t *Task)
	visit = func(t *Task) {
		if t == nil || seen[t.ID] {
			return
		}
		seen[t.ID] = true
		for _, d := range t.Dependencies {
			visit(s.Task(d))
		}
		ordered = append(ordered, t)
	}
	for _, t := range s.Tasks {
		visit(t)
	}
	return ordered
}
