package domain

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

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
	if m.IsSubagent() {
		bound.Instructions = d.b.r.Delegation.Instructions()
		if definition.GetMemory() == rollcallv1.MemoryPolicy_MEMORY_POLICY_UNSPECIFIED {
			definition.Memory = rollcallv1.MemoryPolicy_MEMORY_POLICY_TRANSCRIPT
		}
	} else if c := d.contract(); c != nil {
		bound.Instructions = c.Instructions(m.Role)
		if definition.GetMemory() == rollcallv1.MemoryPolicy_MEMORY_POLICY_UNSPECIFIED {
			definition.Memory = c.Policy().Memory
		}
	}
	for _, t := range d.assemble(m, definition) {
		if !t.Left {
			bound.Tools = append(bound.Tools, t.Definition)
		}
	}
	d.markApprovals(bound)
	return bound
}
