package domain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// An approval holds one tool call until the operator, or the time, decides. The
// run is suspended meanwhile and owes nothing: it holds no slot and no inbox
// message, and everybody else goes on.

// Approval is a question to the operator whether a call may be made.
type Approval struct {
	ID     string
	Member string
	Run    string
	Step   uint32 `json:",omitempty"`
	Call   string
	Tool   string
	Asked  time.Time
	// Due is when the time decides; zero: never.
	Due              time.Time `json:",omitzero"`
	ApproveOnTimeout bool      `json:",omitempty"`
	// Outcome is empty while it is pending.
	Outcome string `json:",omitempty"`
	// By, Reason and Ended say who ended it, why and when.
	By     string    `json:",omitempty"`
	Reason string    `json:",omitempty"`
	Ended  time.Time `json:",omitzero"`
}

// Outcomes of an approval.
const (
	Approved = "approved"
	Denied   = "denied"
	Void     = "void"
)

// ApprovalPolicy says which calls the operator must approve, beside those of
// tools that say so themselves.
type ApprovalPolicy struct {
	Tools            []string      `json:",omitempty"`
	Timeout          time.Duration `json:",omitempty"`
	ApproveOnTimeout bool          `json:",omitempty"`
}

const (
	approvalPrefix = "a"
	// purposeApproval is the purpose of a timer that decides an approval, which
	// is its subject.
	purposeApproval = "approval"
	// maxApprovalTimeout bounds the time of a policy.
	maxApprovalTimeout = 366 * 24 * time.Hour
	// keptApprovals is how many ended approvals are remembered, to tell who asks
	// too late what became of them.
	keptApprovals = 200
	// maxReason of a decision, in bytes.
	maxReason = 4000
)

// PendingApprovals are those that nobody decided yet, oldest first.
func (s *State) PendingApprovals() []*Approval {
	var pending []*Approval
	for _, a := range s.Approvals {
		if a.Outcome == "" {
			pending = append(pending, a)
		}
	}
	return pending
}

func (s *State) approval(id string) *Approval {
	for _, a := range s.Approvals {
		if a.ID == id {
			return a
		}
	}
	return nil
}

// markApprovals notes on each tool that the operator must approve that it is so.
func (d *Decision) markApprovals(bound *rollcallv1.AgentBound) {
	policy, own := d.State().ApprovalPolicy, bound.GetDefinition().GetApprove()
	for i, t := range bound.GetTools() {
		named := policy != nil && slices.Contains(policy.Tools, t.GetName()) || slices.Contains(own, t.GetName())
		if named && !t.GetNeedsApproval() {
			t = proto.CloneOf(t)
			t.NeedsApproval = true
			t.Description = strings.TrimSpace(t.GetDescription() + " Each call waits until the operator approves it.")
			bound.Tools[i] = t
		}
	}
}

// ask suspends the run at its next call until somebody decides.
func (d *Decision) ask(m *Member, call Call) {
	s := d.State()
	asked := &rollcallv1.ApprovalRequested{
		Approval: nth(approvalPrefix, s.LastApproval+1), Member: m.ID, Run: m.Run.ID, Step: m.Run.Step, Call: call.ID, Tool: call.Name,
	}
	if p := s.ApprovalPolicy; p != nil {
		asked.ApproveOnTimeout = p.ApproveOnTimeout
		if p.Timeout > 0 {
			asked.Due = timestamppb.New(s.Time.Add(p.Timeout))
		}
	}
	d.emit(asked)
	if asked.GetDue() != nil {
		d.emit(&rollcallv1.TimerArmed{
			Timer: "approval-" + asked.GetApproval(), Due: asked.GetDue(), Purpose: purposeApproval, Subject: asked.GetApproval(),
		})
	}
}

// decideApproval is the operator's answer. The first one counts.
func (d *Decision) decideApproval(c *rollcallv1.DecideApproval) (string, *Refusal) {
	what := "nothing is decided"
	id := strings.TrimSpace(c.GetApproval())
	a := d.State().approval(id)
	if n, ok := numbered(id, approvalPrefix); a == nil && ok && n <= d.State().LastApproval {
		return "", Refuse(CodeApprovalDecided, what, id+" ended long ago", d.tryPending())
	}
	if a == nil {
		return "", Refuse("approval-not-found", what, fmt.Sprintf("there is no approval %q", cut(Clean(id), 100)), d.tryPending())
	}
	if refusal := d.ended(a); refusal != nil {
		return "", refusal
	}
	if refusal := checkText("the reason", c.GetReason(), maxReason); refusal != nil {
		return "", refusal
	}
	reason := strings.TrimSpace(Clean(c.GetReason()))
	if reason == "" && !c.GetApprove() {
		return "", Refuse("text-empty", what, "a denial without a reason leaves the member guessing", "say why, and what it should do instead")
	}
	d.settle(a, c.GetApprove(), d.actor, reason)
	return a.ID, nil
}

// CodeApprovalDecided refuses an answer that comes after another.
const CodeApprovalDecided = "approval-decided"

// ended refuses an answer to an approval that is over, and says how it ended.
func (d *Decision) ended(a *Approval) *Refusal {
	what := fmt.Sprintf("%s (%s of %s) is not decided again", a.ID, a.Tool, d.State().DisplayName(a.Member))
	because := ""
	if a.Reason != "" {
		because = ": " + cut(a.Reason, 300)
	}
	switch a.Outcome {
	case "":
		return nil
	case Void:
		return Refuse("approval-void", what, "it is void since "+a.Ended.Format(time.RFC3339)+because, d.tryPending())
	}
	return Refuse(CodeApprovalDecided, what, fmt.Sprintf("the %s %s it at %s%s", a.By, a.Outcome, a.Ended.Format(time.RFC3339), because), d.tryPending())
}

// tryPending is the advice to who answered no pending approval.
func (d *Decision) tryPending() string {
	pending := d.State().PendingApprovals()
	if len(pending) == 0 {
		return "no approval is pending; rollcall show tells how things stand"
	}
	var names []string
	for _, a := range pending {
		names = append(names, fmt.Sprintf("%s (%s of %s)", a.ID, a.Tool, d.State().DisplayName(a.Member)))
	}
	return "pending are: " + quoteAll(names)
}

// settle records the decision and lets the run go on with the call, or with its
// denial.
func (d *Decision) settle(a *Approval, approve bool, by, reason string) {
	d.emit(&rollcallv1.ApprovalDecided{Approval: a.ID, Approved: approve, By: by, Reason: reason})
	m := d.State().running(a.Member, a.Run)
	if m == nil {
		panic("domain: " + a.ID + " is pending and its run is over")
	}
	on := &Decision{b: d.b, actor: m.ID, base: d.base}
	if !approve {
		d.emit(&rollcallv1.ToolCallFinished{
			Run: m.Run.ID, Member: m.ID, Step: m.Run.Step, Call: a.Call, Name: a.Tool, Output: textBody(denied(by, reason)), Error: true,
		})
	}
	on.proceed(m)
}

func denied(by, reason string) string {
	if by == Framework {
		return "Error: this call was not made: nobody approved it in time. Go on without it, or tell the operator what you need and why."
	}
	return "Error: this call was not made: the operator denied it: " + reason
}

// approvalTimer decides by the policy what nobody decided in time.
func (d *Decision) approvalTimer(t *Timer) {
	id := t.Subject
	d.emit(&rollcallv1.TimerFired{Timer: t.ID})
	if a := d.State().approval(id); a != nil && a.Outcome == "" {
		d.settle(a, a.ApproveOnTimeout, Framework, "nobody decided in time")
	}
}

// voidApprovals ends what the run has asked for: the run is over.
func (d *Decision) voidApprovals(m *Member, e ending) {
	for _, a := range d.State().PendingApprovals() {
		if a.Run == m.Run.ID {
			why := fmt.Sprintf("run %s of %s ended: %s", a.Run, m.Name, Word(e.Reason))
			if e.Detail != "" {
				why += ", " + cut(e.Detail, 300)
			}
			d.emit(&rollcallv1.ApprovalVoided{Approval: a.ID, Reason: why})
		}
	}
}

// checkApprovals checks the tools that an opening says need approval: a name
// that no tool has would never hold anything.
func (d *Decision) checkApprovals(o *rollcallv1.OpenConversation, contract Contract) *Refusal {
	const what = "the conversation is not opened"
	p := o.GetApprovals()
	if p.GetTimeoutSeconds() > uint64(maxApprovalTimeout/time.Second) {
		return Refuse("argument-invalid", what, "the time for approvals is more than a year", "choose a shorter one, or none: then an approval waits for ever")
	}
	if len(p.GetTools()) == 0 && (p.GetTimeoutSeconds() > 0 || p.GetApproveOnTimeout()) && !d.approves(o) {
		return Refuse("argument-invalid", what, "there is a rule for approvals, and no tool that needs one", "name the tools, or leave the rule out")
	}
	if p.GetApproveOnTimeout() && p.GetTimeoutSeconds() == 0 {
		return Refuse("argument-invalid", what, "calls are to be approved when the time is over, and no time is given", "give a time, or leave the default at deny")
	}
	known := d.approvable(contract)
	check := func(name string) *Refusal {
		if slices.Contains(known, name) {
			return nil
		}
		return Refuse("tool-unknown", what, fmt.Sprintf("no call of %q can need approval: there is no such tool in contract %s", cut(Clean(name), 100), contract.Name()),
			"choose from: "+quoteAll(known))
	}
	for _, name := range p.GetTools() {
		if refusal := check(name); refusal != nil {
			return refusal
		}
	}
	for _, a := range o.GetAgents() {
		for _, name := range a.GetApprove() {
			if refusal := check(name); refusal != nil {
				return refusal
			}
		}
	}
	return nil
}

// approves reports whether an agent type, or a tool of the node, asks for
// approvals by itself.
func (d *Decision) approves(o *rollcallv1.OpenConversation) bool {
	return slices.ContainsFunc(o.GetAgents(), func(a *rollcallv1.AgentDefinition) bool { return len(a.GetApprove()) > 0 }) ||
		slices.ContainsFunc(d.external(), (*rollcallv1.ToolDefinition).GetNeedsApproval)
}

// approvable are the names of all tools that somebody in a conversation of the
// contract may call.
func (d *Decision) approvable(contract Contract) []string {
	names := d.externalTools()
	for _, role := range []rollcallv1.MemberRole{rollcallv1.MemberRole_MEMBER_ROLE_LEAD, rollcallv1.MemberRole_MEMBER_ROLE_MEMBER} {
		for _, t := range contract.Tools(role) {
			names = append(names, t.GetName())
		}
	}
	if d.b.r.Delegation != nil {
		for _, t := range d.b.r.Delegation.Tools(roleSubagent) {
			names = append(names, t.GetName())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Arguments of the call that waits; empty when they lie in the object store.
func (a *Approval) Arguments(s *State) string {
	if m := s.running(a.Member, a.Run); m != nil {
		for _, c := range m.Run.Calls {
			if c.ID == a.Call {
				return c.Arguments
			}
		}
	}
	return ""
}
