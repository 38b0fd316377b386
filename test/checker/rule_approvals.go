package checker

import (
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// approval is a call that waits for the operator, as far as it was read.
type approval struct {
	*rollcallv1.ApprovalRequested
	run *run
	// ended is Decided or Voided; empty while it is pending.
	ended string
}

// enterApproval takes what happens to approvals into the books.
func (b *book) enterApproval(f fact) {
	switch k := f.GetKind().(type) {
	case *rollcallv1.Event_ApprovalRequested:
		r := b.runs[k.ApprovalRequested.GetRun()]
		a := &approval{ApprovalRequested: k.ApprovalRequested, run: r}
		b.approvals[a.GetApproval()] = a
		if r != nil {
			r.asking, r.suspended, b.performing = a, "it waits for an approval", nil
		}
	case *rollcallv1.Event_ApprovalDecided:
		a := b.approvals[k.ApprovalDecided.GetApproval()]
		if a == nil || a.ended != "" {
			return
		}
		a.ended = "decided"
		if r := a.run; r != nil && r.asking == a {
			r.asking, r.suspended = nil, ""
			r.let[a.GetCall()] = k.ApprovalDecided.GetApproved()
			b.perform(r)
		}
	case *rollcallv1.Event_ApprovalVoided:
		if a := b.approvals[k.ApprovalVoided.GetApproval()]; a != nil && a.ended == "" {
			a.ended = "void"
			if a.run != nil && a.run.asking == a {
				a.run.asking = nil
			}
		}
	}
}

// approvals: a call of a tool that needs approval is asked for once, when it is
// next, and is made only when it was approved; one that was denied fails. Who
// decides is the operator, by a command, or the framework, by the default and
// when the time is over; the first answer counts. An approval whose run ends is
// void, and no other is.
func approvals(b *book, say say) watcher {
	needs := func(r *run, name string) bool {
		return slices.ContainsFunc(b.bound[r.agent].GetTools(), func(t *rollcallv1.ToolDefinition) bool {
			return t.GetName() == name && t.GetNeedsApproval()
		})
	}
	asks := func(r *run, e *rollcallv1.ApprovalRequested) {
		_, decided := r.let[e.GetCall()]
		switch {
		case b.approvals[e.GetApproval()] != nil:
			say("approval %s is asked for twice", e.GetApproval())
		case r.asking != nil:
			say("%v asks for approval %s while it waits for %s", r, e.GetApproval(), r.asking.GetApproval())
		case len(r.pending) == 0 || r.pending[0].GetId() != e.GetCall() || r.pending[0].GetName() != e.GetTool():
			say("%v asks for approval %s of call %s (%s), which is not its next", r, e.GetApproval(), e.GetCall(), e.GetTool())
		case !needs(r, e.GetTool()) || decided || r.begun != nil:
			say("%v asks for approval %s of call %s (%s), which needs none", r, e.GetApproval(), e.GetCall(), e.GetTool())
		}
	}
	decides := func(e *rollcallv1.ApprovalDecided) {
		a := b.approvals[e.GetApproval()]
		switch {
		case a == nil || a.ended != "":
			say("approval %q is decided, and is not pending", e.GetApproval())
		case len(b.current.GetCommandIds()) == 0:
			say("approval %s is decided, and no command came with the commit", e.GetApproval())
		case e.GetBy() == framework && (a.GetDue() == nil || e.GetApproved() != a.GetApproveOnTimeout()):
			say("the framework decides approval %s: %t, which is not what the time decides", e.GetApproval(), e.GetApproved())
		case e.GetBy() != framework && e.GetBy() != operator:
			say("%s decides approval %s, which is for the operator", e.GetBy(), e.GetApproval())
		}
	}
	return watcher{
		event: func(f fact) {
			switch k := f.GetKind().(type) {
			case *rollcallv1.Event_ApprovalDecided:
				decides(k.ApprovalDecided)
				return
			case *rollcallv1.Event_ApprovalVoided:
				if a := b.approvals[k.ApprovalVoided.GetApproval()]; a == nil || a.ended != "" {
					say("approval %q is void, and is not pending", k.ApprovalVoided.GetApproval())
				}
				return
			}
			r := b.in(f)
			if r == nil {
				return
			}
			switch k := f.GetKind().(type) {
			case *rollcallv1.Event_ApprovalRequested:
				asks(r, k.ApprovalRequested)
			case *rollcallv1.Event_ToolCallStarted:
				if s := k.ToolCallStarted; needs(r, s.GetName()) && !r.let[s.GetCall()] {
					say("call %s (%s) of %v is begun, and was not approved", s.GetCall(), s.GetName(), r)
				}
			case *rollcallv1.Event_ToolCallFinished:
				e := k.ToolCallFinished
				switch yes, decided := r.let[e.GetCall()]; {
				case r.asking != nil && r.asking.GetCall() == e.GetCall():
					say("call %s (%s) of %v has an outcome, and nobody decided approval %s", e.GetCall(), e.GetName(), r, r.asking.GetApproval())
				case !e.GetError() && needs(r, e.GetName()) && !yes, decided && !yes && !e.GetError():
					say("call %s (%s) of %v succeeds, and was not approved", e.GetCall(), e.GetName(), r)
				}
			}
		},
		end: func(*rollcallv1.Commit) { outlive(b, say) },
	}
}

// outlive holds that an approval is void exactly when its run ended before it was
// decided.
func outlive(b *book, say say) {
	for id, a := range b.approvals {
		if a.run == nil {
			continue
		}
		switch {
		case a.ended == "" && !a.run.open:
			say("approval %s outlives %v", id, a.run)
		case a.ended == "void" && a.run.open:
			say("approval %s is void, and %v goes on", id, a.run)
		}
	}
}
