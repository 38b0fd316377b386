// Package demo holds the script of the demo: a team of three that makes a
// profile page, and the page shows what was delivered, not what was done. The
// same script serves the acceptance cases profile-*.
package demo

import (
	_ "embed"
	"fmt"
	"sync"

	"github.com/rollcall-dev/rollcall/internal/model/scripted"
)

//go:embed profile.yaml
var profile []byte

// YAML is the script as a user may read, keep and change it.
func YAML() []byte { return append([]byte(nil), profile...) }

// Script is the same, ready to be served.
var Script = sync.OnceValue(func() *scripted.Script {
	s, err := scripted.Parse("profile.yaml", profile)
	if err != nil {
		panic(err) // it is part of this program, and tested
	}
	return s
})

// Policy is what Backend does when the API is done.
type Policy string

const (
	// SendUpdate: it sends Frontend the contract.
	SendUpdate Policy = "send update"
	// StatusOnly: it completes its task and says no more.
	StatusOnly Policy = "status only"
)

// Fields that the API may answer with: the new one, and the one that Frontend
// knows.
const (
	NewField = "display_name"
	OldField = "name"
)

// Objective is what the operator says to Lead. It needs the contract mailbox.
func Objective(policy Policy, field string) string {
	return fmt.Sprintf("Make the profile page with Backend and Frontend. It must show Ada. The API answers with the field %s. Policy: %s.", field, policy)
}
