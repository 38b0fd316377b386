package checker

import (
	"encoding/json"
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const roleSubagent = rollcallv1.MemberRole_MEMBER_ROLE_SUBAGENT

// enterSubagent takes a member that works for a call into the books.
func (b *book) enterSubagent(e *rollcallv1.SubagentStarted) {
	m := b.who(e.GetSubagent())
	m.name, m.role, m.spawning, m.caller, m.forCall = e.GetName(), roleSubagent, true, e.GetMember(), e.GetCall()
	r := b.runs[e.GetRun()]
	if r == nil {
		return
	}
	r.delegated[e.GetCall()] = m
	r.suspended = "it waits for a subagent"
	b.perform(r)
}

// handed takes the outcome of a call that a subagent works for into the books.
func (b *book) handed(r *run, e *rollcallv1.ToolCallFinished) {
	if r.member.role == roleSubagent && e.GetName() == "complete" && !e.GetError() {
		r.delivered, r.result = true, e.GetOutput().GetText()
	}
	if r.delegated[e.GetCall()] == nil {
		return
	}
	delete(r.delegated, e.GetCall())
	if len(r.delegated) == 0 {
		r.suspended = ""
	}
}

// next is the first call of the run's step that nobody works for; nil when there
// is none.
func (r *run) next() *rollcallv1.ToolCall {
	i := slices.IndexFunc(r.pending, func(c *rollcallv1.ToolCall) bool { return r.delegated[c.GetId()] == nil })
	if i < 0 {
		return nil
	}
	return r.pending[i]
}

// subagents reports events of the beginning and the end of subagents, which the
// rule of that name judges.
func (b *book) subagents(f fact) bool {
	if d := f.GetMessageDelivered(); d != nil && (d.GetKind() == rollcallv1.MailKind_MAIL_KIND_BRIEF || d.GetKind() == rollcallv1.MailKind_MAIL_KIND_CONTROL) {
		m := b.members[d.GetTo()]
		return m != nil && m.role == roleSubagent
	}
	m := b.members[f.GetMemberShutdown().GetMember()]
	return f.GetSubagentStarted() != nil || m != nil && m.role == roleSubagent
}

// host is the member in whose workspace a member works.
func (b *book) host(m *member) string {
	for m.role == roleSubagent && b.members[m.caller] != nil {
		m = b.members[m.caller]
	}
	return m.id
}

// subagents: a subagent is made by a call that has no other, of a run that is
// open. The call's outcome is what the subagent came to – what it delivered, its
// last words as such, or an error – and comes in the commit in which the
// subagent's run ends. With the call, or with the caller's run, it is gone; until
// then it stays.
func subagents(b *book, say say) watcher {
	type ended struct {
		run *run
		e   *rollcallv1.RunFinished
	}
	over := map[string]ended{} // runs of subagents that ended in this commit
	outcome := func(r *run, sub *member, e *rollcallv1.ToolCallFinished) {
		var told struct {
			Undelivered bool `json:"undelivered"`
		}
		end, here := over[sub.id]
		text := e.GetOutput().GetText()
		switch {
		case !here:
			say("call %s of %v has an outcome, and the run of %v, which works for it, did not end", e.GetCall(), r, sub)
		case end.run.result != "":
			if e.GetError() || text != end.run.result {
				say("call %s of %v has another outcome than %v delivered", e.GetCall(), r, sub)
			}
		case end.e.GetReason() == rollcallv1.FinishReason_FINISH_REASON_IDLE:
			if e.GetError() || e.GetOutput().GetBlob() == nil && (json.Unmarshal([]byte(text), &told) != nil || !told.Undelivered) {
				say("call %s of %v has an outcome as if %v had delivered it", e.GetCall(), r, sub)
			}
		case !e.GetError():
			say("call %s of %v succeeds, and the run of %v ended with %v", e.GetCall(), r, sub, end.e.GetReason())
		}
	}
	return watcher{
		event: func(f fact) {
			r := b.in(f)
			if r == nil {
				return
			}
			switch k := f.GetKind().(type) {
			case *rollcallv1.Event_SubagentStarted:
				s := k.SubagentStarted
				next := r.next()
				switch {
				case b.members[s.GetSubagent()] != nil:
					say("subagent %s is made, and the id was used before", s.GetSubagent())
				case next == nil || next.GetId() != s.GetCall() || next.GetName() != "task":
					say("subagent %s is made for call %s of %v, which is no call of task that is next", s.GetSubagent(), s.GetCall(), r)
				}
			case *rollcallv1.Event_RunFinished:
				if r.member.role == roleSubagent {
					over[r.member.id] = ended{r, k.RunFinished}
				}
			case *rollcallv1.Event_ToolCallFinished:
				if sub := r.delegated[k.ToolCallFinished.GetCall()]; sub != nil {
					outcome(r, sub, k.ToolCallFinished)
				} else if e := k.ToolCallFinished; e.GetName() == "task" && !e.GetError() {
					say("call %s of %v succeeds, and no subagent worked for it", e.GetCall(), r)
				}
			}
		},
		end: func(*rollcallv1.Commit) {
			clear(over)
			for _, m := range b.order {
				if m.role != roleSubagent {
					continue
				}
				caller := b.members[m.caller]
				works := caller != nil && caller.run != nil && caller.run.delegated[m.forCall] == m
				if works == m.gone {
					say("%v is gone: %t, and a call of its caller waits for it: %t", m, m.gone, works)
				}
			}
		},
	}
}
