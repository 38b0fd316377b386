package api

import (
	"context"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Approval is a tool call that waits, or waited, for the operator.
type Approval struct {
	// ID is short and never reused: a1, a2.
	ID string `json:"id"`
	// Member that made the call, and its id.
	Member   string `json:"member"`
	MemberID string `json:"member_id"`
	Run      string `json:"run"`
	Tool     string `json:"tool"`
	// Arguments of the call as the model wrote them, while it is pending; empty
	// when they are too long for the log.
	Arguments string `json:"arguments,omitempty"`
	// Status is pending, approved, denied or void.
	Status string    `json:"status"`
	Asked  time.Time `json:"asked"`
	// Due is when the time decides; absent: never.
	Due time.Time `json:"due,omitzero"`
	// Default is what the time decides: approve or deny.
	Default string `json:"default,omitempty"`
	// By, Reason and Ended say who ended it, why and when.
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Ended  time.Time `json:"ended,omitzero"`
}

func approvalsOf(s *domain.State) []Approval {
	found := []Approval{}
	for _, a := range s.Approvals {
		doc := Approval{
			ID: a.ID, Member: s.DisplayName(a.Member), MemberID: a.Member, Run: a.Run, Tool: a.Tool, Status: a.Outcome, Asked: a.Asked,
			Due: a.Due, By: a.By, Reason: a.Reason, Ended: a.Ended,
		}
		if a.Outcome == "" {
			doc.Status, doc.Arguments = "pending", a.Arguments(s)
		}
		if !a.Due.IsZero() {
			doc.Default = "deny"
			if a.ApproveOnTimeout {
				doc.Default = "approve"
			}
		}
		found = append(found, doc)
	}
	return found
}

// ApprovalPolicy says in JSON which calls the operator must approve.
type ApprovalPolicy struct {
	Tools []string `json:"tools,omitempty"`
	// TimeoutSeconds until the default decides; 0: it waits for ever.
	TimeoutSeconds uint64 `json:"timeout_seconds,omitempty"`
	// Default is deny or approve; empty: deny.
	Default string `json:"default,omitempty"`
}

func (p *ApprovalPolicy) proto() (*rollcallv1.ApprovalPolicy, error) {
	if p == nil {
		return nil, nil
	}
	out := &rollcallv1.ApprovalPolicy{Tools: p.Tools, TimeoutSeconds: p.TimeoutSeconds}
	switch p.Default {
	case "", "deny":
	case "approve":
		out.ApproveOnTimeout = true
	default:
		return nil, badWord("default", p.Default, "deny or approve")
	}
	return out, nil
}

// Approve lets a call be made.
func (c *Client) Approve(ctx context.Context, conversation, approval, reason string) (AnswerBody, error) {
	return c.decide(ctx, conversation, &rollcallv1.DecideApproval{Approval: approval, Approve: true, Reason: reason})
}

// Deny tells the member why its call is not made.
func (c *Client) Deny(ctx context.Context, conversation, approval, reason string) (AnswerBody, error) {
	return c.decide(ctx, conversation, &rollcallv1.DecideApproval{Approval: approval, Reason: reason})
}

func (c *Client) decide(ctx context.Context, conversation string, d *rollcallv1.DecideApproval) (AnswerBody, error) {
	return c.do(ctx, conversation, &rollcallv1.Command{Kind: &rollcallv1.Command_DecideApproval{DecideApproval: d}})
}

// decodeDecision reads approve and deny.
func decodeDecision(approve bool) func([]byte) (writeRequest, error) {
	return func(data []byte) (writeRequest, error) {
		var r struct {
			Write
			Approval string `json:"approval"`
			Reason   string `json:"reason"`
		}
		err := decodeTexts(data, &r)
		return r.with(&rollcallv1.Command{Kind: &rollcallv1.Command_DecideApproval{
			DecideApproval: &rollcallv1.DecideApproval{Approval: r.Approval, Approve: approve, Reason: r.Reason},
		}}), err
	}
}
