package domain

import (
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// applyGuard folds reservations.
func (s *State) applyGuard(e *rollcallv1.Event) bool {
	switch e := e.GetKind().(type) {
	case *rollcallv1.Event_BudgetReserved:
		r := e.BudgetReserved
		if m := s.running(r.GetMember(), r.GetRun()); m != nil {
			m.Run.Reserved = &Reservation{Step: r.GetStep(), Attempt: r.GetAttempt(), Tokens: r.GetTokens(), CostMicros: r.GetCostMicros()}
		}
	case *rollcallv1.Event_BudgetSettled:
		s.budgetSettled(e.BudgetSettled)
	default:
		return false
	}
	return true
}

// budgetSettled frees a reservation, and charges what no reply said was used.
func (s *State) budgetSettled(e *rollcallv1.BudgetSettled) {
	m := s.running(e.GetMember(), e.GetRun())
	if m == nil || m.Run.Reserved == nil || m.Run.Reserved.Step != e.GetStep() || m.Run.Reserved.Attempt != e.GetAttempt() {
		return
	}
	known := m.Run.Reserved.Known
	m.Run.Reserved = nil
	if known {
		return
	}
	for _, u := range []*Usage{&s.Used, &m.Used, &m.Run.Used} {
		u.Charged.Tokens += e.GetTokens()
		u.Charged.CostMicros += e.GetCostMicros()
	}
}

// usedBy notes what a reply used in the member's own books.
func (m *Member) usedBy(u *rollcallv1.Usage) {
	m.Used.add(u)
	m.Run.Shown, m.Run.ShownEntries = u.GetInputTokens()+u.GetOutputTokens(), len(m.turn().Entries)
	if r := m.Run.Reserved; r != nil {
		r.Known = u != nil
	}
}

// began counts a run, and its member's place in a chain anew.
func (s *State) began(m *Member) {
	m.Hops = 0
	m.Runs++
	s.Runs++
}

// finishedCall notes the outcome of one of the open run's calls.
func (s *State) finishedCall(m *Member, e *rollcallv1.ToolCallFinished) {
	for _, c := range m.Run.Calls {
		if c.ID == e.GetCall() {
			m.called(c, e, s.boundTool(m.Run.Agent, c.Name).GetCoordination())
			return
		}
	}
}

// guarded folds what events mean to the guards beside what they are.
func (s *State) guarded(e *rollcallv1.Event) {
	s.progressed(e)
	if m := e.GetMessageDelivered(); m != nil {
		s.guardedMail(m)
	}
	if name := guardOf(e); name != "" {
		if s.Guards == nil {
			s.Guards = map[string]uint64{}
		}
		s.Guards[name]++
	}
}

func (s *State) guardedMail(e *rollcallv1.MessageDelivered) {
	switch {
	case e.GetKind() == rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE:
		s.Runs = 0
		for _, m := range s.Members {
			m.Runs = 0
		}
	case e.GetTopic() == topicLoop && e.GetTo() == LeadID:
		s.LoopTold = s.Progress + 1
	case e.GetTopic() == topicDeadlock:
		for w := range s.questions(e.GetAbout()) {
			w.Ring = true
		}
	}
}

// guardCodes are the guards by the code of what they refuse or end.
var guardCodes = map[string]string{
	"budget-used-up": "budget", "run-budget-used-up": "run_budget", "member-budget-used-up": "member_budget", "team-budget-used-up": "team_budget",
	"step-limit": "steps", "run-limit": "runs", "limit-reached": "caps", "depth-limit": "depth", codeRepeated: "identical_calls",
}

// guardTopics are the guards by the topic of their alerts to members.
var guardTopics = map[string]string{topicDeadlock: "deadlock", topicNobodyLeft: "nobody_left", topicUnanswered: "unanswered"}

// guardOf is the guard that an event is a hit of; empty when it is none.
func guardOf(e *rollcallv1.Event) string {
	switch k := e.GetKind().(type) {
	case *rollcallv1.Event_RunSuspended:
		if k.RunSuspended.GetReason() == suspendedBudget {
			return "budget_waits"
		}
	case *rollcallv1.Event_RunFinished:
		return guardCodes[k.RunFinished.GetCode()]
	case *rollcallv1.Event_ToolCallFinished:
		for code, name := range guardCodes {
			if refusedFor(k.ToolCallFinished, code) {
				return name
			}
		}
	case *rollcallv1.Event_MessageDelivered:
		if k.MessageDelivered.GetQuiet() {
			return "idle_hops"
		}
		if k.MessageDelivered.GetKind() == rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT {
			return guardTopics[k.MessageDelivered.GetTopic()]
		}
	}
	return ""
}
