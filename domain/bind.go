package domain

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Renderer is the version of the rules by which a plan becomes a request. It
// is part of what a run is pinned to.
const Renderer uint32 = 1

// ReadMail is the tool that shows consumed mail again. Every member has it,
// whatever its agent type names: a frame that leaves mail out points to it.
const ReadMail = "mail_read"

// bind pins the member's next run to its agent's definition, prompts and tools
// as they are now. Each distinct binding is recorded once.
func (d *Decision) bind(m *Member) (hash string) {
	bound := d.boundAgent(m)
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(bound)
	if err != nil { // only text that is not UTF-8 gets here: settings are checked at load
		panic(fmt.Sprintf("domain: bind %s: %v", m.ID, err))
	}
	sum := sha256.Sum256(raw)
	hash = hex.EncodeToString(sum[:])
	if d.State().Bindings[hash] == nil {
		bound.Hash = hash
		d.emit(bound)
	}
	return hash
}

func (d *Decision) boundAgent(m *Member) *rollcallv1.AgentBound {
	s, r := d.State(), d.b.r
	definition := &rollcallv1.AgentDefinition{Name: m.AgentType}
	if a := s.Agents[m.AgentType]; a != nil {
		definition = proto.CloneOf(a)
	}
	if definition.GetModel() == "" {
		definition.Model = r.DefaultModel
	}
	bound := &rollcallv1.AgentBound{Definition: definition, Renderer: Renderer}
	if c := d.contract(); c != nil {
		bound.Instructions = c.Instructions(m.Role)
		bound.Tools = slices.Clone(c.Tools(m.Role))
		if definition.GetMemory() == rollcallv1.MemoryPolicy_MEMORY_POLICY_UNSPECIFIED {
			definition.Memory = c.Policy().Memory
		}
	}
	wanted := definition.GetTools()
	for _, t := range d.external() {
		if len(wanted) == 0 || slices.Contains(wanted, t.GetName()) || t.GetName() == ReadMail {
			bound.Tools = append(bound.Tools, t)
		}
	}
	d.markApprovals(bound)
	return bound
}

// external are the node's tools by name, without those that a contract has
// claimed: coordination tools cannot be redefined.
func (d *Decision) external() []*rollcallv1.ToolDefinition {
	own := map[string]bool{}
	for _, c := range d.b.r.Contracts {
		for _, role := range []rollcallv1.MemberRole{rollcallv1.MemberRole_MEMBER_ROLE_LEAD, rollcallv1.MemberRole_MEMBER_ROLE_MEMBER} {
			for _, t := range c.Tools(role) {
				own[t.GetName()] = true
			}
		}
	}
	tools := slices.DeleteFunc(slices.Clone(d.b.r.Tools), func(t *rollcallv1.ToolDefinition) bool { return own[t.GetName()] })
	slices.SortStableFunc(tools, func(a, b *rollcallv1.ToolDefinition) int { return strings.Compare(a.GetName(), b.GetName()) })
	return tools
}

func (d *Decision) externalTools() []string {
	var names []string
	for _, t := range d.external() {
		names = append(names, t.GetName())
	}
	return names
}
