// Package subagent is the tools by which any member gives a part of its work to
// a subagent, and by which a subagent delivers. They stand beside the tools of
// every contract, and a subagent has no others that coordinate.
package subagent

import (
	"github.com/rollcall-dev/rollcall/contract/toolset"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/prompts"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Delegation implements domain.Delegation.
type Delegation struct{}

var _ domain.Delegation = Delegation{}

type taskArgs struct {
	AgentType string `json:"agent_type,omitempty" jsonschema:"the agent type it works as; general when it is left out"`
	Brief     string `json:"brief" jsonschema:"all that it knows: what to find out or do, with which files, and what to hand back"`
}

type completeArgs struct {
	Summary string   `json:"summary" jsonschema:"the result, for whoever called you: it is all that they read"`
	Paths   []string `json:"paths,omitempty" jsonschema:"files of the result; each must exist"`
}

var (
	begin = toolset.Set{toolset.New(domain.TaskTool, "Give an isolated piece of work to a subagent and get its result here. It works in your workspace, knows only the brief and cannot be written to. "+
		"Several calls in one reply run side by side. Not for a small question.", task)}
	deliver = toolset.Set{toolset.New("complete", "Deliver your result. It ends your work. Never use it to pause.", complete).Once()}
	all     = append(append(toolset.Set{}, begin...), deliver...)
)

func task(d *domain.Decision, a taskArgs) (any, *domain.Refusal) {
	return nil, d.Delegate(a.AgentType, a.Brief)
}

func complete(d *domain.Decision, a completeArgs) (any, *domain.Refusal) {
	return d.DeliverResult(a.Summary, a.Paths)
}

// Tools of a role.
func (Delegation) Tools(role rollcallv1.MemberRole) []*rollcallv1.ToolDefinition {
	shown := begin.Definitions(role)
	if role == rollcallv1.MemberRole_MEMBER_ROLE_SUBAGENT {
		shown = append(deliver.Definitions(role), shown...)
	}
	return shown
}

// Instructions of a subagent.
func (Delegation) Instructions() string { return prompts.Standalone() }

// Call runs a tool.
func (Delegation) Call(d *domain.Decision, call domain.Call) (string, *domain.Refusal) {
	return all.Call(d, call)
}
