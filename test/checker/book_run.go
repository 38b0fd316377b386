package checker

import (
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// run is a member's turn as far as it was read.
type run struct {
	id     string
	member *member
	agent  string
	open   bool

	// step and attempt of the newest model call; calling while it has no outcome.
	step, attempt uint32
	calling       bool
	// called is the version that began that call.
	called uint64
	// again says what allows another attempt: a failure that is to be retried,
	// or that the run was taken up since the call began.
	again bool
	// reply is the step's reply, nil while there is none.
	reply *rollcallv1.ModelReplied
	// pending are the step's calls that have no outcome, in order; outcomes the
	// ids of those that have one. asked for in any step: known.
	pending  []*rollcallv1.ToolCall
	outcomes map[string]bool
	known    map[string]bool
	// begun is the external call that was started and has no outcome; lost is
	// true when the run was taken up since.
	begun *rollcallv1.ToolCallStarted
	lost  bool

	// asking is the approval that its next call waits for; let says of calls
	// whether they were approved.
	asking *approval
	let    map[string]bool

	// delegated are its calls that subagents work for; result is what a subagent
	// delivered.
	delegated map[string]*member
	result    string

	// suspended is the reason it was let go for; empty while it is worked on.
	suspended string
	// rests is true while nothing happened in it since it was let go.
	rests bool
	// taken counts how often it was taken up as lost since its last reply.
	taken uint32

	unanswered []*letter
	returned   bool
	// asked are questions of the step that nobody answered.
	asked     map[string]*letter
	delivered bool
	// said is true once the Lead gave its last word.
	said   bool
	reason rollcallv1.FinishReason
	// sent counts, by step, the calls that a commit left open: only these can
	// have reached a model server. Each has the time its commit was stored.
	sent map[uint32][]Stored
}

func (r *run) String() string { return "run " + r.id + " of " + r.member.String() }

// parked reports whether the run rests at a boundary until the pause ends.
func (r *run) parked() bool { return !r.calling && r.begun == nil && r.suspended != "" }

func (b *book) enterRun(f fact) {
	b.enterApproval(f)
	switch k := f.GetKind().(type) {
	case *rollcallv1.Event_AgentBound:
		b.bound[k.AgentBound.GetHash()] = k.AgentBound
	case *rollcallv1.Event_RunStarted:
		b.started(k.RunStarted)
	case *rollcallv1.Event_LeadReplied:
		if r := b.runs[k.LeadReplied.GetRun()]; r != nil {
			r.said = true
		}
	default:
		if r := b.runs[f.run]; f.inside && r != nil {
			b.inside(r, f)
		}
	}
}

func (b *book) started(e *rollcallv1.RunStarted) {
	m := b.who(e.GetMember())
	if m.run != nil {
		m.run.open = false
	}
	r := &run{
		id: e.GetRun(), member: m, agent: e.GetAgentHash(), open: true, outcomes: map[string]bool{}, known: map[string]bool{},
		asked: map[string]*letter{}, let: map[string]bool{}, delegated: map[string]*member{}, sent: map[uint32][]Stored{},
	}
	b.runs[r.id], m.run, m.spawning = r, r, false
	b.take(r, e.GetConsumed())
}

func (b *book) inside(r *run, f fact) {
	r.rests = f.GetRunSuspended() != nil
	switch k := f.GetKind().(type) {
	case *rollcallv1.Event_RunSuspended:
		r.suspended = "let go"
		if reason := k.RunSuspended.GetReason(); reason != "" {
			r.suspended = reason
		}
	case *rollcallv1.Event_RunResumed:
		r.suspended, r.taken = "", k.RunResumed.GetAttempt()
		if !k.RunResumed.GetWaited() { // who only waited makes the call that was begun
			r.again, r.lost = true, r.begun != nil
		}
	case *rollcallv1.Event_ModelCallStarted:
		r.step, r.attempt = k.ModelCallStarted.GetStep(), k.ModelCallStarted.GetAttempt()
		r.calling, r.again, r.reply, r.called = true, false, nil, f.version
	case *rollcallv1.Event_ModelReplied:
		b.replied(r, k.ModelReplied)
	case *rollcallv1.Event_ModelCallFailed:
		r.calling, r.again = false, k.ModelCallFailed.GetRetry()
	case *rollcallv1.Event_BudgetSettled:
		if r.reply == nil { // of a call that was cut off; else the reply said it
			b.tokens += k.BudgetSettled.GetTokens()
			b.micros += k.BudgetSettled.GetCostMicros()
		}
	case *rollcallv1.Event_ToolCallStarted:
		r.begun, r.lost, b.performing = k.ToolCallStarted, false, nil
	case *rollcallv1.Event_SubagentStarted:
		b.enterSubagent(k.SubagentStarted)
	case *rollcallv1.Event_ToolCallFinished:
		b.outcome(r, k.ToolCallFinished)
	case *rollcallv1.Event_RunFinished:
		b.finished(r, k.RunFinished)
	}
}

func (b *book) replied(r *run, e *rollcallv1.ModelReplied) {
	r.calling, r.again, r.reply, r.unanswered, r.taken, r.suspended = false, false, e, nil, 0, ""
	r.pending = nil
	if !cut(e.GetFinish()) {
		r.pending = slices.Clone(e.GetCalls())
	}
	for _, c := range e.GetCalls() {
		r.known[c.GetId()] = true
	}
	b.perform(r)
	b.tokens += e.GetUsage().GetInputTokens() + e.GetUsage().GetOutputTokens()
	b.micros += e.GetUsage().GetCostMicros()
}

func (b *book) outcome(r *run, e *rollcallv1.ToolCallFinished) {
	b.handed(r, e)
	r.outcomes[e.GetCall()] = true
	r.pending = slices.DeleteFunc(r.pending, func(c *rollcallv1.ToolCall) bool { return c.GetId() == e.GetCall() })
	r.begun, r.lost = nil, false
	b.perform(r)
}

// perform notes whether what follows is the doing of a call of the run.
func (b *book) perform(r *run) {
	b.performing = nil
	if r.next() != nil {
		b.performing = r
	}
}

func (b *book) finished(r *run, e *rollcallv1.RunFinished) {
	r.open, r.reason = false, e.GetReason()
	if b.performing == r {
		b.performing = nil
	}
	m := r.member
	if m.run == r {
		m.run = nil
	}
	b.ended = append(b.ended, r)
	switch e.GetReason() {
	case rollcallv1.FinishReason_FINISH_REASON_FAILED:
		m.held = "its last run failed"
	case rollcallv1.FinishReason_FINISH_REASON_OUT_OF_BUDGET:
		m.held, m.broke = "its last run was out of budget", true
	case rollcallv1.FinishReason_FINISH_REASON_INTERRUPTED:
		if e.GetCode() == byHand {
			m.held = "the operator interrupted it by hand"
		}
	}
}

// byHand is the code of a run that the operator ended without a word.
const byHand = "interrupted-by-operator"
