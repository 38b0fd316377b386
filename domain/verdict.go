package domain

import (
	"fmt"
	"strings"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Verdict is how a conversation stands when nothing is due.
type Verdict struct {
	// Status is done, failed, waiting or budget; Exit is 0, 7, 6 or 8.
	Status string
	Exit   int
	// Why is a sentence for the operator; empty when done.
	Why string
	// NeedsOperator lists what only the operator can do.
	NeedsOperator []Need
}

// Need is one thing that only the operator can do.
type Need struct {
	// Kind is task, question or approval.
	Kind string
	// ID of the task, of the approval, or of the message that asks.
	ID string
}

// Verdict judges the conversation; it means something only when Due is empty.
func (s *State) Verdict() Verdict {
	needs := s.needs()
	verdict := func(status string, exit int, why string) Verdict {
		return Verdict{Status: status, Exit: exit, Why: why, NeedsOperator: needs}
	}
	why := s.unfinishedWork()
	switch {
	case why == "" && len(needs) == 0:
		return verdict("done", 0, "")
	case s.stoppedByBudget():
		return verdict("budget", 8, s.budgetWhy())
	case len(needs) > 0:
		return verdict("waiting", 6, "the operator must act: "+needsText(needs))
	case s.Paused:
		return verdict("waiting", 6, "the conversation is paused")
	case s.interruptedByHand():
		return verdict("waiting", 6, "the operator interrupted the work")
	}
	return verdict("failed", 7, why)
}

// unfinishedWork says in a sentence what is not done; empty when all is.
func (s *State) unfinishedWork() string {
	if open := s.OpenTasks(); len(open) > 0 {
		if len(open) == 1 {
			return "1 task is open: " + open[0].ID
		}
		return fmt.Sprintf("%d tasks are open: %s", len(open), taskIDs(open))
	}
	var bad []*Task
	for _, t := range s.Tasks {
		if t.Status == failed && !s.dissolvedByLead(t.Team) {
			bad = append(bad, t)
		}
	}
	if len(bad) > 0 {
		if len(bad) == 1 {
			return "task " + bad[0].ID + " failed"
		}
		return fmt.Sprintf("%d tasks failed: %s", len(bad), taskIDs(bad))
	}
	for _, m := range s.Members {
		switch {
		case m.Run != nil:
			return m.Name + " has an open run"
		case m.Held && (m.IsLead() || s.hasWaking(m)):
			return fmt.Sprintf("the last run of %s ended early: %s", m.Name, failure(m))
		case m.Alive() && s.hasWaking(m):
			return m.Name + " has mail that it could not read"
		}
	}
	return ""
}

func (s *State) dissolvedByLead(team string) bool {
	t := s.Team(team)
	return t != nil && !t.Active && t.DissolvedBy == LeadID
}

// stoppedByBudget reports whether a budget keeps somebody from working.
func (s *State) stoppedByBudget() bool {
	for _, m := range s.Members {
		if m.outOfBudget() || m.Alive() && s.hasWaking(m) && !m.Held && s.spent() {
			return true
		}
	}
	return false
}

// budgetWhy says which budget that is, and what is left of it.
func (s *State) budgetWhy() string {
	for _, m := range s.Members {
		if m.outOfBudget() && m.LastDetail != "" {
			return "a budget is used up: " + m.LastDetail
		}
	}
	return "a budget is used up"
}

func (s *State) interruptedByHand() bool {
	for _, m := range s.Members {
		if m.Held && m.LastReason == rollcallv1.FinishReason_FINISH_REASON_INTERRUPTED {
			return true
		}
	}
	return false
}

// needs are the tasks of the operator that can start, the approvals that are
// pending, and the questions that members ask him and sleep on.
func (s *State) needs() []Need {
	var needs []Need
	for _, t := range s.Tasks {
		if t.Owner == User && (t.Status == claimable || t.Status == inProgress) {
			needs = append(needs, Need{Kind: "task", ID: t.ID})
		}
	}
	for _, a := range s.PendingApprovals() {
		needs = append(needs, Need{Kind: "approval", ID: a.ID})
	}
	for _, m := range s.Members {
		for _, w := range m.Waits {
			if w.Awaited == User {
				needs = append(needs, Need{Kind: "question", ID: w.Message})
			}
		}
	}
	return needs
}

// Status of the conversation in one word: working, waiting, paused or idle.
func (s *State) Status() string {
	if s.Paused {
		return "paused"
	}
	sleeping := len(s.needs()) > 0 || s.stoppedByBudget()
	for _, m := range s.Members {
		if m.Run != nil && !m.Run.held() || s.runnable(m) {
			return "working"
		}
		sleeping = sleeping || m.Status == waiting
	}
	if sleeping {
		return "waiting"
	}
	return "idle"
}

func needsText(needs []Need) string {
	var parts []string
	for _, n := range needs {
		parts = append(parts, n.Kind+" "+n.ID)
	}
	return strings.Join(parts, ", ")
}

func taskIDs(tasks []*Task) string {
	var ids []string
	for _, t := range tasks {
		ids = append(ids, t.ID)
	}
	return strings.Join(ids, ", ")
}
