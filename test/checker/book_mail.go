package checker

import (
	"cmp"
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// letter is a message that was delivered.
type letter struct {
	*rollcallv1.MessageDelivered
	// version and index say where it stands, later is their order.
	version uint64
	index   uint32
	// reader is the run that consumed it; nil while it is unread.
	reader *run
}

func (l *letter) before(o *letter) int {
	return cmp.Or(cmp.Compare(l.version, o.version), cmp.Compare(l.index, o.index))
}

func (b *book) enterMail(f fact) bool {
	switch k := f.GetKind().(type) {
	case *rollcallv1.Event_MessageDelivered:
		b.delivered(f, k.MessageDelivered)
	case *rollcallv1.Event_MessagesConsumed:
		if r := b.runs[k.MessagesConsumed.GetRun()]; r != nil {
			b.take(r, k.MessagesConsumed.GetMessages())
		}
	case *rollcallv1.Event_MessagesReturned:
		if r := b.runs[k.MessagesReturned.GetRun()]; r != nil {
			b.giveBack(r, k.MessagesReturned.GetMessages())
		}
	case *rollcallv1.Event_WaitStarted:
		w := k.WaitStarted
		m := b.who(w.GetMember())
		m.waits[w.GetMessage()] = b.mail[w.GetMessage()]
		if m.run != nil {
			delete(m.run.asked, w.GetMessage())
		}
	case *rollcallv1.Event_WaitEnded:
		delete(b.who(k.WaitEnded.GetMember()).waits, k.WaitEnded.GetMessage())
	default:
		return false
	}
	return true
}

func (b *book) delivered(f fact, d *rollcallv1.MessageDelivered) {
	l := &letter{MessageDelivered: d, version: f.version, index: f.index}
	b.mail[d.GetMessage()] = l
	b.letters = append(b.letters, l)
	if from := b.members[d.GetFrom()]; from != nil && from.run != nil && d.GetWaitForReply() {
		from.run.asked[d.GetMessage()] = l
	}
	to := b.members[d.GetTo()]
	if to == nil || to.gone || d.GetKind() == rollcallv1.MailKind_MAIL_KIND_CONTROL {
		return
	}
	if old := d.GetReplaces(); old != "" {
		to.unread = slices.DeleteFunc(to.unread, func(o *letter) bool { return o.GetMessage() == old })
	}
	to.unread = append(to.unread, l)
	if wakes(d.GetKind()) && !d.GetQuiet() {
		to.held, to.broke = "", false
	}
	if to.run != nil {
		for id, question := range to.run.asked {
			if answers(l, question) {
				delete(to.run.asked, id)
			}
		}
	}
}

// answers reports whether mail closes a wait: words of a member or the operator
// that name the question, or any word of the operator to whoever asked him.
func answers(l, question *letter) bool {
	switch l.GetKind() {
	case rollcallv1.MailKind_MAIL_KIND_TEXT:
		return l.GetReplyTo() == question.GetMessage()
	case rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE:
		return l.GetReplyTo() == question.GetMessage() || question.GetTo() == user
	}
	return false
}

// take moves mail from the unread into a run.
func (b *book) take(r *run, refs []*rollcallv1.MessageRef) {
	for _, ref := range refs {
		l := b.mail[ref.GetMessage()]
		if l == nil {
			continue
		}
		l.reader = r
		r.member.unread = slices.DeleteFunc(r.member.unread, func(o *letter) bool { return o == l })
		r.unanswered = append(r.unanswered, l)
	}
}

// giveBack makes mail unread again, in the order of delivery.
func (b *book) giveBack(r *run, refs []*rollcallv1.MessageRef) {
	for _, ref := range refs {
		l := b.mail[ref.GetMessage()]
		if l == nil || l.reader == nil {
			continue
		}
		l.reader = nil
		r.unanswered = slices.DeleteFunc(r.unanswered, func(o *letter) bool { return o == l })
		r.member.unread = append(r.member.unread, l)
	}
	slices.SortStableFunc(r.member.unread, (*letter).before)
	r.returned = true
}
