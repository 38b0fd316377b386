package domain

import (
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const (
	spawning = rollcallv1.MemberStatus_MEMBER_STATUS_SPAWNING
	working  = rollcallv1.MemberStatus_MEMBER_STATUS_WORKING
	idle     = rollcallv1.MemberStatus_MEMBER_STATUS_IDLE
	waiting  = rollcallv1.MemberStatus_MEMBER_STATUS_WAITING
	shutdown = rollcallv1.MemberStatus_MEMBER_STATUS_SHUTDOWN
)

// applyTeam folds what concerns the conversation, its team and its budget.
func (s *State) applyTeam(e *rollcallv1.Event) bool {
	switch e := e.GetKind().(type) {
	case *rollcallv1.Event_ConversationOpened:
		s.opened(e.ConversationOpened)
	case *rollcallv1.Event_ConversationPaused:
		s.Paused = true
	case *rollcallv1.Event_ConversationResumed:
		s.Paused = false
	case *rollcallv1.Event_TeamCreated:
		t := e.TeamCreated
		s.Teams = append(s.Teams, &Team{ID: t.GetTeam(), Name: t.GetName(), Goal: t.GetGoal(), Active: true})
	case *rollcallv1.Event_TeamDissolved:
		if t := s.Team(e.TeamDissolved.GetTeam()); t != nil {
			t.Active, t.DissolvedBy = false, e.TeamDissolved.GetBy()
		}
	case *rollcallv1.Event_MemberAdded:
		s.memberAdded(e.MemberAdded)
	case *rollcallv1.Event_MemberShutdown:
		s.memberShutdown(e.MemberShutdown)
	case *rollcallv1.Event_BudgetRaised:
		s.budgetRaised(e.BudgetRaised)
	case *rollcallv1.Event_TimerArmed:
		t := e.TimerArmed
		s.dropTimer(t.GetTimer())
		s.Timers = append(s.Timers, &Timer{ID: t.GetTimer(), Due: t.GetDue().AsTime(), Purpose: t.GetPurpose(), Subject: t.GetSubject()})
	case *rollcallv1.Event_TimerFired:
		s.dropTimer(e.TimerFired.GetTimer())
	case *rollcallv1.Event_CommandRefused: // kept for the audit
	default:
		return false
	}
	return true
}

func (s *State) opened(o *rollcallv1.ConversationOpened) {
	s.Opened = true
	s.Name, s.Contract, s.LeadAgent = o.GetName(), o.GetContract(), o.GetLeadAgent()
	s.Budget, s.ApprovalPolicy = budgetOf(o.GetBudget()), approvalPolicyOf(o.GetApprovals())
	s.Agents = make(map[string]*rollcallv1.AgentDefinition, len(o.GetAgents()))
	for _, a := range o.GetAgents() {
		s.Agents[a.GetName()] = a
	}
}

func (s *State) memberAdded(a *rollcallv1.MemberAdded) {
	if s.Member(a.GetMember()) != nil {
		return
	}
	status := spawning
	if a.GetReady() {
		status = idle
	}
	s.Members = append(s.Members, &Member{
		ID: a.GetMember(), Name: a.GetName(), Role: a.GetRole(), AgentType: a.GetAgentType(), Team: a.GetTeam(), Task: a.GetTask(),
		Status: status, Since: s.Time,
	})
}

// memberShutdown keeps who the member was and its files, which may have been
// delivered; it will never read or remember anything again.
func (s *State) memberShutdown(e *rollcallv1.MemberShutdown) {
	m := s.Member(e.GetMember())
	if m == nil {
		return
	}
	m.setStatus(shutdown, s.Time)
	m.Held, m.Told = false, ""
	m.Unread, m.Run, m.Waits, m.Purpose, m.Turns, m.Omitted = nil, nil, nil, nil, nil, 0
}

func (s *State) budgetRaised(e *rollcallv1.BudgetRaised) {
	raised := budgetOf(e.GetBudget())
	if raised == (Budget{}) { // no limit any more
		s.Budget = raised
	}
	if raised.Tokens > 0 {
		s.Budget.Tokens = raised.Tokens
	}
	if raised.CostMicros > 0 {
		s.Budget.CostMicros = raised.CostMicros
	}
	if raised.Steps > 0 {
		s.Budget.Steps = raised.Steps
	}
	for _, m := range s.Members {
		if m.outOfBudget() {
			m.Held = false
		}
	}
}

func (s *State) dropTimer(id string) {
	s.Timers = slices.DeleteFunc(s.Timers, func(t *Timer) bool { return t.ID == id })
	if len(s.Timers) == 0 {
		s.Timers = nil
	}
}

func budgetOf(b *rollcallv1.Budget) Budget {
	return Budget{Tokens: b.GetTokens(), CostMicros: b.GetCostMicros(), Steps: b.GetSteps()}
}
