package checker

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"google.golang.org/protobuf/proto"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// calls: the calls of a reply have ids of their own in the run, and each has one
// outcome, in the order asked, before the next step; none is run of a reply that
// was cut. An external call is begun first, once. A crash hides the outcome of a
// call that cannot be repeated, and of no other (promise 4).
func calls(b *book, say say) watcher {
	next := func(r *run, step uint32, id, what string) bool {
		switch {
		case r.reply != nil && cut(r.reply.GetFinish()):
			say("call %q of %v %s, and the reply that asked for it was cut (%s)", id, r, what, r.reply.GetFinish())
		case r.outcomes[id]:
			say("call %s of %v %s, and has an outcome", id, r, what)
		case len(r.pending) == 0 || !r.known[id]:
			say("call %q of %v %s, and nobody asked for it", id, r, what)
		case r.delegated[id] != nil: // they run side by side
		case r.next() != nil && r.next().GetId() != id:
			say("call %s of %v %s before call %s, which was asked for first", id, r, what, r.next().GetId())
		case step != r.step:
			say("call %s of %v %s in step %d, and the run is at step %d", id, r, what, step, r.step)
		default:
			return true
		}
		return false
	}
	finished := func(r *run, e *rollcallv1.ToolCallFinished) {
		begun := r.begun != nil && r.begun.GetCall() == e.GetCall()
		repeatable := r.begun.GetIdempotent()
		switch {
		case !next(r, e.GetStep(), e.GetCall(), "has an outcome"):
		case e.GetUnknown() && (!begun || !r.lost || repeatable):
			say("call %s of %v has an unknown outcome, and no crash can have hidden it", e.GetCall(), r)
		case begun && r.lost && !repeatable && !e.GetUnknown():
			say("call %s of %v has an outcome, which a crash hid: it was begun, cannot be repeated, and the run was taken up since", e.GetCall(), r)
		}
	}
	return watcher{event: func(f fact) {
		r := b.in(f)
		if r == nil {
			return
		}
		switch k := f.GetKind().(type) {
		case *rollcallv1.Event_ModelReplied:
			fresh := map[string]bool{}
			for _, c := range k.ModelReplied.GetCalls() {
				if id := c.GetId(); id == "" || r.known[id] || fresh[id] {
					say("the reply to step %d of %v asks for a call with the id %q, which the run has used", k.ModelReplied.GetStep(), r, id)
				}
				fresh[c.GetId()] = true
			}
		case *rollcallv1.Event_ToolCallStarted:
			if s := k.ToolCallStarted; next(r, s.GetStep(), s.GetCall(), "is begun") && r.begun != nil {
				say("call %s of %v is begun again", s.GetCall(), r)
			}
		case *rollcallv1.Event_ToolCallFinished:
			finished(r, k.ToolCallFinished)
		case *rollcallv1.Event_ModelCallStarted:
			if len(r.pending) > 0 {
				say("step %d of %v begins, and call %s has no outcome", k.ModelCallStarted.GetStep(), r, r.pending[0].GetId())
			}
		}
	}}
}

// bindings: a run is pinned to a definition that stands in the log under the hash
// of what it says, and its calls are those of tools in it, used as they were
// declared: a coordination tool is decided by the log and never begun, any other
// is begun before it can succeed.
func bindings(b *book, say say) watcher {
	tool := func(r *run, name string) *rollcallv1.ToolDefinition {
		tools := b.bound[r.agent].GetTools()
		if i := slices.IndexFunc(tools, func(t *rollcallv1.ToolDefinition) bool { return t.GetName() == name }); i >= 0 {
			return tools[i]
		}
		return nil
	}
	return watcher{event: func(f fact) {
		switch k := f.GetKind().(type) {
		case *rollcallv1.Event_AgentBound:
			if got := hashOf(k.AgentBound); got != k.AgentBound.GetHash() {
				say("a definition is bound under the hash %s and has %s", k.AgentBound.GetHash(), got)
			} else if b.bound[got] != nil {
				say("the definition %s is bound again", got)
			}
			return
		case *rollcallv1.Event_RunStarted:
			if b.bound[k.RunStarted.GetAgentHash()] == nil {
				say("run %s is pinned to the definition %q, which the log does not have", k.RunStarted.GetRun(), k.RunStarted.GetAgentHash())
			}
			return
		}
		r := b.in(f)
		if r == nil || b.bound[r.agent] == nil {
			return
		}
		if s := f.GetToolCallStarted(); s != nil {
			switch t := tool(r, s.GetName()); {
			case t == nil:
				say("%v begins %s, which is no tool of its definition", r, s.GetName())
			case t.GetCoordination():
				say("%v begins %s, which only the log decides", r, s.GetName())
			case t.GetIdempotent() != s.GetIdempotent():
				say("%v begins %s as idempotent: %t, and it was declared otherwise", r, s.GetName(), s.GetIdempotent())
			}
		}
		if e := f.GetToolCallFinished(); e != nil && !e.GetError() && r.begun == nil {
			if t := tool(r, e.GetName()); t == nil || !t.GetCoordination() {
				say("call %s of %v has an outcome, and %s was never begun", e.GetCall(), r, e.GetName())
			}
		}
	}}
}

// hashOf is the SHA-256 of a definition without its hash.
func hashOf(a *rollcallv1.AgentBound) string {
	rest := proto.CloneOf(a)
	rest.Hash = ""
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(rest)
	if err != nil {
		return err.Error()
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// endings: a run ends for the reason it gives. completed: it delivered a task;
// waiting: it has an open question; idle: neither; each after a reply with all
// calls done, and the Lead after its word to the operator. interrupted: a command
// came; cancelled: the member was shut down, or the operator delivered or failed
// its task; failed and out_of_budget say why.
func endings(b *book, say say) watcher {
	honest := func(r *run, e *rollcallv1.RunFinished) string {
		switch e.GetReason() {
		case rollcallv1.FinishReason_FINISH_REASON_COMPLETED:
			if !r.delivered {
				return "it delivered nothing"
			}
			return atRest(r)
		case rollcallv1.FinishReason_FINISH_REASON_WAITING:
			if len(r.member.waits) == 0 {
				return "it has no open question"
			}
			return atRest(r)
		case rollcallv1.FinishReason_FINISH_REASON_IDLE:
			if r.delivered || len(r.member.waits) > 0 {
				return "it delivered a task or has an open question"
			}
			return atRest(r)
		case rollcallv1.FinishReason_FINISH_REASON_INTERRUPTED:
			if len(b.current.GetCommandIds()) == 0 {
				return "no command came with the commit"
			}
		case rollcallv1.FinishReason_FINISH_REASON_FAILED, rollcallv1.FinishReason_FINISH_REASON_OUT_OF_BUDGET:
			if e.GetCode() == "" {
				return "it does not say what went wrong"
			}
		case rollcallv1.FinishReason_FINISH_REASON_CANCELLED: // see below
		default:
			return "that is no reason"
		}
		return ""
	}
	taken := map[string]bool{} // tasks that the operator delivered or failed in this commit
	return watcher{
		event: func(f fact) {
			if task, by, _ := f.taskEvent(); by == operator && (f.GetTaskCompleted() != nil || f.GetTaskFailed() != nil) {
				taken[task] = true
			}
			if m := b.members[f.GetMemberShutdown().GetMember()]; m != nil && m.run != nil {
				say("%v is shut down, and %v is open", m, m.run)
			}
			r := b.in(f)
			if r == nil {
				return
			}
			if e := f.GetRunFinished(); e != nil {
				if wrong := honest(r, e); wrong != "" {
					say("%v ends with %v, and %s", r, e.GetReason(), wrong)
				}
			}
			if e := f.GetLeadReplied(); e != nil {
				switch {
				case r.said:
					say("%v speaks to the operator twice", r)
				case r.reply == nil || len(r.reply.GetCalls()) > 0 || cut(r.reply.GetFinish()):
					say("%v speaks to the operator, and its reply was not its last word", r)
				case !proto.Equal(r.reply.GetText(), e.GetText()):
					say("%v tells the operator something else than it replied", r)
				}
			}
		},
		end: func(*rollcallv1.Commit) {
			defer clear(taken)
			for _, r := range b.ended {
				if r.reason == rollcallv1.FinishReason_FINISH_REASON_CANCELLED && !r.member.gone && !taken[r.member.task] {
					say("%v was cancelled, its member lives, and the operator did not take its task", r)
				}
			}
			for _, m := range b.order {
				if m.run != nil && m.run.said {
					say("%v gave its last word and goes on", m.run)
				}
			}
		},
	}
}

// atRest says why a run cannot end of itself.
func atRest(r *run) string {
	switch {
	case r.calling || r.reply == nil:
		return "its last call has no reply"
	case r.begun != nil || len(r.pending) > 0:
		return "it has calls without an outcome"
	case r.member.id == leadID && !r.said:
		return "the Lead said nothing to the operator"
	}
	return ""
}
