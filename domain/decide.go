package domain

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Decision is one command being decided. It is also what a contract works
// with: the reading and the changing of the conversation on behalf of the
// member that called a tool. Each change checks everything first and then
// emits its events: a refusal means that nothing changed.
type Decision struct {
	b *Batch
	// actor is who causes what follows: a member id, "operator" or "framework".
	actor string
	// base is the batch's size when the command began.
	base int
	// deciding is the call that is being decided; later is true when its outcome
	// does not come with this commit.
	deciding *Call
	later    bool
}

// State is the conversation as it stands now. It is read only.
func (d *Decision) State() *State { return d.b.s }

// Caller is the member that called the tool; nil when the operator acts.
func (d *Decision) Caller() *Member { return d.b.s.Member(d.actor) }

func (d *Decision) emit(m proto.Message) { d.b.emit(m) }

// chief reports whether the actor may change what belongs to others: the Lead
// and the operator.
func (d *Decision) chief() bool { return d.actor == LeadID || d.actor == Operator }

func (d *Decision) contract() Contract { return d.b.r.Contracts[d.b.s.Contract] }

// hasBoard reports whether the contract has coordination tools at all.
func (d *Decision) hasBoard() bool {
	c := d.contract()
	return c != nil && len(c.Tools(rollcallv1.MemberRole_MEMBER_ROLE_LEAD)) > 0
}

// decide gives the command to its decider. The subject is what it made.
func (d *Decision) decide(cmd *rollcallv1.Command) (subject string, refusal *Refusal) {
	if d.actor == "" || d.actor == User {
		d.actor = Operator
	}
	s := d.State()
	if open := cmd.GetOpenConversation(); open != nil {
		return d.openConversation(open)
	}
	if !s.Opened {
		return "", Refuse("conversation-not-found", fmt.Sprintf("there is no conversation %s", s.Key.Conversation),
			"it was never opened", "start one with: rollcall run")
	}
	switch c := cmd.GetKind().(type) {
	case *rollcallv1.Command_PostMessage:
		return d.postMessage(c.PostMessage)
	case *rollcallv1.Command_ChangeTask:
		return d.changeTask(c.ChangeTask)
	case *rollcallv1.Command_InterruptMember:
		return "", d.interruptMember(c.InterruptMember)
	case *rollcallv1.Command_PauseConversation:
		return "", d.pause()
	case *rollcallv1.Command_ResumeConversation:
		return "", d.resume()
	case *rollcallv1.Command_RetryMember:
		return "", d.retryMember(c.RetryMember)
	case *rollcallv1.Command_DissolveTeam:
		return "", d.DissolveTeam()
	case *rollcallv1.Command_RaiseBudget:
		return "", d.raiseBudget(c.RaiseBudget)
	case *rollcallv1.Command_FireTimer:
		return "", d.fireTimer(c.FireTimer)
	case *rollcallv1.Command_DecideApproval:
		return d.decideApproval(c.DecideApproval)
	case *rollcallv1.Command_WriteFiles:
		return "", d.writeFiles(c.WriteFiles)
	case *rollcallv1.Command_RecordReply:
		return "", d.recordReply(c.RecordReply)
	case *rollcallv1.Command_RecordModelFailure:
		return "", d.recordModelFailure(c.RecordModelFailure)
	case *rollcallv1.Command_RecordToolOutcome:
		return "", d.recordToolOutcome(c.RecordToolOutcome)
	case *rollcallv1.Command_FailRun:
		return "", d.failRun(c.FailRun)
	case *rollcallv1.Command_ResumeRun:
		return "", d.resumeRun(c.ResumeRun)
	case *rollcallv1.Command_SuspendRun:
		return "", d.suspendRun(c.SuspendRun)
	}
	return "", Refuse("command-unknown", "this command cannot be decided", "this build does not know its kind",
		"use a client of the node's version: rollcall version")
}
