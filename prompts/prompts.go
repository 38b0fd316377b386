// Package prompts holds what Rollcall tells a model about its place: by
// contract (how a team works) and by role. The texts stand beside this file.
//
// A text reaches a run by way of the AgentBound event, which holds it in full:
// an edit here reaches the next run and never an open one. What each text must
// say is a list of obligations in prompts_test.go.
package prompts

import (
	_ "embed"
	"slices"
)

// Version rises whenever a text changes; a test compares it with the recorded
// hashes of the texts.
const Version = 2

// Roles of a member.
const (
	Lead   = "lead"
	Member = "member"
)

var (
	//go:embed base.md
	base string
	//go:embed dag_lead.md
	dagLead string
	//go:embed dag_member.md
	dagMember string
	//go:embed mailbox_lead.md
	mailboxLead string
	//go:embed mailbox_member.md
	mailboxMember string
	//go:embed none_lead.md
	noneLead string
	//go:embed none_member.md
	noneMember string
	//go:embed subagent.md
	subagent string
)

// texts by contract and role, without the rules that all share.
var texts = map[string]map[string]string{
	"dag":     {Lead: dagLead, Member: dagMember},
	"mailbox": {Lead: mailboxLead, Member: mailboxMember},
	"none":    {Lead: noneLead, Member: noneMember},
}

// Text is the contract's and role's part of the system prompt, with the rules
// that all share before it. It is empty for a contract or role that has none.
func Text(contract, role string) string {
	own, ok := texts[contract][role]
	if !ok {
		return ""
	}
	return base + "\n" + own
}

// Standalone is the system prompt's part of an agent that works for one call of
// another, whatever the contract: the same shared rules, in another mode.
func Standalone() string { return base + "\n" + subagent }

// Contracts names the contracts that have texts, sorted.
func Contracts() []string {
	names := make([]string, 0, len(texts))
	for name := range texts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
