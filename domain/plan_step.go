package domain

import (
	"fmt"
	"slices"
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
		Situation: s.situation(m), Names: s.displayNames(), Omitted: m.Omitted,
	}
	memory := rollcallv1.MemoryPolicy_MEMORY_POLICY_TRANSCRIPT
	if bound := s.Bindings[m.Run.Agent]; bound != nil {
		plan.Agent, memory = bound.Place.Ref(), bound.Memory
	}
	turns := s.recall(m, memory, &plan)
	for _, t := range turns {
		for _, e := range t.Entries {
			plan.Context = append(plan.Context, e.context())
		}
	}
	if memory != rollcallv1.MemoryPolicy_MEMORY_POLICY_FRESH {
		plan.Purpose = m.purpose(turns)
	}
	return plan, true
}

// purposeBytes bounds what is shown of a member's purpose beside its turns: the
// first message always, of the others the newest that fit.
const purposeBytes = 64 << 10

// purpose is the mail that says what the member is for and that none of the
// turns shows.
func (m *Member) purpose(turns []*Turn) []*rollcallv1.MessageRef {
	var shown []*rollcallv1.MessageRef
	room := uint64(purposeBytes)
	for i, mail := range slices.Backward(m.Purpose) {
		if consumedIn(turns, mail.ID) {
			continue
		}
		size := min(mail.Place.Size, ShownMailBytes)
		if i > 0 && size > room {
			continue
		}
		room -= min(size, room)
		shown = append(shown, mail.ref())
	}
	slices.Reverse(shown)
	return shown
}

// recall gives the turns that a request shows by the member's memory policy,
// and puts into the plan what it shows instead of the others.
func (s *State) recall(m *Member, memory rollcallv1.MemoryPolicy, plan *StepPlan) []*Turn {
	open := m.Turns[len(m.Turns)-1:]
	switch memory {
	case rollcallv1.MemoryPolicy_MEMORY_POLICY_FRESH:
		plan.Omitted = 0
		return open
	case rollcallv1.MemoryPolicy_MEMORY_POLICY_SUMMARY:
		plan.Omitted = 0
		if m.IsLead() && s.Answer.Version > 0 {
			plan.Context = append(plan.Context, ContextEntry{Ref: s.Answer.Ref()})
		}
		if lines := s.deliveryLines(m); len(lines) > 0 {
			plan.Situation = strings.TrimSpace(plan.Situation + "\nYou delivered:\n" + strings.Join(lines, "\n"))
		}
		return open
	}
	first, _ := fitting(m.Turns, contextBytes)
	for _, t := range m.Turns[:first] {
		plan.Omitted += len(t.Entries)
	}
	return m.Turns[first:]
}

// deliveryLines are the member's own completed tasks with their results, the
// newest as far as they fit.
func (s *State) deliveryLines(m *Member) []string {
	const line, all = 2 << 10, 16 << 10
	var lines []string
	size := 0
	for _, t := range slices.Backward(s.Tasks) {
		if t.Status != completed || t.CompletedBy != m.ID {
			continue
		}
		text := fmt.Sprintf("- %s %q: %s", t.ID, t.Title, cut(strings.Join(strings.Fields(t.Result), " "), line))
		if len(t.Paths) > 0 {
			text += ". Files: " + cut(strings.Join(t.Paths, ", "), line)
		}
		if size += len(text); size > all {
			lines = append(lines, "- … earlier ones do not fit here")
			break
		}
		lines = append(lines, text)
	}
	slices.Reverse(lines)
	return lines
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
	if me.IsSubagent() { // it works for a call, and in no team
		return ""
	}
	var lines []string
	if slices.ContainsFunc(s.Members, func(m *Member) bool { return m != me && !m.IsSubagent() }) {
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
		if !m.Alive() || m.IsSubagent() {
			continue
		}
		line := fmt.Sprintf("- %s (%s): %s", m.Name, m.ID, Word(m.Status))
		if m == me {
			line += ", that is you"
		} else if m.Held {
			line += ", after its turn ended: " + Word(m.LastReason)
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
		open = append(open[:maxOpenLines], fmt.Sprintf("- … %d open tasks more that do not fit here", over))
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
