package checker

import (
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// waits: a member waits on a question that it asked in the step that ends with
// the wait, and that nobody has answered; who asked so does not go on. Only an
// answer closes a wait: a message that names the question, or any word of the
// operator to whoever asked him. Otherwise its end is recorded with the reason:
// cancelled, when the member delivered, its assignment was ended or it was shut down; shutdown, when the
// member asked was: nobody waits on who is gone.
func waits(b *book, say say) watcher {
	var given []*rollcallv1.WaitEnded // up: to be explained when the commit ends
	begins := func(w *rollcallv1.WaitStarted) {
		m, question := b.members[w.GetMember()], b.mail[w.GetMessage()]
		switch {
		case m == nil || m.run == nil:
			say("%s waits on message %s, and is not at work", w.GetMember(), w.GetMessage())
		case question == nil || m.run.asked[w.GetMessage()] == nil:
			say("%v waits on message %q, which is no open question of its step", m, w.GetMessage())
		case question.GetTo() != w.GetAwaited():
			say("%v waits for %s, and message %s asked %s", m, w.GetAwaited(), w.GetMessage(), question.GetTo())
		}
	}
	ends := func(w *rollcallv1.WaitEnded) {
		m := b.members[w.GetMember()]
		if m == nil {
			return
		}
		question, open := m.waits[w.GetMessage()]
		if !open {
			say("%v stops waiting on message %s, and did not wait on it", m, w.GetMessage())
			return
		}
		switch w.GetReason() {
		case "replied":
			if question != nil && !b.answered(m, question) {
				say("%v stops waiting on message %s as if it were answered, and no message of the commit answers it", m, w.GetMessage())
			}
		case "cancelled":
			given = append(given, w)
		case "shutdown":
			if asked := b.members[question.awaited()]; asked == nil || !asked.gone {
				say("%v stops waiting on message %s because %s was shut down, who was not", m, w.GetMessage(), question.awaited())
			}
		default:
			say("%v stops waiting on message %s for the reason %q, which there is not", m, w.GetMessage(), w.GetReason())
		}
	}
	return watcher{
		event: func(f fact) {
			switch k := f.GetKind().(type) {
			case *rollcallv1.Event_WaitStarted:
				begins(k.WaitStarted)
			case *rollcallv1.Event_WaitEnded:
				ends(k.WaitEnded)
			case *rollcallv1.Event_ModelCallStarted:
				if r := b.in(f); r != nil && len(r.asked) > 0 {
					say("%v asked a question that it waits on, and goes on", r)
				}
			case *rollcallv1.Event_MemberShutdown:
				if m := b.members[k.MemberShutdown.GetMember()]; m != nil && len(m.waits) > 0 {
					say("%v is shut down, and still waits", m)
				}
			}
		},
		end: func(*rollcallv1.Commit) {
			for _, w := range given {
				m := b.members[w.GetMember()]
				if m != nil && !m.gone && !b.endedHere(m.id, rollcallv1.FinishReason_FINISH_REASON_COMPLETED) && b.tasks[m.task].undone() {
					say("%v gave up message %s, and neither delivered nor was shut down", m, w.GetMessage())
				}
			}
			given = nil
			for _, m := range b.order {
				for _, question := range m.waits {
					switch asked := b.members[question.awaited()]; {
					case question == nil:
					case b.answered(m, question):
						say("%v still waits on message %s, which was answered", m, question.GetMessage())
					case asked != nil && asked.gone:
						say("%v still waits on message %s, and nobody is left to answer: %v was shut down", m, question.GetMessage(), asked)
					}
				}
			}
		},
	}
}

// answered reports whether a message of this commit to the member answers its
// question.
func (b *book) answered(m *member, question *letter) bool {
	return slices.ContainsFunc(b.letters, func(l *letter) bool {
		return l.GetTo() == m.id && l.before(question) > 0 && answers(l, question)
	})
}

// awaited is who was asked.
func (l *letter) awaited() string {
	if l == nil {
		return ""
	}
	return l.GetTo()
}
