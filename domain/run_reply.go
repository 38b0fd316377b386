package domain

import (
	"fmt"
	"slices"
	"strings"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const (
	// maxArguments bounds what the calls of one reply take in the log, in bytes.
	maxArguments = 256 << 10
	// maxReplyCalls bounds the calls of one reply that are recorded: each has an
	// outcome, and all must fit into one commit.
	maxReplyCalls = 512
)

// finishTooLarge is recorded instead of the server's finish reason when the
// calls of a reply would not fit into a commit: none of them is run.
const finishTooLarge = "too_large"

// recordReply takes a complete answer: it records it, runs its tool calls as
// far as the log can, and decides how the run goes on.
func (d *Decision) recordReply(c *rollcallv1.RecordReply) *Refusal {
	m, refusal := d.open(c.GetMember(), c.GetRun())
	if refusal != nil {
		return refusal
	}
	if m.Run.Phase != Calling || c.GetStep() != m.Run.Step || c.GetAttempt() != m.Run.Attempt {
		return stale(fmt.Sprintf("run %s is at step %d, attempt %d", m.Run.ID, m.Run.Step, m.Run.Attempt))
	}
	for _, b := range []*rollcallv1.Body{c.GetText(), c.GetReasoning()} {
		if len(b.GetText()) > MaxInline {
			return Refuse("text-too-long", "the reply is not recorded", fmt.Sprintf("a text of %d bytes stands in it", len(b.GetText())), "put it into the object store first")
		}
	}
	reply := d.reply(m, c)
	d.emit(reply)
	d.settleReply(m, reply.GetUsage())
	switch {
	case cutReply(reply):
		d.replyCut(m, reply)
	case len(reply.GetCalls()) > 0:
		d.proceed(m)
	case emptyReply(reply):
		d.replyEmpty(m)
	default:
		d.replyFinal(m, reply)
	}
	return nil
}

// reply is the answer as it is recorded: its text fit for the log, its calls
// with ids that are unique in the run, no calls when it was cut.
func (d *Decision) reply(m *Member, c *rollcallv1.RecordReply) *rollcallv1.ModelReplied {
	reply := &rollcallv1.ModelReplied{
		Run: m.Run.ID, Member: m.ID, Step: c.GetStep(), Attempt: c.GetAttempt(),
		Text: cleanBody(c.GetText()), Reasoning: cleanBody(c.GetReasoning()), Finish: cut(Clean(c.GetFinish()), 100),
		Usage: d.priced(m, c.GetModel(), c.GetUsage()), RequestHash: Clean(c.GetRequestHash()), Model: cut(Clean(c.GetModel()), 200),
	}
	size := 0
	for _, call := range c.GetCalls() {
		size += len(call.GetArguments()) + len(call.GetName()) + len(call.GetId())
	}
	if size > maxArguments || len(c.GetCalls()) > maxReplyCalls {
		reply.Finish = finishTooLarge
	}
	if !cutReply(reply) {
		reply.Calls = uniqueCalls(m.Run, c.GetStep(), c.GetCalls())
	}
	return reply
}

// uniqueCalls gives an id of ours to each call that has none or one that the
// run has seen.
func uniqueCalls(run *Run, step uint32, calls []*rollcallv1.ToolCall) []*rollcallv1.ToolCall {
	used := map[string]bool{}
	for _, id := range run.CallIDs {
		used[id] = true
	}
	unique := make([]*rollcallv1.ToolCall, 0, len(calls))
	for i, call := range calls {
		id := Clean(call.GetId())
		for n := i + 1; id == "" || used[id] || len(id) > 100; n++ {
			id = fmt.Sprintf("%s-%d-%d", run.ID, step, n)
		}
		used[id] = true
		unique = append(unique, &rollcallv1.ToolCall{
			Id: id, Name: cut(Clean(call.GetName()), 200), Arguments: Clean(call.GetArguments()), ArgumentsBlob: call.GetArgumentsBlob(),
			Extra: Clean(call.GetExtra()),
		})
	}
	return unique
}

// cutReply reports whether the answer was broken off: it runs no tool and ends
// no run.
func cutReply(r *rollcallv1.ModelReplied) bool {
	return slices.Contains([]string{"length", "content_filter", finishTooLarge}, r.GetFinish())
}

func emptyReply(r *rollcallv1.ModelReplied) bool {
	return !cutReply(r) && len(r.GetCalls()) == 0 && emptyBody(r.GetText())
}

func (d *Decision) replyCut(m *Member, reply *rollcallv1.ModelReplied) {
	if m.Run.Cut > 1 {
		d.finish(m, failing("reply-cut", "two replies in a row were cut off ("+reply.GetFinish()+")"))
		return
	}
	d.note(m, "reply.cut", cutNote(reply.GetFinish()))
	d.boundary(m)
}

// replyEmpty nudges a model that said nothing, once. A run that has delivered
// its task may end in silence.
func (d *Decision) replyEmpty(m *Member) {
	switch {
	case m.Run.Delivered && !m.IsLead():
		d.finish(m, ending{Reason: rollcallv1.FinishReason_FINISH_REASON_COMPLETED})
	case m.Run.Empty > 1:
		d.finish(m, failing("reply-empty", "two replies in a row had neither text nor a tool call"))
	default:
		d.note(m, "reply.empty", emptyNote)
		d.boundary(m)
	}
}

// replyFinal ends the run with the model's last word.
func (d *Decision) replyFinal(m *Member, reply *rollcallv1.ModelReplied) {
	if m.IsLead() {
		d.emit(&rollcallv1.LeadReplied{Run: m.Run.ID, Text: reply.GetText()})
	}
	end := ending{Reason: rollcallv1.FinishReason_FINISH_REASON_IDLE, Text: reply.GetText()}
	switch {
	case m.Run.Delivered:
		end.Reason = rollcallv1.FinishReason_FINISH_REASON_COMPLETED
	case len(m.Waits) > 0: // ending without delivery re-enters the wait
		end.Reason = rollcallv1.FinishReason_FINISH_REASON_WAITING
	case !m.IsLead() && len(d.State().undelivered(m)) > 0: // whoever is told of it can read why
		end.Detail = cut(strings.Join(strings.Fields(reply.GetText().GetText()), " "), 500)
	}
	d.finish(m, end)
}

// note is a word of the framework to a member: one that works reads it at its
// next step, one that rests wakes for it.
func (d *Decision) note(m *Member, topic, text string) {
	d.deliver(letter{kind: rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT, from: Framework, to: m.ID, body: textBody(text), topic: topic})
}
