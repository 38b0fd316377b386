package domain

import (
	"cmp"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Rules are what a node brings to decisions: code and settings, no state.
type Rules struct {
	// Contracts by name.
	Contracts map[string]Contract
	// Tools are the external tools of this node.
	Tools []*rollcallv1.ToolDefinition
	// Origins says which part of the node has a tool, such as files.
	Origins      map[string]string
	DefaultModel string
	// Prices by model name.
	Prices map[string]Price
	Limits Limits
}

// Contract is a set of coordination tools with the words that teach it.
type Contract interface {
	Name() string
	// Tools that a role is shown. A contract without tools has no board and no team.
	Tools(role rollcallv1.MemberRole) []*rollcallv1.ToolDefinition
	// Instructions are the contract's part of the role's system prompt.
	Instructions(role rollcallv1.MemberRole) string
	// Policy is how its teams work; it is fixed for a contract's life.
	Policy() Policy
	// CheckTeam refuses a prepared team that the contract cannot work with.
	CheckTeam(members []*rollcallv1.MemberSpec) *Refusal
	// Call executes one call of a coordination tool; its arguments are a JSON
	// object. A refusal is shown to the model as the call's error, and then
	// nothing changed.
	Call(d *Decision, call Call) (output string, refusal *Refusal)
}

// Policy is what makes the teams of contracts differ beside their tools.
type Policy struct {
	// Memory of agent types that name none.
	Memory rollcallv1.MemoryPolicy
	// AfterRun: what a member sends wakes a recipient at rest when the sender's
	// run is over or suspended; else at once.
	AfterRun bool
	// Assignments: each member is made with one task of its own. It starts when
	// what the task depends on is delivered, delivering it ends the run, and the
	// Lead is told of a failure at once and of everything else when nobody works.
	Assignments bool
}

// Price of a model, in millionths of the currency for a million tokens.
type Price struct {
	Input, Cached, Output uint64
}

// DefaultAttempts of a step, as Limits.Attempts.
const DefaultAttempts = 6

// Limits of the runtime; a zero field means the default.
type Limits struct {
	// Members alive in a conversation at once, the Lead included; default 64.
	Members int
	// Tasks of a conversation; default 1000.
	Tasks int
	// Steps of a run where neither conversation nor agent type says; default 50.
	Steps int
	// Attempts of a step before its run fails; default DefaultAttempts.
	Attempts int
	// Resumes of a step after lost nodes before its run fails; default 10.
	Resumes int
	// Reports to the Lead without a word of the operator, or a delivery of a
	// member, between; default 20.
	Reports int
	// Calls of one reply; default 64.
	Calls int
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Members:  cmp.Or(l.Members, 64),
		Tasks:    cmp.Or(l.Tasks, 1000),
		Steps:    cmp.Or(l.Steps, 50),
		Attempts: cmp.Or(l.Attempts, DefaultAttempts),
		Resumes:  cmp.Or(l.Resumes, 10),
		Reports:  cmp.Or(l.Reports, 20),
		Calls:    cmp.Or(l.Calls, 64),
	}
}
