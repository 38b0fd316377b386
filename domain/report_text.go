package domain

import (
	"fmt"
	"strings"
)

// maxReportLines bounds a team report, maxReportLine one delivery in it, in bytes.
const (
	maxReportLines = 40
	maxReportLine  = 600
)

// report is what the Lead is told. replaced is the report that this one takes
// the place of: what it said is said again.
func (s *State) report(assignments bool, replaced string) string {
	lines := []string{"Nobody is working and nothing is under way."}
	if s.othersWork() {
		lines[0] = "Something needs your decision while others go on."
	}
	if assignments {
		lines = append(lines, s.deliveredLines(replaced)...)
	}
	lines = append(lines, s.openLines()...)
	isNew := func(told string) bool { return told == "" || replaced != "" && told == replaced }
	for _, t := range s.Tasks {
		if t.Status == failed && isNew(t.Told) && !s.dissolvedByLead(t.Team) {
			lines = append(lines, "Failed: "+taskLine(t))
		}
	}
	for _, m := range s.Members {
		if !m.IsLead() && m.failed() {
			lines = append(lines, fmt.Sprintf("%s failed (%s). Writing to it makes it try again.", m.Name, failure(m)))
		}
	}
	if over := len(lines) - maxReportLines; over > 0 {
		lines = append(lines[:maxReportLines], fmt.Sprintf("… and %d lines more that do not fit here.", over))
	}
	return strings.Join(append(lines, s.reportAdvice(assignments)), "\n")
}

func (s *State) reportAdvice(assignments bool) string {
	switch {
	case !assignments:
		return "Decide what must happen with each, or tell the operator why it stays open."
	case len(s.OpenTasks()) == 0 && !s.untoldFailure():
		return "All is delivered. Check it. Then accept it with team_dissolve and answer the operator, or change it with team_replan."
	}
	return "Decide what must happen: team_replan cancels, revises and adds, a message lets a member go on. Or tell the operator why it stays open."
}

// deliveredLines are the deliveries that the Lead has not been told of.
func (s *State) deliveredLines(replaced string) []string {
	var lines []string
	for _, m := range s.Members {
		t := s.assignment(m)
		if t == nil || t.Status != completed || t.Told != "" && t.Told != replaced {
			continue
		}
		line := fmt.Sprintf("Delivered: %s (%s): %s", m.Name, t.ID, cut(strings.Join(strings.Fields(t.Result), " "), maxReportLine))
		if paths := s.DeliveredPaths(t); len(paths) > 0 {
			line += ". Files: " + cut(strings.Join(paths, ", "), maxReportLine)
		}
		lines = append(lines, line)
	}
	return lines
}

func (s *State) openLines() []string {
	open := s.OpenTasks()
	if len(open) == 0 {
		return nil
	}
	lines := []string{"Open tasks:"}
	for _, t := range open {
		lines = append(lines, "- "+taskLine(t)+s.leftBy(t))
	}
	return lines
}

// leftBy says how the turn of a task's owner ended, who had begun it and does
// not work on it. A failure has a line of its own in the report.
func (s *State) leftBy(t *Task) string {
	m := s.Recipient(t.Owner)
	if t.Status != inProgress || m == nil || m.Run != nil || m.failed() {
		return ""
	}
	switch {
	case m.outOfBudget():
		return fmt.Sprintf(". %s used up its budget; writing to it lets it go on", m.Name)
	case m.Held:
		return fmt.Sprintf(". %s was interrupted; writing to it lets it go on", m.Name)
	case len(m.Waits) > 0:
		return fmt.Sprintf(". %s waits for %s to answer %s", m.Name, s.DisplayName(m.Waits[0].Awaited), m.Waits[0].Message)
	}
	if m.LastDetail != "" {
		return fmt.Sprintf(". %s ended its turn without completing it. Its last words, to itself: %q", m.Name, m.LastDetail)
	}
	return fmt.Sprintf(". %s ended its turn without completing it", m.Name)
}
