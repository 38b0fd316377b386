package domain

import (
	"cmp"
	"math"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Rules are what a node brings to decisions: code and settings, no state.
type Rules struct {
	// Contracts by name.
	Contracts map[string]Contract
	// Tools are the external tools of this node.
	Tools []*rollcallv1.ToolDefinition
	// Origins says which part of the node has a tool, such as files.
	Origins map[string]string
	// Delegation is nil where there are no subagents.
	Delegation   Delegation
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

// Limits of the runtime; a zero field means the default, a negative one none.
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
	// Runs of a member, and AllRuns of all together, between two words of the
	// operator; default 1000 and 10,000.
	Runs, AllRuns int
	// IdleHops is how many wakes in a row may come to no progress before mail
	// starts no run; default 12.
	IdleHops int
	// IdenticalCalls is how often a run makes one call without anything else
	// changing; as many more end it; default 5.
	IdenticalCalls int
	// Depth of subagents below a member; default 3. Subagents at work in a
	// conversation at once; default 16.
	Depth, Subagents int
	// What all runs of a member, and of the members of a team together, use in
	// all; default 20 and 100 million tokens and no limit in money, in millionths.
	MemberTokens, TeamTokens int64
	MemberCost, TeamCost     int64
}

// Off is a limit that is not kept.
const Off = -1

func (l Limits) withDefaults() Limits {
	return Limits{
		Members:  limit(l.Members, 64),
		Tasks:    limit(l.Tasks, 1000),
		Steps:    limit(l.Steps, 50),
		Attempts: limit(l.Attempts, DefaultAttempts),
		Resumes:  limit(l.Resumes, 10),
		Reports:  limit(l.Reports, 20),
		Calls:    limit(l.Calls, 64),
		Runs:     limit(l.Runs, 1000), AllRuns: limit(l.AllRuns, 10_000),
		IdleHops:       limit(l.IdleHops, 12),
		IdenticalCalls: limit(l.IdenticalCalls, 5),
		Depth:          limit(l.Depth, 3), Subagents: limit(l.Subagents, 16),
		MemberTokens: cmp.Or(l.MemberTokens, 20_000_000), TeamTokens: cmp.Or(l.TeamTokens, 100_000_000),
		MemberCost: l.MemberCost, TeamCost: l.TeamCost,
	}
}

// limit is n where it is set, and more than anything comes to where it is off.
func limit(n, otherwise int) int {
	if n < 0 {
		return math.MaxInt32
	}
	return cmp.Or(n, otherwise)
}
