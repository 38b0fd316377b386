package domain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// A subagent is a member that is made for one call of another. Nobody writes to
// it, it is in no roster, and it works in the caller's workspace. The caller's
// run is suspended in the call meanwhile; what the subagent comes to is the
// call's outcome, and with that it is gone.

// Delegation is the tools by which members give work to subagents, with the
// words that teach a subagent its place. They stand beside any contract.
type Delegation interface {
	// Tools by role: who works for a call has other ones.
	Tools(role rollcallv1.MemberRole) []*rollcallv1.ToolDefinition
	// Instructions of a subagent.
	Instructions() string
	// Call executes one call, as that of a contract.
	Call(d *Decision, call Call) (output string, refusal *Refusal)
}

// TaskTool is the tool that starts a subagent.
const TaskTool = "task"

// roleSubagent is the role of who works for a call.
const roleSubagent = rollcallv1.MemberRole_MEMBER_ROLE_SUBAGENT

// IsSubagent reports whether the member works for one call of another.
func (m *Member) IsSubagent() bool { return m.Role == roleSubagent }

// host is the member in whose workspace a member works: itself, unless it works
// for another's call.
func (s *State) host(m *Member) *Member {
	for m.IsSubagent() {
		parent := s.Member(m.Parent)
		if parent == nil {
			break
		}
		m = parent
	}
	return m
}

// subagents are those at work for calls of the member's open run.
func (s *State) subagents(m *Member) []*Member {
	var found []*Member
	for _, sub := range s.Members {
		if sub.IsSubagent() && sub.Alive() && sub.Parent == m.ID {
			found = append(found, sub)
		}
	}
	return found
}

// delegates says why the member may not start subagents; empty when it may.
func (d *Decision) delegates(m *Member) string {
	if m.Depth >= d.b.limits.Depth {
		return fmt.Sprintf("a subagent %d deep starts no others", m.Depth)
	}
	return ""
}

// fromDelegation are the tools by which the member gives work to subagents, or
// delivers as one.
func (d *Decision) fromDelegation(m *Member) []AssembledTool {
	if d.b.r.Delegation == nil {
		return nil
	}
	var all []AssembledTool
	for _, t := range d.b.r.Delegation.Tools(m.Role) {
		tool := AssembledTool{Definition: t, Source: FromRuntime, From: subagents, Why: "every " + Word(m.Role) + " has it"}
		if why := d.delegates(m); t.GetName() == TaskTool && why != "" {
			tool.Left, tool.Why = true, why
		}
		all = append(all, tool)
	}
	return all
}

// Delegate starts a subagent for the call that is being decided: the call's
// outcome is what it comes to.
func (d *Decision) Delegate(agent, brief string) *Refusal {
	s, m := d.State(), d.Caller()
	const what = "no subagent is started"
	agent = agentType(agent)
	switch {
	case d.deciding == nil || m == nil || m.Run == nil:
		return Refuse("tool-unknown", what, "nobody's call asks for it", "call it in a turn")
	case s.Agents[agent] == nil:
		return unknownAgent(agent, s.agentTypes())
	case d.delegates(m) != "":
		return Refuse("limit-reached", what, d.delegates(m), "do the work yourself")
	}
	if refusal := checkText("the brief", brief, MaxInline); refusal != nil {
		return refusal
	}
	if strings.TrimSpace(brief) == "" {
		return Refuse("text-empty", what, "its brief is empty", "say what it must find out or do, with what, and what to hand back: it knows nothing else")
	}
	alive := 0
	for _, sub := range s.Members {
		if sub.IsSubagent() && sub.Alive() {
			alive++
		}
	}
	if alive >= d.b.limits.Subagents {
		return Refuse("limit-reached", what, fmt.Sprintf("%d subagents are at work, as many as a conversation has at once", alive),
			"call it again in a later step, or do the work yourself")
	}
	id := nth("m", uint64(len(s.Members)))
	d.emit(&rollcallv1.SubagentStarted{
		Subagent: id, Name: fmt.Sprintf("%s/task%d", m.Name, s.Subagents+1), AgentType: agent,
		Member: m.ID, Run: m.Run.ID, Step: m.Run.Step, Call: d.deciding.ID,
	})
	by := &Decision{b: d.b, actor: Framework, base: d.base}
	by.deliver(letter{kind: rollcallv1.MailKind_MAIL_KIND_BRIEF, from: Framework, to: id, body: textBody(brief)})
	d.later = true
	return nil
}

// Handover is what a subagent delivers, as its caller reads it.
type Handover struct {
	Summary string   `json:"summary"`
	Paths   []string `json:"paths"`
	// Undelivered: it ended without delivering; the summary is its last words.
	Undelivered bool `json:"undelivered,omitempty"`
}

// maxSummary bounds a result, in bytes.
const maxSummary = 24 << 10

// DeliverResult is the delivery of a subagent. Its run ends when the step is
// done. Every path must be there.
func (d *Decision) DeliverResult(summary string, paths []string) (Handover, *Refusal) {
	const what = "nothing is delivered"
	m := d.Caller()
	if !m.IsSubagent() {
		return Handover{}, Refuse("tool-unknown", what, "you work for no call", "end your turn with your answer")
	}
	if refusal := checkText("the summary", summary, maxSummary); refusal != nil {
		return Handover{}, refusal
	}
	if strings.TrimSpace(summary) == "" {
		return Handover{}, Refuse("text-empty", what, "the summary is empty", "say what you found or did: it is all that your caller reads")
	}
	cleaned, refusal := d.checkPaths(d.State().host(m), paths)
	if refusal != nil {
		return Handover{}, refusal
	}
	return Handover{Summary: Clean(summary), Paths: append([]string{}, cleaned...)}, nil
}

// cancelSubagents ends whoever works for the run that ends.
func (d *Decision) cancelSubagents(m *Member, e ending) {
	for _, sub := range d.State().subagents(m) {
		d.shutDown(sub, fmt.Sprintf("run %s of %s ended: %s", m.Run.ID, m.Name, Word(e.Reason)))
	}
}

// handBack gives what the ended run of a subagent came to to the call that it
// worked for, and lets the caller go on. One that was cancelled has no caller any
// more.
func (d *Decision) handBack(m *Member, run *Run, e ending) {
	if !m.IsSubagent() || e.Reason == rollcallv1.FinishReason_FINISH_REASON_CANCELLED {
		return
	}
	parent := d.State().Member(m.Parent)
	i := -1
	if parent != nil && parent.Run != nil {
		i = slices.IndexFunc(parent.Run.Calls, func(c Call) bool { return c.Subagent == m.ID })
	}
	if i < 0 {
		panic("domain: " + m.ID + " works for a call that is over")
	}
	output, failed := outcomeOf(run, e)
	d.emit(&rollcallv1.ToolCallFinished{
		Run: parent.Run.ID, Member: parent.ID, Step: parent.Run.Step, Call: parent.Run.Calls[i].ID, Name: TaskTool, Output: output, Error: failed,
	})
	d.emit(&rollcallv1.MemberShutdown{Member: m.ID, Reason: "its call is over"})
	on := &Decision{b: d.b, actor: parent.ID, base: d.base}
	on.proceed(parent)
}

// outcomeOf is what the caller reads of an ended run.
func outcomeOf(run *Run, e ending) (output *rollcallv1.Body, failed bool) {
	switch {
	case run.Result != "":
		return textBody(run.Result), false
	case e.Reason == rollcallv1.FinishReason_FINISH_REASON_IDLE:
		if e.Text.GetBlob() != nil { // too long to be told with anything
			return e.Text, false
		}
		last, err := json.Marshal(Handover{Summary: cut(e.Text.GetText(), maxSummary), Paths: []string{}, Undelivered: true})
		if err != nil { // it is text
			panic(err)
		}
		return textBody(string(last)), false
	}
	why := Word(e.Reason)
	if e.Code != "" {
		why += " [" + e.Code + "]"
	}
	if e.Detail != "" {
		why += ": " + e.Detail
	}
	return textBody("Error: the subagent delivered nothing. Its turn ended: " + cut(why, 2000) + ". What it wrote to files is there; do the rest yourself, or start another."), true
}
