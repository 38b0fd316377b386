// Package contract holds the coordination tool sets that teams work with. A
// contract is its tools, its prompts and nothing else: what a tool does is an
// operation of package domain, decided in the same commit as the call's outcome.
//
// dag is the contract of members with one assignment each, started in the order
// of what they need from each other; mailbox that of long-lived members who
// write to each other and share a board; none is an ordinary conversation with
// one agent. Another contract is another folder beside this file's list.
package contract

import (
	"github.com/rollcall-dev/rollcall/contract/dag"
	"github.com/rollcall-dev/rollcall/contract/mailbox"
	"github.com/rollcall-dev/rollcall/contract/none"
	"github.com/rollcall-dev/rollcall/domain"
)

// All is every contract by name, ready for domain.Rules.
func All() map[string]domain.Contract {
	all := map[string]domain.Contract{}
	for _, c := range []domain.Contract{dag.Contract{}, mailbox.Contract{}, none.Contract{}} {
		all[c.Name()] = c
	}
	return all
}
