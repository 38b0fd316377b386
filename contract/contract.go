// Package contract holds the coordination tool sets that teams work with:
// mailbox and none.
package contract

import "github.com/rollcall-dev/rollcall/domain"

// All is every contract by name, ready for domain.Rules.
func All() map[string]domain.Contract { return map[string]domain.Contract{} }
