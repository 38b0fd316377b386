package domain

import (
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// reportToLead gives the Lead a report when there is something that it must
// decide on and nobody else will bring it: see [State.reportDue]. The Lead has
// at most one unread report; later facts go into one that replaces it. It
// happens again only after progress, and a bounded number of times between two
// words of the operator.
func (d *Decision) reportToLead() bool {
	s := d.State()
	lead := s.Lead()
	if lead == nil || s.Paused || s.spent() || lead.Held || s.Progress == s.Reported || s.Reports >= d.b.limits.Reports {
		return false
	}
	if !d.hasBoard() && len(s.Members) == 1 {
		return false
	}
	c := d.contract()
	assignments := c != nil && c.Policy().Assignments
	if !s.reportDue(assignments) {
		return false
	}
	l := letter{kind: rollcallv1.MailKind_MAIL_KIND_TEAM_REPORT, from: Framework, to: LeadID, replaces: lead.unreadReport()}
	l.body = textBody(s.report(assignments, l.replaces))
	d.deliver(l)
	return true
}

// reportDue is the rule of the reports. Where members have assignments, the
// Lead is told of a failure at once, and of all that was delivered or left when
// nobody works any more. In every contract it is told when the conversation
// would otherwise come to rest with open tasks, or with a failure nobody told it
// of, and nothing waits for the operator.
func (s *State) reportDue(assignments bool) bool {
	if assignments && s.untoldFailure() {
		return true
	}
	if assignments && !s.othersWork() && s.untoldEnd() {
		return true
	}
	if s.Lead().Status != idle || s.othersWork() || s.runnable(s.Lead()) {
		return false
	}
	return len(s.needs()) == 0 && (len(s.OpenTasks()) > 0 || s.untoldFailure())
}

// othersWork reports whether somebody beside the Lead works or is about to. Who
// waits for an approval does not.
func (s *State) othersWork() bool {
	return slices.ContainsFunc(s.Members, func(m *Member) bool { return !m.IsLead() && (m.Run != nil && !m.Run.held() || s.runnable(m)) })
}

// untoldFailure reports whether a task or a member failed and the Lead does not
// know.
func (s *State) untoldFailure() bool {
	return slices.ContainsFunc(s.Tasks, s.untold) ||
		slices.ContainsFunc(s.Members, func(m *Member) bool { return !m.IsLead() && m.failed() && m.Told == "" })
}

// untold reports whether the Lead must learn of the task's failure: it does not
// know, and did not give the task up with its team.
func (s *State) untold(t *Task) bool {
	return t.Status == failed && t.Told == "" && !s.dissolvedByLead(t.Team)
}

// untoldEnd reports whether an assignment was delivered or left and the Lead
// does not know.
func (s *State) untoldEnd() bool {
	return slices.ContainsFunc(s.Members, func(m *Member) bool {
		t := s.assignment(m)
		return t != nil && (t.ended() && t.Told == "" || s.leftWork(m) && m.Told == "")
	})
}

// leftWork reports whether the member rests with work undone, and no answer that
// it waits for will change that.
func (s *State) leftWork(m *Member) bool {
	if m.IsLead() || m.Run != nil {
		return false
	}
	return m.failed() || len(m.Waits) == 0 && !s.hasWaking(m) && len(s.undelivered(m)) > 0
}

// unreadReport is the report that the member has not read; empty when it has
// read them all.
func (m *Member) unreadReport() string {
	for _, mail := range m.Unread {
		if mail.Kind == rollcallv1.MailKind_MAIL_KIND_TEAM_REPORT {
			return mail.ID
		}
	}
	return ""
}
