package domain

import (
	"slices"
	"time"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// applyApproval folds what happens to calls that wait for the operator.
func (s *State) applyApproval(e *rollcallv1.Event) bool {
	switch e := e.GetKind().(type) {
	case *rollcallv1.Event_ApprovalRequested:
		s.approvalRequested(e.ApprovalRequested)
	case *rollcallv1.Event_ApprovalDecided:
		s.approvalDecided(e.ApprovalDecided)
	case *rollcallv1.Event_ApprovalVoided:
		s.endApproval(e.ApprovalVoided.GetApproval(), Void, Framework, e.ApprovalVoided.GetReason())
	default:
		return false
	}
	return true
}

func (s *State) approvalRequested(r *rollcallv1.ApprovalRequested) {
	if n, ok := numbered(r.GetApproval(), approvalPrefix); ok {
		s.LastApproval = max(s.LastApproval, n)
	}
	a := &Approval{
		ID: r.GetApproval(), Member: r.GetMember(), Run: r.GetRun(), Step: r.GetStep(), Call: r.GetCall(), Tool: r.GetTool(),
		Asked: s.Time, ApproveOnTimeout: r.GetApproveOnTimeout(),
	}
	if r.GetDue() != nil {
		a.Due = r.GetDue().AsTime()
	}
	s.Approvals = append(s.Approvals, a)
	if m := s.running(a.Member, a.Run); m != nil {
		m.Run.Phase, m.Run.Suspended = Asking, true
	}
}

func (s *State) approvalDecided(e *rollcallv1.ApprovalDecided) {
	outcome := Denied
	if e.GetApproved() {
		outcome = Approved
	}
	a := s.endApproval(e.GetApproval(), outcome, e.GetBy(), e.GetReason())
	if a == nil {
		return
	}
	m := s.running(a.Member, a.Run)
	if m == nil || m.Run.Phase != Asking {
		return
	}
	m.Run.Phase, m.Run.Suspended = Deciding, false
	if i := slices.IndexFunc(m.Run.Calls, func(c Call) bool { return c.ID == a.Call }); i >= 0 {
		m.Run.Calls[i].Approved = e.GetApproved()
	}
}

// endApproval ends a pending approval with its timer; nil when there is none.
func (s *State) endApproval(id, outcome, by, reason string) *Approval {
	a := s.approval(id)
	if a == nil || a.Outcome != "" {
		return nil
	}
	a.Outcome, a.By, a.Reason, a.Ended = outcome, by, cut(reason, 500), s.Time
	for _, t := range s.Timers {
		if t.Purpose == purposeApproval && t.Subject == id {
			s.dropTimer(t.ID)
			break
		}
	}
	s.forgetApprovals()
	return a
}

// forgetApprovals keeps all that are pending and the newest of the rest.
func (s *State) forgetApprovals() {
	ended := 0
	for _, a := range s.Approvals {
		if a.Outcome != "" {
			ended++
		}
	}
	s.Approvals = keep(s.Approvals, func(a *Approval) bool {
		if a.Outcome == "" || ended <= keptApprovals {
			return true
		}
		ended--
		return false
	})
}

func approvalPolicyOf(p *rollcallv1.ApprovalPolicy) *ApprovalPolicy {
	if len(p.GetTools()) == 0 && p.GetTimeoutSeconds() == 0 {
		return nil
	}
	return &ApprovalPolicy{
		Tools: slices.Clone(p.GetTools()), Timeout: time.Duration(p.GetTimeoutSeconds()) * time.Second, ApproveOnTimeout: p.GetApproveOnTimeout(),
	}
}
