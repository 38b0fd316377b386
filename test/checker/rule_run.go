package checker

import (
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// in is the open run that an event happens in; nil when there is none: that is
// for the rule in-open-run to say.
func (b *book) in(f fact) *run {
	if !f.inside {
		return nil
	}
	if r := b.runs[f.run]; r != nil && r.open && r.member.id == f.member {
		return r
	}
	return nil
}

// oneRuns: at most one run of a member is open, at any version, and a run's id
// is used once (promise 3).
func oneRuns(b *book, say say) watcher {
	return watcher{event: func(f fact) {
		s := f.GetRunStarted()
		if s == nil {
			return
		}
		if m := b.members[s.GetMember()]; m != nil && m.run != nil {
			say("run %s of %v starts while run %s is open", s.GetRun(), m, m.run.id)
		}
		if b.runs[s.GetRun()] != nil {
			say("a run of %s starts, and the id %q was used before", s.GetMember(), s.GetRun())
		}
	}}
}

// openRuns: what happens in a run happens while it is open, and in its member.
func openRuns(b *book, say say) watcher {
	return watcher{event: func(f fact) {
		if f.inside && b.in(f) == nil {
			say("it happens in run %s of %s, which is not open", f.run, f.member)
		}
	}}
}

// mayRuns: neither run nor call begins while the conversation is paused or its
// budget used up, and no run of a member that is shut down, that has no brief
// yet, or whose last run failed, ran out of budget or was interrupted by hand:
// only a retry, new mail or a raised budget ends that.
func mayRuns(b *book, say say) watcher {
	general := func() string {
		switch {
		case b.paused:
			return "the conversation is paused"
		case b.spent():
			return "the conversation's budget is used up"
		}
		return ""
	}
	return watcher{event: func(f fact) {
		if s := f.GetRunStarted(); s != nil {
			why := general()
			switch m := b.members[s.GetMember()]; {
			case m == nil || why != "":
			case m.gone:
				why = "it was shut down"
			case m.held != "":
				why = m.held
			case m.spawning && !slices.ContainsFunc(m.unread, func(l *letter) bool { return l.GetKind() == rollcallv1.MailKind_MAIL_KIND_BRIEF }):
				why = "it has no brief yet"
			case m.spawning && !b.ready(m):
				why = "what its task depends on is not delivered"
			}
			if why != "" {
				say("run %s of %s starts, and %s", s.GetRun(), s.GetMember(), why)
			}
		}
		if c := f.GetModelCallStarted(); c != nil && general() != "" {
			say("step %d, attempt %d of run %s begins, and %s", c.GetStep(), c.GetAttempt(), c.GetRun(), general())
		}
	}}
}

// wakings: a commit leaves nobody asleep who could work: unread mail of a waking
// kind has started a run by then, unless it waits for the end of its sender's run
// or, a brief, for what it depends on.
func wakings(b *book, say say) watcher {
	return watcher{end: func(*rollcallv1.Commit) {
		if !slices.Contains([]string{"mailbox", "none", contractDag}, b.contract) || b.paused || b.spent() {
			return
		}
		for _, m := range b.order {
			if m.gone || m.held != "" || m.run != nil {
				continue
			}
			i := slices.IndexFunc(m.unread, func(l *letter) bool {
				return b.starts(l) && (!m.spawning || l.GetKind() == rollcallv1.MailKind_MAIL_KIND_BRIEF)
			})
			if i >= 0 {
				say("%v sleeps over message %s, which should have woken it", m, m.unread[i].GetMessage())
			}
		}
	}}
}

// steps: a run begins with step 1, attempt 1; a step follows the reply to the one
// before it, another attempt only a failure that is tried again or a lost node:
// so a crash costs at most one more call. An outcome belongs to the call that is
// open, and a commit leaves no run without something that is due or parked.
func steps(b *book, say say) watcher {
	begins := func(r *run, c *rollcallv1.ModelCallStarted) {
		step, attempt := r.step, r.attempt+1
		if r.reply != nil || r.step == 0 {
			step, attempt = r.step+1, 1
		}
		switch {
		case c.GetStep() != step || c.GetAttempt() != attempt:
			say("step %d, attempt %d of %v begins where step %d, attempt %d is next", c.GetStep(), c.GetAttempt(), r, step, attempt)
		case attempt > 1 && !r.again:
			say("step %d of %v is called again, and neither failed nor was its node lost", step, r)
		}
	}
	ends := func(r *run, step, attempt uint32) {
		if !r.calling || step != r.step || attempt != r.attempt {
			say("step %d, attempt %d of %v has an outcome, and was not called or has one before", step, attempt, r)
		}
	}
	return watcher{
		event: func(f fact) {
			r := b.in(f)
			if r == nil {
				return
			}
			switch k := f.GetKind().(type) {
			case *rollcallv1.Event_ModelCallStarted:
				begins(r, k.ModelCallStarted)
			case *rollcallv1.Event_ModelReplied:
				ends(r, k.ModelReplied.GetStep(), k.ModelReplied.GetAttempt())
			case *rollcallv1.Event_ModelCallFailed:
				ends(r, k.ModelCallFailed.GetStep(), k.ModelCallFailed.GetAttempt())
			}
		},
		end: func(*rollcallv1.Commit) {
			for _, m := range b.order {
				if r := m.run; r != nil && !r.calling && r.begun == nil && !r.parked() {
					say("the commit leaves %v with nothing that is due", r)
				}
			}
		},
	}
}

// resumptions: a run that is taken up was let go, or its node was lost; only the
// latter counts, one by one, from the step's last reply. A run that rests is
// taken up before it goes on; one that only waited for its turn goes on with the
// call that was begun. A pause and its end follow each other.
func resumptions(b *book, say say) watcher {
	return watcher{event: func(f fact) {
		if f.GetConversationPaused() != nil && b.paused || f.GetConversationResumed() != nil && !b.paused {
			say("it is so already: paused is %t", b.paused)
		}
		r := b.in(f)
		if r == nil {
			return
		}
		switch e := f.GetRunResumed(); {
		case e != nil:
			want := r.taken
			if r.suspended == "" {
				want++
			}
			if e.GetAttempt() != want {
				say("%v is taken up for time %d, and it was lost %d times before since its last reply", r, e.GetAttempt(), r.taken)
			} else if e.GetWaited() && (r.suspended == "" || !r.calling) {
				say("%v goes on as if it had waited for its turn, and was not suspended in a call", r)
			}
		case f.GetRunSuspended() != nil && r.rests && !(b.paused && r.calling): // a pause parks who waits for its turn
			say("%v is let go twice", r)
		case f.GetModelCallStarted() != nil && r.rests:
			say("%v was let go, and goes on without being taken up", r)
		}
	}}
}
