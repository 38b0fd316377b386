package domain

import (
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// reportToLead gives the Lead one report when the conversation would otherwise
// come to rest with open tasks, or with a failure nobody told it of, and
// nothing waits for the operator. It happens again only after progress, and a
// bounded number of times between two words of the operator.
func (d *Decision) reportToLead() bool {
	s := d.State()
	lead := s.Lead()
	if lead == nil || s.Paused || s.spent() || lead.Status != idle || lead.Held {
		return false
	}
	if !d.hasBoard() && len(s.Members) == 1 {
		return false
	}
	if s.Progress == s.Reported || s.Reports >= d.b.limits.Reports || len(s.needs()) > 0 {
		return false
	}
	if len(s.OpenTasks()) == 0 && !s.untoldFailure() {
		return false
	}
	for _, m := range s.Members {
		if m.Run != nil || s.runnable(m) {
			return false
		}
	}
	d.deliver(letter{kind: rollcallv1.MailKind_MAIL_KIND_TEAM_REPORT, from: Framework, to: LeadID, body: textBody(teamReport(s))})
	return true
}

// untoldFailure reports whether a task or a member failed and the Lead does not
// know.
func (s *State) untoldFailure() bool {
	for _, t := range s.Tasks {
		if s.untold(t) {
			return true
		}
	}
	for _, m := range s.Members {
		if !m.IsLead() && m.failed() && !m.FailureTold {
			return true
		}
	}
	return false
}

// untold reports whether the Lead must learn of the task's failure: it does not
// know, and did not give the task up with its team.
func (s *State) untold(t *Task) bool {
	return t.Status == failed && !t.Told && !s.dissolvedByLead(t.Team)
}
