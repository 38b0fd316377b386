package cli

import (
	"fmt"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// decisions tells of calls whose outcome comes later, and of what a call may
// use before it is made.
func (t *teller) decisions(e *rollcallv1.Event) (sentence, bool) {
	switch k := e.GetKind().(type) {
	case *rollcallv1.Event_ApprovalRequested:
		r := k.ApprovalRequested
		what := fmt.Sprintf("asks for approval %s of %s", r.GetApproval(), oneLine(r.GetTool(), 40))
		if r.GetDue() != nil {
			otherwise := "denied"
			if r.GetApproveOnTimeout() {
				otherwise = "approved"
			}
			what += fmt.Sprintf(", %s by itself at %s", otherwise, r.GetDue().AsTime().Format("2006-01-02 15:04:05 MST"))
		}
		return t.by(r.GetMember(), "%s", what)
	case *rollcallv1.Event_ApprovalDecided:
		d := k.ApprovalDecided
		verb := "denied"
		if d.GetApproved() {
			verb = "approved"
		}
		return t.by(d.GetBy(), "%s %s%s", verb, d.GetApproval(), because(d.GetReason()))
	case *rollcallv1.Event_ApprovalVoided:
		return t.by(domain.Framework, "approval %s is void%s", k.ApprovalVoided.GetApproval(), because(k.ApprovalVoided.GetReason()))
	case *rollcallv1.Event_SubagentStarted:
		s := k.SubagentStarted
		return t.by(s.GetMember(), "calls subagent %s as %s (%s)", t.name(s.GetSubagent()), s.GetSubagent(), oneLine(s.GetAgentType(), 24))
	case *rollcallv1.Event_BudgetReserved:
		r := k.BudgetReserved
		return t.quietly(r.GetMember(), "reserved %s%s for step %d", count(r.GetTokens(), "token"), costText(r.GetCostMicros()), r.GetStep())
	case *rollcallv1.Event_BudgetSettled:
		r := k.BudgetSettled
		return t.quietly(r.GetMember(), "used %s%s in step %d", count(r.GetTokens(), "token"), costText(r.GetCostMicros()), r.GetStep())
	}
	return sentence{}, false
}

func costText(micros uint64) string {
	if micros == 0 {
		return ""
	}
	return fmt.Sprintf(" and %.4g", api.Units(micros))
}
