package domain

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Where a tool comes from.
const (
	// FromContract: the coordination tools of the conversation's contract.
	FromContract = "contract"
	// FromNode: what the node runs beside the log, such as files.
	FromNode = "node"
	// FromRuntime: what every conversation has, whatever its contract.
	FromRuntime = "runtime"
)

// subagents is the part of the runtime that has the tools of delegation.
const subagents = "subagents"

// AssembledTool is a tool that a member has, or might have had.
type AssembledTool struct {
	Definition *rollcallv1.ToolDefinition
	// Source is FromContract, FromRuntime or FromNode; From names which contract,
	// or which part of the runtime or the node.
	Source, From string
	// Left is true when the member does not have it. Why says what decided.
	Left bool
	Why  string
}

// assemble gives the tools that the member's next run may call, in the order
// they are shown, and what was left out of them. It is the one place that
// decides; whoever tells of it tells what it decided.
func (d *Decision) assemble(m *Member, definition *rollcallv1.AgentDefinition) []AssembledTool {
	return slices.Concat(d.fromContract(m), d.fromDelegation(m), d.fromNode(definition))
}

func (d *Decision) fromContract(m *Member) []AssembledTool {
	c := d.contract()
	if c == nil || m.IsSubagent() {
		return nil
	}
	var all []AssembledTool
	has := map[string]bool{}
	for _, t := range c.Tools(m.Role) {
		has[t.GetName()] = true
		all = append(all, AssembledTool{Definition: t, Source: FromContract, From: c.Name(), Why: "the contract gives it to the role " + Word(m.Role)})
	}
	for _, role := range memberRoles {
		for _, t := range c.Tools(role) {
			if !has[t.GetName()] {
				all = append(all, AssembledTool{Definition: t, Source: FromContract, From: c.Name(), Left: true, Why: "the contract gives it to the role " + Word(role) + " only"})
			}
		}
	}
	return all
}

// memberRoles are those that a contract has tools for.
var memberRoles = []rollcallv1.MemberRole{rollcallv1.MemberRole_MEMBER_ROLE_LEAD, rollcallv1.MemberRole_MEMBER_ROLE_MEMBER}

// fromNode are the node's tools by name, as far as the agent type lets the
// member have them and no contract has claimed them.
func (d *Decision) fromNode(definition *rollcallv1.AgentDefinition) []AssembledTool {
	claimed := map[string]string{}
	for name, c := range d.b.r.Contracts {
		for _, role := range memberRoles {
			for _, t := range c.Tools(role) {
				claimed[t.GetName()] = max(claimed[t.GetName()], "the contract "+name)
			}
		}
	}
	if d.b.r.Delegation != nil {
		for _, role := range slices.Concat(memberRoles, []rollcallv1.MemberRole{roleSubagent}) {
			for _, t := range d.b.r.Delegation.Tools(role) {
				claimed[t.GetName()] = "the runtime"
			}
		}
	}
	wanted := definition.GetTools()
	var all []AssembledTool
	for _, t := range d.b.r.Tools {
		tool := AssembledTool{Definition: t, Source: FromNode, From: d.b.r.Origins[t.GetName()]}
		switch {
		case claimed[t.GetName()] != "":
			tool.Left, tool.Why = true, fmt.Sprintf("%s has a tool of that name", claimed[t.GetName()])
		case t.GetName() == ReadMail:
			tool.Why = "every member has it"
		case len(wanted) == 0:
			tool.Why = fmt.Sprintf("agent type %s names no tools, so it has all of the node", definition.GetName())
		case slices.Contains(wanted, t.GetName()):
			tool.Why = fmt.Sprintf("agent type %s names it", definition.GetName())
		default:
			tool.Left, tool.Why = true, fmt.Sprintf("agent type %s names other tools", definition.GetName())
		}
		all = append(all, tool)
	}
	slices.SortStableFunc(all, func(a, b AssembledTool) int {
		return strings.Compare(a.Definition.GetName(), b.Definition.GetName())
	})
	return all
}

// external are the node's tools that a member can have.
func (d *Decision) external() []*rollcallv1.ToolDefinition {
	var tools []*rollcallv1.ToolDefinition
	for _, t := range d.fromNode(nil) {
		if !t.Left {
			tools = append(tools, t.Definition)
		}
	}
	return tools
}

func (d *Decision) externalTools() []string {
	var names []string
	for _, t := range d.external() {
		names = append(names, t.GetName())
	}
	return names
}

// Toolset is the tools of the member's next run as the rules of a node make
// them now, and what is left out of them; nil when it will have no more runs.
func (s *State) Toolset(r *Rules, m *Member) []AssembledTool {
	if !m.Alive() {
		return nil
	}
	d := &Decision{b: &Batch{s: s, r: r, limits: r.Limits.withDefaults()}}
	bound := d.boundAgent(m)
	all := d.assemble(m, bound.GetDefinition())
	for i, t := range all {
		if at := slices.IndexFunc(bound.GetTools(), func(b *rollcallv1.ToolDefinition) bool { return b.GetName() == t.Definition.GetName() }); at >= 0 {
			all[i].Definition = bound.GetTools()[at] // with what the operator must approve
		}
	}
	for _, name := range bound.GetDefinition().GetTools() {
		if !slices.ContainsFunc(all, func(t AssembledTool) bool { return t.Definition.GetName() == name }) {
			all = append(all, AssembledTool{
				Definition: &rollcallv1.ToolDefinition{Name: name}, Source: FromNode, Left: true,
				Why: fmt.Sprintf("agent type %s names it, and this node does not have it", m.AgentType),
			})
		}
	}
	return all
}

// Pinned is the tools of one of the member's bindings, with where they come from.
// What the rules of the node say now changes none of them.
func (s *State) Pinned(r *Rules, m *Member, hash string) []AssembledTool {
	b := s.Bindings[hash]
	if b == nil {
		return nil
	}
	runtime := map[string]bool{}
	if r.Delegation != nil {
		for _, t := range r.Delegation.Tools(m.Role) {
			runtime[t.GetName()] = true
		}
	}
	all := make([]AssembledTool, 0, len(b.Tools))
	for _, t := range b.Tools {
		tool := AssembledTool{Definition: proto.CloneOf(t), Source: FromNode, From: r.Origins[t.GetName()], Why: "the run was pinned to it at its start"}
		switch {
		case t.GetCoordination() && runtime[t.GetName()]:
			tool.Source, tool.From = FromRuntime, subagents
		case t.GetCoordination():
			tool.Source, tool.From = FromContract, s.Contract
		}
		all = append(all, tool)
	}
	return all
}
