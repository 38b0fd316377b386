package checker

import (
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// mails: a message has an id of its own; its kind fits who speaks; it goes to a
// living member or, from a member, to the operator; it names only messages there
// are. The operator's word meets no run that it should have interrupted, and the
// Lead has one unread report at most. Who is shut down, or interrupted by hand, is
// told by control mail, which acts in its commit.
func mails(b *book, say say) watcher {
	end := func(*rollcallv1.Commit) {
		for _, l := range b.letters {
			m := b.members[l.GetTo()]
			if control(l) && m != nil && !m.gone && !slices.ContainsFunc(b.ended, func(r *run) bool { return r.member == m }) {
				say("control message %s (%s) to %v did nothing", l.GetMessage(), l.GetTopic(), m)
			}
		}
	}
	told := func(member string) {
		if m := b.members[member]; m != nil && m.role == roleSubagent && !b.endedHere(member, rollcallv1.FinishReason_FINISH_REASON_CANCELLED) {
			return // it had said its last word
		}
		if !slices.ContainsFunc(b.letters, func(l *letter) bool { return control(l) && l.GetTo() == member }) {
			say("no control message of the commit told %s so", member)
		}
	}
	return watcher{end: end, event: func(f fact) {
		if gone := f.GetMemberShutdown(); gone != nil {
			told(gone.GetMember())
		}
		if ended := f.GetRunFinished(); ended.GetCode() == byHand {
			told(ended.GetMember())
		}
		d := f.GetMessageDelivered()
		if d == nil {
			return
		}
		id, to := d.GetMessage(), b.members[d.GetTo()]
		if b.mail[id] != nil || id == "" {
			say("message %q is delivered, and a message of that id was before", id)
		}
		if wrong := misspoken(b, d); wrong != "" {
			say("message %s of kind %v comes from %q: %s", id, d.GetKind(), d.GetFrom(), wrong)
		}
		switch {
		case d.GetTo() == user && d.GetKind() == rollcallv1.MailKind_MAIL_KIND_TEXT:
		case to == nil:
			say("message %s goes to %q, who is nobody", id, d.GetTo())
		case to.gone:
			say("message %s goes to %v, who was shut down", id, to)
		case d.GetMode() == rollcallv1.MailMode_MAIL_MODE_INTERRUPT && to.run != nil:
			say("message %s should have interrupted %v", id, to.run)
		case d.GetKind() == rollcallv1.MailKind_MAIL_KIND_TEAM_REPORT && slices.ContainsFunc(to.unread, func(l *letter) bool { return report(l) && l.GetMessage() != d.GetReplaces() }):
			say("report %s is delivered, and %v has an unread one", id, to)
		case d.GetReplaces() != "" && !(d.GetKind() == rollcallv1.MailKind_MAIL_KIND_TEAM_REPORT && slices.ContainsFunc(to.unread, func(l *letter) bool { return report(l) && l.GetMessage() == d.GetReplaces() })):
			say("message %s takes the place of %s, which is no unread report", id, d.GetReplaces())
		case d.GetAfterRun() != "" && (b.contract != contractDag || !b.goesOn(d.GetAfterRun())):
			say("message %s wakes after run %s, which is not open or holds back nobody", id, d.GetAfterRun())
		}
		for _, other := range []string{d.GetReplyTo(), d.GetAbout()} {
			if other != "" && b.mail[other] == nil {
				say("message %s speaks of message %q, which there is not", id, other)
			}
		}
	}}
}

func control(l *letter) bool { return l.GetKind() == rollcallv1.MailKind_MAIL_KIND_CONTROL }

func report(l *letter) bool { return l.GetKind() == rollcallv1.MailKind_MAIL_KIND_TEAM_REPORT }

// misspoken says why somebody cannot have sent such a message.
func misspoken(b *book, d *rollcallv1.MessageDelivered) string {
	from := b.members[d.GetFrom()]
	switch d.GetKind() {
	case rollcallv1.MailKind_MAIL_KIND_TEXT:
		if from == nil || from.run == nil {
			return "only a member at work writes to others"
		}
		if d.GetWaitForReply() && from.id == leadID {
			return "the Lead waits for no reply"
		}
		return ""
	case rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE:
		if d.GetFrom() != operator {
			return "only the operator speaks so"
		}
	case rollcallv1.MailKind_MAIL_KIND_UNSPECIFIED:
		return "there is no such kind"
	default:
		if d.GetFrom() != framework {
			return "only the framework sends such mail"
		}
	}
	if d.GetWaitForReply() {
		return "only a member waits for a reply"
	}
	return ""
}

// justifications: a message is the next turn. Every RunStarted consumes at least
// one message of a kind that wakes, delivered to that member and unread until
// then (promise 2). Where mail waits for the end of its sender's run, or a brief
// for what it depends on, that is over.
func justifications(b *book, say say) watcher {
	return watcher{event: func(f fact) {
		s := f.GetRunStarted()
		if s == nil {
			return
		}
		for _, ref := range s.GetConsumed() {
			if l := b.mail[ref.GetMessage()]; l != nil && l.GetTo() == s.GetMember() && l.reader == nil && b.starts(l) {
				return
			}
		}
		say("run %s of %s starts, and no unread message of a waking kind justifies it; it names %s", s.GetRun(), s.GetMember(), listed(s.GetConsumed()))
	}}
}

// consumptions: nothing is consumed twice. What a run reads is its member's own,
// unread, named at its place and in the order of delivery; a run that starts
// reads everything, a step between reads what the operator did not queue, and no
// call begins with such mail unread.
func consumptions(b *book, say say) watcher {
	read := func(id string, m *member, refs []*rollcallv1.MessageRef) {
		var last *letter
		for _, ref := range refs {
			l := b.mail[ref.GetMessage()]
			switch {
			case l == nil:
				say("run %s consumes message %q, which there is not", id, ref.GetMessage())
				continue
			case control(l):
				say("run %s consumes control message %s, which nobody is shown", id, l.GetMessage())
			case l.GetTo() != m.id:
				say("run %s of %v consumes message %s, which is for %s", id, m, l.GetMessage(), l.GetTo())
			case l.reader != nil:
				say("run %s consumes message %s, which %v consumed and did not return", id, l.GetMessage(), l.reader)
			case ref.GetRef().GetVersion() != l.version || ref.GetRef().GetIndex() != l.index:
				say("run %s looks for message %s at %d:%d, and it stands at %d:%d", id, l.GetMessage(), ref.GetRef().GetVersion(), ref.GetRef().GetIndex(), l.version, l.index)
			case last != nil && l.before(last) <= 0:
				say("run %s reads message %s after message %s, which came later or is the same", id, l.GetMessage(), last.GetMessage())
			}
			last = l
		}
	}
	left := func(id string, m *member, refs []*rollcallv1.MessageRef) {
		for _, l := range m.unread {
			if !slices.ContainsFunc(refs, func(r *rollcallv1.MessageRef) bool { return r.GetMessage() == l.GetMessage() }) {
				say("run %s of %v starts and leaves message %s unread", id, m, l.GetMessage())
			}
		}
	}
	return watcher{event: func(f fact) {
		switch k := f.GetKind().(type) {
		case *rollcallv1.Event_RunStarted:
			s := k.RunStarted
			if m := b.members[s.GetMember()]; m != nil {
				read(s.GetRun(), m, s.GetConsumed())
				left(s.GetRun(), m, s.GetConsumed())
			}
		case *rollcallv1.Event_MessagesConsumed:
			c := k.MessagesConsumed
			if r := b.in(f); r != nil {
				read(c.GetRun(), r.member, c.GetMessages())
				for _, ref := range c.GetMessages() {
					if l := b.mail[ref.GetMessage()]; l.queued() {
						say("%v reads message %s, which the operator queued for the run after it", r, l.GetMessage())
					}
				}
			}
		case *rollcallv1.Event_ModelCallStarted:
			if r := b.in(f); r != nil {
				for _, l := range r.member.unread {
					if !l.queued() {
						say("step %d of %v begins with message %s unread", k.ModelCallStarted.GetStep(), r, l.GetMessage())
					}
				}
			}
		}
	}}
}

// queued reports mail for the run after the open one.
func (l *letter) queued() bool {
	return l != nil && l.GetMode() == rollcallv1.MailMode_MAIL_MODE_QUEUE
}

// returns: mail that was consumed and never answered by a model returns to
// unread in the commit that ends the run, and no other mail does.
func returns(b *book, say say) watcher {
	return watcher{
		event: func(f fact) {
			r := b.in(f)
			if r == nil {
				return
			}
			for _, ref := range f.GetMessagesReturned().GetMessages() {
				if !slices.ContainsFunc(r.unanswered, func(l *letter) bool { return l.GetMessage() == ref.GetMessage() }) {
					say("%v returns message %q, which it did not consume, or which a model answered", r, ref.GetMessage())
				}
			}
			if f.GetRunFinished() != nil && len(r.unanswered) > 0 {
				say("%v ends and keeps message %s, which no model answered", r, r.unanswered[0].GetMessage())
			}
		},
		end: func(*rollcallv1.Commit) {
			for _, m := range b.order {
				if m.run != nil && m.run.returned {
					say("%v returned mail and goes on", m.run)
				}
			}
		},
	}
}

// listed are the messages that refs name.
func listed(refs []*rollcallv1.MessageRef) string {
	if len(refs) == 0 {
		return "none"
	}
	text := ""
	for i, r := range refs {
		if i > 0 {
			text += ", "
		}
		text += r.GetMessage()
	}
	return text
}
