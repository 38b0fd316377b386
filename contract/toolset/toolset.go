// Package toolset makes coordination tools out of Go functions: the schema
// that a model is shown is inferred from the struct of a tool's arguments, and
// the same schema checks what the model sends.
package toolset

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Tool is one coordination tool.
type Tool struct {
	definition *rollcallv1.ToolDefinition
	// leadOnly tools are neither shown to other members nor run for them.
	leadOnly bool
	names    []string
	call     func(d *domain.Decision, arguments []byte) (any, *domain.Refusal)
}

// New makes a tool that all members have. A is a struct whose json and
// jsonschema tags name and describe the arguments. What do returns is written
// as JSON for the model. It panics on an A that has no schema: tools are made
// when the program starts.
func New[A any](name, description string, do func(*domain.Decision, A) (any, *domain.Refusal)) Tool {
	schema, err := jsonschema.For[A](&jsonschema.ForOptions{TypeSchemas: choices})
	if err != nil {
		panic(fmt.Sprintf("toolset: schema of %s: %v", name, err))
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		panic(fmt.Sprintf("toolset: schema of %s: %v", name, err))
	}
	text, err := json.Marshal(schema)
	if err != nil {
		panic(fmt.Sprintf("toolset: schema of %s: %v", name, err))
	}
	t := Tool{
		definition: &rollcallv1.ToolDefinition{Name: name, Description: description, Schema: string(text), Coordination: true},
		names:      argumentNames(schema),
	}
	t.call = func(d *domain.Decision, arguments []byte) (any, *domain.Refusal) {
		var args A
		if refusal := t.decode(resolved, arguments, &args); refusal != nil {
			return nil, refusal
		}
		return do(d, args)
	}
	return t
}

// LeadOnly makes the tool the Lead's own.
func (t Tool) LeadOnly() Tool {
	t.leadOnly = true
	return t
}

// decode checks the arguments against the schema and reads them.
func (t Tool) decode(schema *jsonschema.Resolved, arguments []byte, into any) *domain.Refusal {
	var value map[string]any
	err := json.Unmarshal(arguments, &value)
	if err == nil {
		err = schema.Validate(value)
	}
	if err == nil {
		err = json.Unmarshal(arguments, into)
	}
	if err == nil {
		return nil
	}
	return domain.Refuse("argument-invalid", fmt.Sprintf("the arguments of %s are refused", t.definition.GetName()), t.complaint(value, err),
		"its arguments are: "+strings.Join(t.names, ", "))
}

// complaint says what is wrong in words that name the argument.
func (t Tool) complaint(value map[string]any, err error) string {
	for _, name := range t.names {
		if bare, required := strings.CutSuffix(name, required); required {
			if _, ok := value[bare]; !ok {
				return bare + " is missing"
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(value)) {
		if !slices.Contains(t.names, name) && !slices.Contains(t.names, name+required) {
			return fmt.Sprintf("%q is no argument of it", name)
		}
	}
	text := err.Error()
	if i := strings.LastIndex(text, "/properties/"); i >= 0 {
		text = text[i+len("/properties/"):]
	}
	return text
}

const required = " (required)"

func argumentNames(s *jsonschema.Schema) []string {
	var names []string
	for name := range s.Properties {
		if slices.Contains(s.Required, name) {
			name += required
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// choices are the schemas of argument types that allow a few words only.
var choices = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[TaskStatus](): {
		Type: "string", Enum: []any{"in_progress", "claimable", "failed", "cancelled"},
	},
}

// TaskStatus is what a task is asked to become.
type TaskStatus string

// Set is the tools of a contract, in the order they are shown.
type Set []Tool

// Definitions of the tools that a role is shown.
func (s Set) Definitions(role rollcallv1.MemberRole) []*rollcallv1.ToolDefinition {
	var shown []*rollcallv1.ToolDefinition
	for _, t := range s {
		if !t.leadOnly || role == rollcallv1.MemberRole_MEMBER_ROLE_LEAD {
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
	if s[i].leadOnly && !d.Caller().IsLead() {
		return "", domain.Refuse("lead-only", call.Name+" was not run", "only the Lead has it", "ask the Lead with send_message")
	}
	out, refusal := s[i].call(d, []byte(call.Arguments))
	if refusal != nil {
		return "", refusal
	}
	text, err := json.Marshal(out)
	if err != nil { // outputs are plain structs of ours
		panic(fmt.Sprintf("toolset: output of %s: %v", call.Name, err))
	}
	return string(text), nil
}

func (s Set) names(m *domain.Member) string {
	var names []string
	for _, t := range s.Definitions(m.Role) {
		names = append(names, t.GetName())
	}
	return strings.Join(names, ", ")
}
