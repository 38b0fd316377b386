package domain

import (
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// subagentStarted makes the member that works for a call, and lets the call
// wait for it.
func (s *State) subagentStarted(e *rollcallv1.SubagentStarted) {
	if s.Member(e.GetSubagent()) != nil {
		return
	}
	s.Subagents++
	m := &Member{
		ID: e.GetSubagent(), Name: e.GetName(), Role: roleSubagent, AgentType: e.GetAgentType(), Parent: e.GetMember(),
		Status: spawning, Since: s.Time,
	}
	s.Members = append(s.Members, m)
	parent := s.running(e.GetMember(), e.GetRun())
	if parent == nil {
		return
	}
	m.Depth = parent.Depth + 1
	if i := slices.IndexFunc(parent.Run.Calls, func(c Call) bool { return c.ID == e.GetCall() }); i >= 0 {
		parent.Run.Calls[i].Subagent = m.ID
	}
	parent.Run.Phase, parent.Run.Suspended = Delegating, true
}

// callFinished takes a call that has its outcome out of the run. Others may
// still wait for their subagents.
func (s *State) callFinished(m *Member, e *rollcallv1.ToolCallFinished) {
	r := m.Run
	if m.IsSubagent() && e.GetName() == completeTool && !e.GetError() {
		r.Result = e.GetOutput().GetText()
	}
	waited := r.Phase == Delegating
	r.Calls = keep(r.Calls, func(c Call) bool { return c.ID != e.GetCall() })
	r.Phase = Deciding
	switch {
	case slices.ContainsFunc(r.Calls, func(c Call) bool { return c.Subagent != "" }):
		r.Phase, r.Suspended = Delegating, true
	case waited:
		r.Suspended = false
	}
}

// completeTool is the tool by which a subagent delivers.
const completeTool = "complete"
