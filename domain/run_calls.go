package domain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const (
	// maxOutput is the longest output of a coordination tool, in bytes.
	maxOutput = 32 << 10
	// maxStep is how much one command may bring before the calls that are left
	// are put off: the rest must fit into a commit of 768 KiB.
	maxStep = 448 << 10
)

// proceed runs the step's calls in order, as far as the log can decide them:
// up to an external tool, or to the step's boundary.
func (d *Decision) proceed(m *Member) {
	for m.Run != nil && len(m.Run.Calls) > 0 {
		next := slices.IndexFunc(m.Run.Calls, func(c Call) bool { return c.Subagent == "" })
		if next < 0 || next > 0 && !d.beside(m, m.Run.Calls[next]) {
			return // until the subagents are done
		}
		call := m.Run.Calls[next]
		if later := d.perform(m, call); later && m.Run.Phase != Delegating {
			return
		}
	}
	if m.Run != nil {
		d.boundary(m)
	}
}

// beside reports whether a call begins while subagents work for those before it:
// one that starts another does.
func (d *Decision) beside(m *Member, call Call) bool {
	tool, refusal := d.tool(m, &call)
	return call.Name == TaskTool && (refusal != nil || !tool.GetNeedsApproval() || call.Approved)
}

// perform decides one call. It reports true when its outcome comes later: an
// external tool must run, a subagent works for it, or the operator must approve
// it first.
func (d *Decision) perform(m *Member, call Call) (later bool) {
	tool, refusal := d.tool(m, &call)
	if refusal == nil && tool.GetOnce() && slices.Contains(m.Run.Once, call.Name) {
		refusal = Refuse("once-a-run", call.Name+" was not run", "it can be called once a turn, and you did", "work with what it said: mail tells you what changes")
	}
	again, stop := d.repeated(m, call)
	if again != nil {
		refusal = again
	}
	if refusal == nil && tool.GetNeedsApproval() && !call.Approved {
		d.ask(m, call)
		return true
	}
	if refusal == nil && !tool.GetCoordination() {
		d.emit(&rollcallv1.ToolCallStarted{
			Run: m.Run.ID, Member: m.ID, Step: m.Run.Step, Call: call.ID, Name: call.Name, Idempotent: tool.GetIdempotent(),
		})
		return true
	}
	var output string
	if refusal == nil {
		before := len(d.b.commit.GetEvents())
		on := &Decision{b: d.b, actor: m.ID, base: d.base, deciding: &call}
		if output, refusal = d.coordinator(m, call).Call(on, call); refusal != nil {
			d.b.mustNotHaveChanged(before, refusal)
		}
		if on.later {
			return true
		}
	}
	if refusal != nil {
		output = "Error: " + refusal.Error()
	}
	d.emit(&rollcallv1.ToolCallFinished{
		Run: m.Run.ID, Member: m.ID, Step: m.Run.Step, Call: call.ID, Name: call.Name,
		Output: textBody(cut(Clean(output), maxOutput)), Error: refusal != nil,
	})
	if stop {
		d.endRepeating(m, call.Name)
	}
	return false
}

// coordinator executes the call of a coordination tool.
func (d *Decision) coordinator(m *Member, call Call) interface {
	Call(d *Decision, call Call) (string, *Refusal)
} {
	if m.IsSubagent() || call.Name == TaskTool {
		return d.b.r.Delegation
	}
	return d.contract()
}

// tool finds the tool that a call means among those the run is bound to, and
// makes the call's arguments a JSON object, or says what is wrong with it.
func (d *Decision) tool(m *Member, call *Call) (*rollcallv1.ToolDefinition, *Refusal) {
	bound := d.State().Bindings[m.Run.Agent]
	var tools []*rollcallv1.ToolDefinition
	if bound != nil {
		tools = bound.Tools
	}
	i := slices.IndexFunc(tools, func(t *rollcallv1.ToolDefinition) bool { return t.GetName() == call.Name })
	if i < 0 {
		var names []string
		for _, t := range tools {
			names = append(names, t.GetName())
		}
		return nil, Refuse("tool-unknown", fmt.Sprintf("there is no tool %q", call.Name), "it is not among yours", "call one of: "+quoteAll(names))
	}
	tool := tools[i]
	if slices.Index(m.Run.CallIDs, call.ID)-m.Run.StepCalls >= d.b.limits.Calls {
		return nil, Refuse("limit-reached", call.Name+" was not run", fmt.Sprintf("a reply can make at most %d calls", d.b.limits.Calls), "make the other calls in the next step")
	}
	if d.b.size-d.base > maxStep {
		return nil, Refuse("limit-reached", call.Name+" was not run", "the calls of this step brought more than one commit holds", "make this call in the next step")
	}
	if call.Blob != nil {
		if tool.GetCoordination() {
			return nil, Refuse("text-too-long", call.Name+" was not run", fmt.Sprintf("its arguments have %d bytes", call.Blob.Size), useFile)
		}
		return tool, nil
	}
	if strings.TrimSpace(call.Arguments) == "" {
		call.Arguments = "{}"
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(call.Arguments), &object); err != nil || object == nil {
		why := "they are no JSON object"
		if err != nil {
			why = err.Error()
		}
		return nil, Refuse("argument-invalid", "the arguments of "+call.Name+" cannot be read", why, "send one JSON object with: "+quoteAll(Parameters(tool)))
	}
	return tool, nil
}

// Parameters are the names of a tool's arguments, the required ones marked.
func Parameters(t *rollcallv1.ToolDefinition) []string {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if json.Unmarshal([]byte(t.GetSchema()), &schema) != nil {
		return nil
	}
	var names []string
	for name := range schema.Properties {
		if slices.Contains(schema.Required, name) {
			name += " (required)"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
