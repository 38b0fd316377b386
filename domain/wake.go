package domain

import (
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// wakes is the whole wake rule: the kind decides, never the content.
func wakes(kind rollcallv1.MailKind) bool {
	switch kind {
	case rollcallv1.MailKind_MAIL_KIND_BRIEF,
		rollcallv1.MailKind_MAIL_KIND_TEXT,
		rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE,
		rollcallv1.MailKind_MAIL_KIND_TASK_READY,
		rollcallv1.MailKind_MAIL_KIND_TEAM_REPORT,
		rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT:
		return true
	}
	return false
}

// hasWaking reports whether unread mail asks for a run.
func (s *State) hasWaking(m *Member) bool {
	return slices.ContainsFunc(m.Unread, func(mail *Mail) bool { return wakes(mail.Kind) && !mail.Quiet && !s.moot(m, mail) })
}

// moot reports whether mail is the brief of an assignment that has ended.
func (s *State) moot(m *Member, mail *Mail) bool {
	t := s.Task(m.Task)
	return mail.Kind == rollcallv1.MailKind_MAIL_KIND_BRIEF && t != nil && !t.Open()
}

// runnable reports whether the member's unread mail starts a run now.
func (s *State) runnable(m *Member) bool {
	if !s.Opened || s.Paused || m.Held || m.Run != nil || s.spent() {
		return false
	}
	switch m.Status {
	case idle, waiting:
		return slices.ContainsFunc(m.Unread, func(mail *Mail) bool { return s.starts(m, mail) })
	case spawning: // its other mail is kept and read with its brief
		return slices.ContainsFunc(m.Unread, func(mail *Mail) bool {
			return mail.Kind == rollcallv1.MailKind_MAIL_KIND_BRIEF && s.starts(m, mail)
		})
	}
	return false
}

// starts reports whether the mail asks for a run now: it wakes, its sender's run
// is over, and an assignment is not begun before what it depends on is delivered.
func (s *State) starts(m *Member, mail *Mail) bool {
	if mail.Quiet {
		return false
	}
	if !wakes(mail.Kind) || s.goesOn(mail.After) {
		return false
	}
	if mail.Kind != rollcallv1.MailKind_MAIL_KIND_BRIEF {
		return true
	}
	t := s.Task(m.Task)
	return t == nil || t.Status == claimable || t.Status == inProgress
}

// goesOn reports whether a run is open and not suspended.
func (s *State) goesOn(run string) bool {
	return run != "" && slices.ContainsFunc(s.Members, func(m *Member) bool {
		return m.Run != nil && m.Run.ID == run && !m.Run.Suspended
	})
}

// advance brings the conversation to rest after a command: whoever must be
// told is told, whoever has mail to read starts to work.
func (d *Decision) advance() {
	for {
		d.tellWaiters()
		started := d.unpark()
		for _, m := range d.State().Members {
			if d.State().runnable(m) {
				d.startRun(m)
				started = true
			}
		}
		if !started && !d.reportToLead() {
			return
		}
	}
}

// startRun starts the run that all unread mail of the member justifies.
func (d *Decision) startRun(m *Member) {
	s := d.State()
	d.takeUp(m)
	hash := d.bind(m)
	run := nth(runPrefix, s.LastRun+1)
	d.emit(&rollcallv1.RunStarted{Run: run, Member: m.ID, Consumed: refs(m.Unread), AgentHash: hash})
	if need, ok := d.admit(m); ok {
		d.call(m, 1, 1, need)
	}
}

func refs(mail []*Mail) []*rollcallv1.MessageRef {
	found := make([]*rollcallv1.MessageRef, len(mail))
	for i, m := range mail {
		found[i] = &rollcallv1.MessageRef{Message: m.ID, Ref: m.Place.Ref()}
	}
	return found
}
