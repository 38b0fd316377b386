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
// read the question and rests without an answer, or when they are in a ring of
// waits. Each is told once.
func (d *Decision) tellWaiters() {
	s := d.State()
	for _, m := range s.Members {
		for _, w := range slices.Clone(m.Waits) {
			asked := s.Member(w.Awaited)
			switch hops := chain(m, asked); {
			case asked == nil:
			case !asked.Alive():
				d.emit(&rollcallv1.WaitEnded{Member: m.ID, Message: w.Message, Reason: waitShutdown})
				d.alert(m, w, topicNobodyLeft, goneNote(w, asked), hops)
			case w.Heard:
			case asked.failed():
				d.alert(m, w, topicNobodyLeft, failedNote(w, asked), hops)
			case asked.Held && s.leadCanHelp(asked) && !w.Told:
				d.alert(s.Lead(), w, topicUnanswered, heldNote(m, w, asked), hops)
			case m.Run != nil || asked.Held, !w.Read && !s.notBegun(asked), s.mayAnswer(asked, map[string]bool{m.ID: true}):
			case d.tellRing(m, w, asked), w.Told:
			default:
				d.alert(s.Lead(), w, topicUnanswered, unansweredNote(s, m, w, asked), hops)
			}
		}
	}
}

// leadCanHelp reports whether it helps to tell the Lead of a member that is held
// back: not when it is the Lead itself, or what holds the one holds the other.
func (s *State) leadCanHelp(held *Member) bool {
	return !held.IsLead() && !s.Lead().Held && !s.spent()
}

func (d *Decision) alert(to *Member, w *Wait, topic, text string, hops uint32) {
	d.deliver(letter{
		kind: rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT, from: Framework, to: to.ID, body: textBody(text), topic: topic, about: w.Message, hops: hops,
	})
}

// chain is how far down a chain of wakes the news of a wait stands: below the
// turns of who asked and who was asked, where that one read it.
func chain(m, asked *Member) uint32 {
	if asked == nil {
		return 0
	}
	return max(m.Hops, asked.Hops) + 1
}
