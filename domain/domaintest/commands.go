package domaintest

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/types/known/timestamppb"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Say is a word of the operator; to is a member id, empty for the Lead.
func Say(to, text string) *rollcallv1.Command {
	return SayMode(to, text, rollcallv1.MailMode_MAIL_MODE_UNSPECIFIED)
}

// SayMode is a word of the operator with a mode.
func SayMode(to, text string, mode rollcallv1.MailMode) *rollcallv1.Command {
	return post(&rollcallv1.PostMessage{To: to, Kind: rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, Mode: mode, Body: Text(text)})
}

// Alert is a framework_alert of an outside scheduler.
func Alert(to, text string) *rollcallv1.Command {
	return post(&rollcallv1.PostMessage{To: to, Kind: rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT, Body: Text(text)})
}

func post(p *rollcallv1.PostMessage) *rollcallv1.Command {
	return &rollcallv1.Command{Actor: "operator", Kind: &rollcallv1.Command_PostMessage{PostMessage: p}}
}

// Text is a body.
func Text(s string) *rollcallv1.Body { return &rollcallv1.Body{Text: s} }

// Call is a tool call with arguments of any JSON kind.
func Call(name string, args any) *rollcallv1.ToolCall {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return &rollcallv1.ToolCall{Name: name, Arguments: string(raw)}
}

// Args are the arguments of a call.
type Args = map[string]any

// Reply is a member's complete answer to its open model call.
func (k *Kit) Reply(member, text string, calls ...*rollcallv1.ToolCall) *rollcallv1.Command {
	k.Helper()
	return k.ReplyFinish(member, "stop", text, calls...)
}

// ReplyFinish is a Reply with a finish reason.
func (k *Kit) ReplyFinish(member, finish, text string, calls ...*rollcallv1.ToolCall) *rollcallv1.Command {
	k.Helper()
	r := &rollcallv1.RecordReply{
		Member: member, Finish: finish, Calls: calls, Usage: &rollcallv1.Usage{InputTokens: 100, OutputTokens: 10},
	}
	if text != "" {
		r.Text = Text(text)
	}
	if run := k.Member(member).Run; run != nil {
		r.Run, r.Step, r.Attempt = run.ID, run.Step, run.Attempt
	} else {
		k.Fatalf("%s has no open run", member)
	}
	return &rollcallv1.Command{Actor: member, Kind: &rollcallv1.Command_RecordReply{RecordReply: r}}
}

// ModelFails is a failure of a member's open model call.
func (k *Kit) ModelFails(member, code string, transient bool) *rollcallv1.Command {
	run := k.Member(member).Run
	return &rollcallv1.Command{Actor: member, Kind: &rollcallv1.Command_RecordModelFailure{RecordModelFailure: &rollcallv1.RecordModelFailure{
		Member: member, Run: run.ID, Step: run.Step, Attempt: run.Attempt, Code: code, Error: "it did not work", Transient: transient,
	}}}
}

// ToolDone is the outcome of a member's open tool call.
func (k *Kit) ToolDone(member, output string, files ...*rollcallv1.FileChange) *rollcallv1.Command {
	k.Helper()
	run := k.Member(member).Run
	if run == nil || len(run.Calls) == 0 {
		k.Fatalf("%s has no open call", member)
	}
	return &rollcallv1.Command{Actor: member, Kind: &rollcallv1.Command_RecordToolOutcome{RecordToolOutcome: &rollcallv1.RecordToolOutcome{
		Member: member, Run: run.ID, Step: run.Step, Call: run.Calls[0].ID, Output: Text(output), Files: files,
	}}}
}

// File is a change that writes a file.
func File(path, sha string) *rollcallv1.FileChange {
	return &rollcallv1.FileChange{Path: path, Blob: &rollcallv1.Blob{Sha256: sha, Size: 3}}
}

// Act runs a member's tool calls in one reply and returns their outputs; its
// run goes on to the next step, or waits.
func (k *Kit) Act(member string, calls ...*rollcallv1.ToolCall) []*rollcallv1.ToolCallFinished {
	k.Helper()
	return Finished(k.Do(k.Reply(member, "", calls...)))
}

// Acts is Act with one call that must succeed.
func (k *Kit) Acts(member, name string, args any) string {
	k.Helper()
	done := k.Act(member, Call(name, args))
	if len(done) != 1 || done[0].GetError() {
		k.Fatalf("%s of %s: %v", name, member, done)
	}
	return done[0].GetOutput().GetText()
}

// Fails is Act with one call that must be an error, whose text it returns.
func (k *Kit) Fails(member, name string, args any) string {
	k.Helper()
	done := k.Act(member, Call(name, args))
	if len(done) != 1 || !done[0].GetError() {
		k.Fatalf("%s of %s was not refused: %v", name, member, done)
	}
	return done[0].GetOutput().GetText()
}

// Ends lets a member end its run with a text.
func (k *Kit) Ends(member, text string) []*rollcallv1.Event {
	k.Helper()
	return k.Do(k.Reply(member, text))
}

// Team opens a mailbox conversation whose Lead has added members of these
// names, m1, m2, ... Each has read its brief and rests; so does the Lead.
func Team(t T, k *Kit, names ...string) *Kit {
	t.Helper()
	k.Do(Say("", "do it"))
	calls := []*rollcallv1.ToolCall{Call("team_create", Args{"name": "crew"})}
	for _, name := range names {
		calls = append(calls, Call("team_member_add", Args{"name": name, "initial_prompt": "you are " + name}))
	}
	for _, done := range k.Act("lead", calls...) {
		if done.GetError() {
			t.Fatalf("%v", done)
		}
	}
	k.Ends("lead", "under way")
	for i := range names {
		k.Ends(fmt.Sprintf("m%d", i+1), "ready")
	}
	return k
}

// Events is Act for the events of the commit.
func (k *Kit) Events(member string, calls ...*rollcallv1.ToolCall) []*rollcallv1.Event {
	k.Helper()
	return k.Do(k.Reply(member, "", calls...))
}

// Rests ends the member's run if it has one.
func (k *Kit) Rests(member string) {
	k.Helper()
	if k.Member(member).Run != nil {
		k.Ends(member, "so be it")
	}
}

// Decide is the operator's answer to an approval.
func Decide(approval string, approve bool, reason string) *rollcallv1.Command {
	return &rollcallv1.Command{Actor: "operator", Kind: &rollcallv1.Command_DecideApproval{DecideApproval: &rollcallv1.DecideApproval{
		Approval: approval, Approve: approve, Reason: reason,
	}}}
}

// Fire is the command of the timer with that id, which must be armed.
func (k *Kit) Fire(timer string) *rollcallv1.Command {
	k.Helper()
	for _, t := range k.State.Timers {
		if t.ID == timer {
			return &rollcallv1.Command{Actor: "framework", Kind: &rollcallv1.Command_FireTimer{FireTimer: &rollcallv1.FireTimer{
				Timer: t.ID, Due: timestamppb.New(t.Due),
			}}}
		}
	}
	k.Fatalf("timer %s is not armed", timer)
	return nil
}
