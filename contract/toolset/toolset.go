// Package toolset makes coordination tools out of Go functions: the schema
// that a model is shown is inferred from the struct of a tool's arguments, and
// the same schema checks what the model sends.
package toolset

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/schema"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Tool is one coordination tool.
type Tool struct {
	definition *rollcallv1.ToolDefinition
	// leadOnly tools are neither shown to other members nor run for them,
	// memberOnly tools not to and for the Lead.
	leadOnly, memberOnly bool
	call                 func(d *domain.Decision, arguments []byte) (any, *domain.Refusal)
}

// New makes a tool that all members have. A is a struct whose json and
// jsonschema tags name and describe the arguments. What do returns is written
// as JSON for the model. change may narrow the schema. It panics on an A that
// has no schema: tools are made when the program starts.
func New[A any](name, description string, do func(*domain.Decision, A) (any, *domain.Refusal), change ...func(map[string]*jsonschema.Schema)) Tool {
	args := schema.For[A](change...)
	return Tool{
		definition: &rollcallv1.ToolDefinition{Name: name, Description: description, Schema: args.JSON(), Coordination: true},
		call: func(d *domain.Decision, arguments []byte) (any, *domain.Refusal) {
			read, err := args.Read(arguments)
			if err != nil {
				return nil, domain.Refuse("argument-invalid", "the arguments of "+name+" are refused", err.Error(), "mend them and call it again")
			}
			return do(d, read)
		},
	}
}

// LeadOnly makes the tool the Lead's own.
func (t Tool) LeadOnly() Tool {
	t.leadOnly = true
	return t
}

// MemberOnly makes the tool one that the Lead does not have.
func (t Tool) MemberOnly() Tool {
	t.memberOnly = true
	return t
}

// Once allows one successful call a run.
func (t Tool) Once() Tool {
	t.definition.Once = true
	return t
}

// Set is the tools of a contract, in the order they are shown.
type Set []Tool

// Definitions of the tools that a role is shown.
func (s Set) Definitions(role rollcallv1.MemberRole) []*rollcallv1.ToolDefinition {
	var shown []*rollcallv1.ToolDefinition
	for _, t := range s {
		isLead := role == rollcallv1.MemberRole_MEMBER_ROLE_LEAD
		if !t.leadOnly && !t.memberOnly || t.leadOnly && isLead || t.memberOnly && !isLead {
			shown = append(shown, t.definition)
		}
	}
	return shown
}

// Call runs the tool that the call names. Roles are checked when it runs, not
// only when tools are shown.
func (s Set) Call(d *domain.Decision, call domain.Call) (string, *domain.Refusal) {
	i := slices.IndexFunc(s, func(t Tool) bool { return t.definition.GetName() == call.Name })
	if i < 0 {
		return "", domain.Refuse("tool-unknown", fmt.Sprintf("there is no tool %q", call.Name), "this contract does not have it", "choose one of: "+s.names(d.Caller()))
	}
	switch lead := d.Caller().IsLead(); {
	case s[i].leadOnly && !lead:
		return "", domain.Refuse("lead-only", call.Name+" was not run", "only the Lead has it", "write to the Lead")
	case s[i].memberOnly && lead:
		return "", domain.Refuse("member-only", call.Name+" was not run", "the Lead has no assignment to deliver", "end your turn with your answer to the operator")
	}
	out, refusal := s[i].call(d, []byte(call.Arguments))
	if refusal != nil {
		return "", refusal
	}
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)                // a model reads it, no browser
	if err := enc.Encode(out); err != nil { // outputs are plain structs of ours
		panic(fmt.Sprintf("toolset: output of %s: %v", call.Name, err))
	}
	return strings.TrimSuffix(text.String(), "\n"), nil
}

func (s Set) names(m *domain.Member) string {
	var names []string
	for _, t := range s.Definitions(m.Role) {
		names = append(names, t.GetName())
	}
	return strings.Join(names, ", ")
}
