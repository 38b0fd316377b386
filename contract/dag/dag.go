// Package dag is the contract of members with one assignment each: the Lead
// declares who does what and who needs whose delivery first, the runtime starts
// each when that is there, and the Lead accepts, revises, adds or cancels.
package dag

import (
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rollcall-dev/rollcall/contract/toolset"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/prompts"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Contract implements domain.Contract.
type Contract struct{}

var _ domain.Contract = Contract{}

// tools in the order they are shown.
var tools = toolset.Set{
	toolset.New("team_create", "Declare the team: its goal, and each member with its brief and the members whose deliveries it needs first. It starts when your turn ends.", teamCreate).LeadOnly(),
	toolset.New("team_status", "Read how everybody stands. At most once a turn: mail tells you what changes.", teamStatus).Once(),
	toolset.New("team_send_message", "Write to a member, to Lead, or to user (the operator). Who works reads it at its next step; who rests is woken when your turn is over, which costs it a turn.", sendMessage),
	toolset.New("team_replan", "Change the plan: add members, revise what was delivered or failed, cancel what is not wanted. In order, each reported; with atomic all or nothing.", teamReplan, operations).LeadOnly(),
	toolset.New("team_dissolve", "Accept the result and close the team: who still works is stopped, open tasks are cancelled.", teamDissolve).LeadOnly(),
	toolset.New("complete", "Deliver your assignment. It ends your turn; whoever needs it starts. Never use it to pause.", complete).MemberOnly(),
}

// Name of the contract.
func (Contract) Name() string { return "dag" }

// Tools of a role.
func (Contract) Tools(role rollcallv1.MemberRole) []*rollcallv1.ToolDefinition {
	return tools.Definitions(role)
}

// Instructions of a role.
func (c Contract) Instructions(role rollcallv1.MemberRole) string {
	if role == rollcallv1.MemberRole_MEMBER_ROLE_LEAD {
		return prompts.Text(c.Name(), prompts.Lead)
	}
	return prompts.Text(c.Name(), prompts.Member)
}

// Policy: a member begins each turn from its brief, its own deliveries and its
// mail; what it sends wakes others when its turn is over.
func (Contract) Policy() domain.Policy {
	return domain.Policy{Memory: rollcallv1.MemoryPolicy_MEMORY_POLICY_SUMMARY, AfterRun: true, Assignments: true}
}

// CheckTeam has nothing to add to what is checked of all assignments.
func (Contract) CheckTeam([]*rollcallv1.MemberSpec) *domain.Refusal { return nil }

// Call runs a tool.
func (Contract) Call(d *domain.Decision, call domain.Call) (string, *domain.Refusal) {
	return tools.Call(d, call)
}

// operations are the verbs of a replan.
func operations(properties map[string]*jsonschema.Schema) {
	properties["operations"].Items.Properties["op"].Enum = []any{domain.OpAdd, domain.OpRevise, domain.OpCancel}
}
