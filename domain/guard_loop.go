package domain

import (
	"fmt"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// A causal chain of wakes is bounded while nothing comes of it. A run stands as
// far down the chain as the mail that woke it; what it sends stands one further.
// A change of the board or the roster, or a file, starts the chain anew, as the
// operator's words do. Mail beyond the limit is delivered and starts no run.

// topicLoop is of the alert that mail starts no run any more.
const topicLoop = "loop"

// hops is how far down a chain of wakes without progress the letter stands.
func (d *Decision) hops(l letter) uint32 {
	if l.kind != rollcallv1.MailKind_MAIL_KIND_TEXT || l.to == User {
		return l.hops
	}
	if from := d.State().Member(l.from); from != nil {
		return from.Hops + 1
	}
	return 0
}

// quiets reports whether a letter of so many hops starts no run.
func (d *Decision) quiets(l letter, hops uint32) bool {
	return l.kind == rollcallv1.MailKind_MAIL_KIND_TEXT && int64(hops) > int64(d.b.limits.IdleHops)
}

// tellLoop tells the Lead and the operator, once until something is done, that
// mail was quieted.
func (d *Decision) tellLoop(id string, l letter, hops uint32) {
	s := d.State()
	if s.LoopTold == s.Progress+1 {
		return
	}
	text := fmt.Sprintf("%s and others woke each other with messages %d times in a row, and nothing came of it: no task was changed, no file written. "+
		"Message %s of %s to %s is delivered and wakes nobody.", s.DisplayName(l.from), hops-1, id, s.DisplayName(l.from), s.DisplayName(l.to))
	for _, told := range [][2]string{
		{LeadID, " Give somebody something to do, or leave it at that."},
		{User, " A word to one of them, or to the Lead, sets them going again."},
	} {
		d.deliver(letter{kind: rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT, from: Framework, to: told[0], body: textBody(text + told[1]), topic: topicLoop, about: id})
	}
}

// heard puts a run as far down the chain as the mail that it reads. What it
// reads is new, so that a call it made before may come to something else.
func (m *Member) heard(mail *Mail) {
	m.Run.Repeats = nil
	if wakes(mail.Kind) && !mail.Quiet {
		m.Hops = max(m.Hops, mail.Hops)
	}
}

// progressed starts the chain anew of whoever made the event.
func (s *State) progressed(e *rollcallv1.Event) {
	switch k := e.GetKind().(type) {
	case *rollcallv1.Event_FileWritten:
		s.anew(k.FileWritten.GetMember())
	case *rollcallv1.Event_FileDeleted:
		s.anew(k.FileDeleted.GetMember())
	case *rollcallv1.Event_MemberAdded, *rollcallv1.Event_TeamCreated, *rollcallv1.Event_TaskCreated, *rollcallv1.Event_TaskUpdated,
		*rollcallv1.Event_TaskClaimed, *rollcallv1.Event_TaskReleased, *rollcallv1.Event_TaskReassigned, *rollcallv1.Event_TaskCompleted,
		*rollcallv1.Event_TaskFailed, *rollcallv1.Event_TaskCancelled, *rollcallv1.Event_TaskReopened:
		for _, m := range s.Members { // a tool of the log runs while its run is decided
			if m.Run != nil && m.Run.Phase == Deciding {
				m.Hops = 0
			}
		}
	}
}

func (s *State) anew(member string) {
	if m := s.Member(member); m != nil {
		m.Hops = 0
	}
}
