package projections

import (
	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// place is where an event stands and when it happened, for its rows.
type place struct {
	conv, version, time int64
	event               int
}

// event writes the rows of one event that a state does not keep: mail, runs,
// usage, files, the Lead's word. An event of a newer release has none.
func (b *batch) event(c *conversation, commit *rollcallv1.Commit, index int, e *rollcallv1.Event) error {
	at := place{conv: c.row, version: number(commit.GetVersion()), time: nanos(commit.GetTime().AsTime()), event: index}
	switch k := e.GetKind().(type) {
	case *rollcallv1.Event_LeadReplied:
		text, hash, size := body(k.LeadReplied.GetText())
		return b.exec("UPDATE conversations SET answer = ?, answer_hash = ?, answer_size = ?, answer_at = ? WHERE conv = ?",
			text, hash, size, at.version, at.conv)
	case *rollcallv1.Event_MessageDelivered:
		return b.delivered(at, k.MessageDelivered)
	case *rollcallv1.Event_MessagesConsumed:
		return b.consumed(at, k.MessagesConsumed.GetRun(), k.MessagesConsumed.GetMessages())
	case *rollcallv1.Event_MessagesReturned:
		return b.returned(at, k.MessagesReturned.GetMessages())
	case *rollcallv1.Event_FileWritten:
		f := k.FileWritten
		return b.exec(`INSERT INTO files (conv, member, path, hash, size, version, time) VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (conv, member, path) DO UPDATE SET hash = excluded.hash, size = excluded.size,
			version = excluded.version, time = excluded.time`,
			at.conv, f.GetMember(), f.GetPath(), f.GetBlob().GetSha256(), number(f.GetBlob().GetSize()), at.version, at.time)
	case *rollcallv1.Event_FileDeleted:
		f := k.FileDeleted
		return b.exec("DELETE FROM files WHERE conv = ? AND member = ? AND path = ?", at.conv, f.GetMember(), f.GetPath())
	}
	return b.runEvent(at, e)
}

// runEvent writes the rows of the events of a run.
func (b *batch) runEvent(at place, e *rollcallv1.Event) error {
	switch k := e.GetKind().(type) {
	case *rollcallv1.Event_RunStarted:
		return b.started(at, k.RunStarted)
	case *rollcallv1.Event_RunSuspended:
		return b.run(at, k.RunSuspended.GetRun(), "detail = ?", k.RunSuspended.GetReason())
	case *rollcallv1.Event_RunResumed: // one that waited was not lost
		return b.run(at, k.RunResumed.GetRun(), "detail = '', resumes = resumes + ?", !k.RunResumed.GetWaited())
	case *rollcallv1.Event_ModelCallStarted:
		return b.run(at, k.ModelCallStarted.GetRun(), "calls_started = calls_started + 1, steps = max(steps, ?)", k.ModelCallStarted.GetStep())
	case *rollcallv1.Event_ModelCallFailed:
		return b.run(at, k.ModelCallFailed.GetRun(), "calls_failed = calls_failed + 1")
	case *rollcallv1.Event_ModelReplied:
		return b.replied(at, k.ModelReplied)
	case *rollcallv1.Event_ApprovalRequested:
		r := k.ApprovalRequested
		return b.run(at, r.GetRun(), "detail = ?", "waits for approval "+r.GetApproval()+" of "+r.GetTool())
	case *rollcallv1.Event_SubagentStarted:
		s := k.SubagentStarted
		return b.run(at, s.GetRun(), "detail = ?", "waits for subagent "+s.GetSubagent())
	case *rollcallv1.Event_ToolCallStarted:
		return b.run(at, k.ToolCallStarted.GetRun(), "detail = ''")
	case *rollcallv1.Event_ToolCallFinished:
		f := k.ToolCallFinished
		return b.run(at, f.GetRun(), "detail = '', tool_calls = tool_calls + 1, tool_errors = tool_errors + ?", f.GetError() || f.GetUnknown())
	case *rollcallv1.Event_RunFinished:
		f := k.RunFinished
		return b.run(at, f.GetRun(), "status = 'finished', finished = ?, finished_version = ?, reason = ?, code = ?, detail = ?, undelivered = ?",
			at.time, at.version, domain.Word(f.GetReason()), f.GetCode(), f.GetDetail(), list(f.GetUndelivered()))
	}
	return nil
}

func (b *batch) delivered(at place, m *rollcallv1.MessageDelivered) error {
	text, hash, size := body(m.GetBody())
	mode := ""
	if m.GetMode() != 0 {
		mode = domain.Word(m.GetMode())
	}
	return b.exec(`INSERT OR IGNORE INTO mail
		(conv, id, version, event, time, kind, sender, recipient, mode, topic, task, about, reply_to, wait_for_reply,
		body, body_hash, body_size, run, read_version, read_time, returned)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', 0, 0, 0)`,
		at.conv, m.GetMessage(), at.version, at.event, at.time, domain.Word(m.GetKind()), m.GetFrom(), m.GetTo(), mode,
		m.GetTopic(), m.GetTask(), m.GetAbout(), m.GetReplyTo(), m.GetWaitForReply(), text, hash, size)
}

func (b *batch) consumed(at place, run string, messages []*rollcallv1.MessageRef) error {
	for _, m := range messages {
		if err := b.exec("UPDATE mail SET run = ?, read_version = ?, read_time = ? WHERE conv = ? AND id = ?",
			run, at.version, at.time, at.conv, m.GetMessage()); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) returned(at place, messages []*rollcallv1.MessageRef) error {
	for _, m := range messages {
		if err := b.exec("UPDATE mail SET run = '', read_version = 0, read_time = 0, returned = returned + 1 WHERE conv = ? AND id = ?",
			at.conv, m.GetMessage()); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) started(at place, r *rollcallv1.RunStarted) error {
	woken := make([]string, 0, len(r.GetConsumed()))
	for _, m := range r.GetConsumed() {
		woken = append(woken, m.GetMessage())
	}
	if err := b.exec(`INSERT OR IGNORE INTO runs
		(conv, id, member, status, woken_by, agent_hash, started, started_version, finished, finished_version,
		reason, code, detail, undelivered, steps, calls_started, calls_failed, tool_calls, tool_errors, resumes)
		VALUES (?, ?, ?, 'open', ?, ?, ?, ?, 0, 0, '', '', '', '[]', 0, 0, 0, 0, 0, 0)`,
		at.conv, r.GetRun(), r.GetMember(), list(woken), r.GetAgentHash(), at.time, at.version); err != nil {
		return err
	}
	return b.consumed(at, r.GetRun(), r.GetConsumed())
}

func (b *batch) replied(at place, r *rollcallv1.ModelReplied) error {
	u := r.GetUsage()
	return b.exec(`INSERT OR IGNORE INTO usage
		(conv, version, event, time, run, member, step, attempt, model, finish, request_hash,
		input_tokens, output_tokens, cached_tokens, cost_micros, estimated)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		at.conv, at.version, at.event, at.time, r.GetRun(), r.GetMember(), r.GetStep(), r.GetAttempt(), r.GetModel(), r.GetFinish(),
		r.GetRequestHash(), number(u.GetInputTokens()), number(u.GetOutputTokens()), number(u.GetCachedTokens()), number(u.GetCostMicros()), u.GetEstimated())
}

// run changes a run's row.
func (b *batch) run(at place, run, set string, args ...any) error {
	return b.exec("UPDATE runs SET "+set+" WHERE conv = ? AND id = ?", append(args, at.conv, run)...)
}
