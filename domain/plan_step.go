package domain

import (
	"fmt"
	"strings"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// StepPlan is what the member's open model call depends on; false when there
// is none. It belongs to the version that started the call (Run.CallVersion):
// take it as soon as that commit is stored, before anything else is decided.
func (s *State) StepPlan(member string) (StepPlan, bool) {
	m := s.Member(member)
	if m == nil || m.Run == nil || m.Run.Phase != Calling {
		return StepPlan{}, false
	}
	plan := StepPlan{
		Key: s.Key, Version: s.Version, Member: m.view(), Run: m.Run.ID, Step: m.Run.Step, Attempt: m.Run.Attempt,
		Situation: s.situation(m), Names: map[string]string{}, Omitted: m.Omitted,
	}
	for _, other := range s.Members {
		plan.Names[other.ID] = other.Name
	}
	turns := m.Turns
	bound := s.Bindings[m.Run.Agent]
	if bound != nil {
		plan.Agent = bound.Place.Ref()
	}
	if bound != nil && bound.Memory == rollcallv1.MemoryPolicy_MEMORY_POLICY_FRESH {
		turns, plan.Omitted = turns[len(turns)-1:], 0
	} else {
		first, _ := fitting(turns, contextBytes)
		for _, t := range turns[:first] {
			plan.Omitted += len(t.Entries)
		}
		turns = turns[first:]
	}
	for _, t := range turns {
		for _, e := range t.Entries {
			entry := ContextEntry{Ref: e.Place.Ref()}
			for _, mail := range e.Mail {
				entry.Mail = append(entry.Mail, &rollcallv1.MessageRef{Message: mail.ID, Ref: mail.Place.Ref()})
			}
			plan.Context = append(plan.Context, entry)
		}
	}
	return plan, true
}

// Bounds of the situation, in lines.
const (
	maxOpenLines   = 100
	maxClosedLines = 20
)

// situation is the roster, the board and the open waits as the member is shown
// them: who and what, never the contents of anybody's work. It is empty in a
// conversation of one without tasks.
func (s *State) situation(me *Member) string {
	var lines []string
	if len(s.Members) > 1 {
		lines = append(lines, s.roster(me)...)
	}
	lines = append(lines, s.boardLines()...)
	if waits := s.waitLines(); len(waits) > 0 {
		lines = append(append(lines, "Open questions:"), waits...)
	}
	return strings.Join(lines, "\n")
}

func (s *State) roster(me *Member) []string {
	lines := []string{"Roster:"}
	if t := s.ActiveTeam(); t != nil && t.Name != "" {
		lines[0] = fmt.Sprintf("Team %s:", t.Name)
	}
	for _, m := range s.Members {
		if !m.Alive() {
			continue
		}
		line := fmt.Sprintf("- %s (%s): %s", m.Name, m.ID, Word(m.Status))
		if m == me {
			line += ", that is you"
		}
		if a := s.Agents[m.AgentType]; a.GetDescription() != "" && !m.IsLead() {
			line += ". " + cut(strings.Join(strings.Fields(a.GetDescription()), " "), 200)
		}
		lines = append(lines, line)
	}
	return lines
}

func (s *State) boardLines() []string {
	if len(s.Tasks) == 0 {
		return nil
	}
	var open, closed []string
	for _, t := range s.Tasks {
		if t.Open() {
			open = append(open, "- "+taskLine(t))
		} else {
			closed = append(closed, "- "+taskLine(t))
		}
	}
	lines := []string{"Board:"}
	if over := len(closed) - maxClosedLines; over > 0 {
		lines = append(lines, fmt.Sprintf("- … %d finished tasks before these", over))
		closed = closed[over:]
	}
	lines = append(lines, closed...)
	if over := len(open) - maxOpenLines; over > 0 {
		open = append(open[:maxOpenLines], fmt.Sprintf("- … %d open tasks more: see task_list", over))
	}
	return append(lines, open...)
}

func (s *State) waitLines() []string {
	var lines []string
	for _, m := range s.Members {
		for _, w := range m.Waits {
			lines = append(lines, fmt.Sprintf("- %s waits for %s to answer %s", m.Name, s.DisplayName(w.Awaited), w.Message))
		}
	}
	return lines
}
