// Package none is the contract of an ordinary conversation: one agent, no
// coordination tools, no board, no team.
package none

import (
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/prompts"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Contract implements domain.Contract.
type Contract struct{}

var _ domain.Contract = Contract{}

// Name of the contract.
func (Contract) Name() string { return "none" }

// Tools: there are none.
func (Contract) Tools(rollcallv1.MemberRole) []*rollcallv1.ToolDefinition { return nil }

// Instructions for working alone.
func (c Contract) Instructions(role rollcallv1.MemberRole) string {
	if role == rollcallv1.MemberRole_MEMBER_ROLE_LEAD {
		return prompts.Text(c.Name(), prompts.Lead)
	}
	return prompts.Text(c.Name(), prompts.Member)
}

// Policy: the whole transcript is remembered.
func (Contract) Policy() domain.Policy {
	return domain.Policy{Memory: rollcallv1.MemoryPolicy_MEMORY_POLICY_TRANSCRIPT}
}

// CheckTeam refuses any member.
func (Contract) CheckTeam(members []*rollcallv1.MemberSpec) *domain.Refusal {
	if len(members) == 0 {
		return nil
	}
	return domain.Refuse("contract-unfit", "the team is refused", "the contract none has no members", "leave the members out, or choose --contract mailbox")
}

// Call has nothing to call.
func (Contract) Call(_ *domain.Decision, call domain.Call) (string, *domain.Refusal) {
	return "", domain.Refuse("tool-unknown", call.Name+" was not run", "the contract none has no tools", "end your turn with your answer")
}
