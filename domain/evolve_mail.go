package domain

import (
	"cmp"
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// applyMail folds what happens to messages.
func (s *State) applyMail(e *rollcallv1.Event, at Place) bool {
	switch e := e.GetKind().(type) {
	case *rollcallv1.Event_MessageDelivered:
		s.messageDelivered(e.MessageDelivered, at)
	case *rollcallv1.Event_MessagesConsumed:
		c := e.MessagesConsumed
		if m := s.running(c.GetMember(), c.GetRun()); m != nil {
			s.consume(m, at, c.GetMessages())
		}
	case *rollcallv1.Event_MessagesReturned:
		r := e.MessagesReturned
		if m := s.running(r.GetMember(), r.GetRun()); m != nil {
			s.giveBack(m, r.GetMessages())
		}
	case *rollcallv1.Event_WaitStarted:
		s.waitStarted(e.WaitStarted)
	case *rollcallv1.Event_WaitEnded:
		if m := s.Member(e.WaitEnded.GetMember()); m != nil {
			m.Waits = dropWait(m.Waits, e.WaitEnded.GetMessage())
			if m.Status == waiting && len(m.Waits) == 0 {
				m.setStatus(idle, s.Time)
			}
		}
	case *rollcallv1.Event_LeadReplied:
		s.Answer = at
	default:
		return false
	}
	return true
}

func (s *State) messageDelivered(e *rollcallv1.MessageDelivered, at Place) {
	if n, ok := numbered(e.GetMessage(), messagePrefix); ok {
		s.LastMessage = max(s.LastMessage, n)
	}
	switch e.GetKind() {
	case rollcallv1.MailKind_MAIL_KIND_TEAM_REPORT:
		s.reported(e)
	case rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE:
		s.Progress++
		s.Reports = 0
	}
	if e.GetAbout() != "" {
		for w := range s.questions(e.GetAbout()) {
			w.Told = w.Told || e.GetTo() == LeadID
			w.Heard = w.Heard || e.GetTo() != LeadID // the Lead asks no question that it waits for
		}
	}
	if from := s.Member(e.GetFrom()); from != nil && from.Run != nil && e.GetWaitForReply() {
		from.Run.Asked = append(from.Run.Asked, &Wait{Message: e.GetMessage(), Awaited: e.GetTo(), Since: s.Time})
	}
	if to := s.Member(e.GetTo()); to != nil && to.Alive() && e.GetKind() != rollcallv1.MailKind_MAIL_KIND_CONTROL {
		to.receive(e, &Mail{
			ID: e.GetMessage(), Kind: e.GetKind(), From: e.GetFrom(), Mode: e.GetMode(), Topic: e.GetTopic(),
			Task: e.GetTask(), ReplyTo: e.GetReplyTo(), After: e.GetAfterRun(), Place: at, Time: s.Time,
			Hops: e.GetHops(), Quiet: e.GetQuiet(),
		})
	}
}

// reported notes what the Lead learns from a report.
func (s *State) reported(e *rollcallv1.MessageDelivered) {
	s.Reported = s.Progress
	s.Reports++
	for _, m := range s.Members {
		if news := s.leftWork(m) && m.Told == ""; news || m.Told != "" && m.Told == e.GetReplaces() {
			m.Told = e.GetMessage()
		}
	}
	for _, t := range s.Tasks {
		if news := t.ended() && t.Told == ""; news || t.Told != "" && t.Told == e.GetReplaces() {
			t.Told = e.GetMessage()
		}
	}
	if e.GetReplaces() != "" {
		lead := s.Lead()
		lead.Unread = keep(lead.Unread, func(mail *Mail) bool { return mail.ID != e.GetReplaces() })
	}
}

func (m *Member) receive(e *rollcallv1.MessageDelivered, mail *Mail) {
	m.Unread = append(m.Unread, mail)
	if wakes(mail.Kind) && !mail.Quiet {
		m.Held, m.Told = false, ""
	}
	// A question that is answered before its step is done becomes no wait.
	if m.Run != nil {
		m.Run.Asked = keep(m.Run.Asked, func(w *Wait) bool { return !answers(mail, w) })
	}
}

// consume moves mail from the unread region into the open run.
func (s *State) consume(m *Member, at Place, refs []*rollcallv1.MessageRef) {
	entry := Entry{Place: at}
	for _, ref := range refs {
		i := slices.IndexFunc(m.Unread, func(mail *Mail) bool { return mail.ID == ref.GetMessage() })
		if i < 0 {
			continue
		}
		mail := m.Unread[i]
		m.Unread = slices.Delete(m.Unread, i, i+1)
		m.Run.Unanswered = append(m.Run.Unanswered, mail)
		m.heard(mail)
		place := MailPlace{ID: mail.ID, Place: mail.Place, Whole: mail.Kind == rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE}
		entry.Mail = append(entry.Mail, place)
		if mail.Kind == rollcallv1.MailKind_MAIL_KIND_BRIEF || m.IsLead() && place.Whole {
			m.means(place)
		}
		for w := range s.questions(mail.ID) {
			w.Read = true
		}
	}
	if len(m.Unread) == 0 {
		m.Unread = nil
	}
	m.record(entry)
}

// maxPurpose is how many messages are kept that say what a member is for: the
// first, and the newest.
const maxPurpose = 8

// means adds a message to what the member is for.
func (m *Member) means(mail MailPlace) {
	if slices.ContainsFunc(m.Purpose, func(p MailPlace) bool { return p.ID == mail.ID }) {
		return // it was given back and is read again
	}
	if len(m.Purpose) == maxPurpose {
		m.Purpose = slices.Delete(m.Purpose, 1, 2)
	}
	m.Purpose = append(m.Purpose, mail)
}

// giveBack makes consumed mail unread again, in the order of delivery, and
// takes it out of the transcript: it was never answered.
func (s *State) giveBack(m *Member, refs []*rollcallv1.MessageRef) {
	back := map[string]bool{}
	for _, ref := range refs {
		back[ref.GetMessage()] = true
		for w := range s.questions(ref.GetMessage()) {
			w.Read = false
		}
	}
	for _, mail := range m.Run.Unanswered {
		if back[mail.ID] {
			m.Unread = append(m.Unread, mail)
		}
	}
	m.Run.Unanswered = keep(m.Run.Unanswered, func(mail *Mail) bool { return !back[mail.ID] })
	slices.SortStableFunc(m.Unread, func(a, b *Mail) int {
		return cmp.Or(cmp.Compare(a.Place.Version, b.Place.Version), cmp.Compare(a.Place.Index, b.Place.Index))
	})
	m.unrecord(back)
}

func (s *State) waitStarted(e *rollcallv1.WaitStarted) {
	m := s.Member(e.GetMember())
	if m == nil {
		return
	}
	w := &Wait{Message: e.GetMessage(), Awaited: e.GetAwaited()}
	if m.Run != nil {
		if i := slices.IndexFunc(m.Run.Asked, func(w *Wait) bool { return w.Message == e.GetMessage() }); i >= 0 {
			w = m.Run.Asked[i]
			m.Run.Asked = dropWait(m.Run.Asked, w.Message)
		}
	}
	w.Since = s.Time
	m.Waits = append(m.Waits, w)
}

// questions yields every wait, begun or about to begin, on the message.
func (s *State) questions(message string) func(yield func(*Wait) bool) {
	return func(yield func(*Wait) bool) {
		for _, m := range s.Members {
			asked := m.Waits
			if m.Run != nil && len(m.Run.Asked) > 0 {
				asked = slices.Concat(m.Waits, m.Run.Asked)
			}
			for _, w := range asked {
				if w.Message == message && !yield(w) {
					return
				}
			}
		}
	}
}

func dropWait(waits []*Wait, message string) []*Wait {
	return keep(waits, func(w *Wait) bool { return w.Message != message })
}

// keep filters a slice in place; nothing left is nil, so that equal states
// look equal.
func keep[T any](items []T, good func(T) bool) []T {
	items = slices.DeleteFunc(items, func(item T) bool { return !good(item) })
	if len(items) == 0 {
		return nil
	}
	return items
}
