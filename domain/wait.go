package domain

import (
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Reasons of WaitEnded.
const (
	waitReplied   = "replied"
	waitCancelled = "cancelled"
	waitShutdown  = "shutdown"
)

// answers reports whether mail closes a wait: words of a member or of the
// operator that name the question, or any word of the operator to a member
// that asked him.
func answers(mail *Mail, w *Wait) bool {
	switch mail.Kind {
	case rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE:
		return mail.ReplyTo == w.Message || w.Awaited == User
	case rollcallv1.MailKind_MAIL_KIND_TEXT:
		return mail.ReplyTo == w.Message
	}
	return false
}

// endWaits gives up all questions of the member.
func (d *Decision) endWaits(m *Member, reason string) {
	for _, w := range slices.Clone(m.Waits) {
		d.emit(&rollcallv1.WaitEnded{Member: m.ID, Message: w.Message, Reason: reason})
	}
}

// tellWaiters looks at each question that no answer is in sight for. The one
// who asked is told when the member asked failed or is gone; the Lead is told
// when that member was interrupted by hand or ran out of its budget, when it has
// read the question and rests without an answer, or waits in a circle. Each is
// told once.
func (d *Decision) tellWaiters() {
	s := d.State()
	for _, m := range s.Members {
		for _, w := range slices.Clone(m.Waits) {
			asked := s.Member(w.Awaited)
			switch {
			case asked == nil:
			case !asked.Alive():
				d.emit(&rollcallv1.WaitEnded{Member: m.ID, Message: w.Message, Reason: waitShutdown})
				d.alert(m, w, "nobody-left", goneNote(w, asked))
			case w.Heard:
			case asked.failed():
				d.alert(m, w, "nobody-left", failedNote(w, asked))
			case w.Told:
			case asked.Held && s.leadCanHelp(asked):
				d.alert(s.Lead(), w, "unanswered", heldNote(m, w, asked))
			case w.Read && !s.mayAnswer(asked, map[string]bool{m.ID: true}):
				d.alert(s.Lead(), w, "unanswered", unansweredNote(s, m, w, asked))
			}
		}
	}
}

// leadCanHelp reports whether it helps to tell the Lead of a member that is held
// back: not when it is the Lead itself, or what holds the one holds the other.
func (s *State) leadCanHelp(held *Member) bool {
	return !held.IsLead() && !s.Lead().Held && !s.spent()
}

func (d *Decision) alert(to *Member, w *Wait, topic, text string) {
	d.deliver(letter{
		kind: rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT, from: Framework, to: to.ID, body: textBody(text), topic: topic, about: w.Message,
	})
}

// mayAnswer reports whether a member that has read a question can still come
// to answer it: it works or will, or waits for somebody who may answer.
func (s *State) mayAnswer(m *Member, asking map[string]bool) bool {
	if m.Run != nil || m.Held || s.hasWaking(m) {
		return true
	}
	if asking[m.ID] {
		return false
	}
	asking[m.ID] = true
	for _, w := range m.Waits {
		next := s.Member(w.Awaited)
		if next == nil || !next.Alive() || !w.Read || s.mayAnswer(next, asking) {
			return true
		}
	}
	return false
}
