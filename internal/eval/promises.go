package eval

import (
	"fmt"
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// restart is a crash of the node in a conversation: what the log had before it.
type restart struct{ events int }

// broken are the promises that the runtime did not keep, whatever the model did.
func broken(b *book, restarts []restart) (all []string) {
	all = append(all, b.early()...)
	all = append(all, b.doubled()...)
	all = append(all, b.lostByWait()...)
	all = append(all, b.byItself()...)
	for _, r := range restarts {
		all = append(all, b.stirred(r)...)
	}
	return all
}

// early are first runs that began before all that they depend on was delivered.
func (b *book) early() (all []string) {
	for _, m := range b.others() {
		t, runs := b.task(m.task), b.of(m.id)
		if t == nil || len(runs) == 0 {
			continue
		}
		for _, need := range t.needs {
			up := b.task(need)
			if up == nil || len(up.done) == 0 || up.done[0] > runs[0].from {
				all = append(all, fmt.Sprintf("%s began before %s was delivered", m.name, need))
			}
		}
	}
	return all
}

// doubled are members with two runs at once.
func (b *book) doubled() (all []string) {
	for i, r := range b.runs {
		for _, q := range b.runs[:i] {
			if q.member == r.member && (q.to == 0 || q.to > r.from) {
				all = append(all, fmt.Sprintf("%s had two runs at once, %s and %s", b.name(r.member), q.id, r.id))
			}
		}
	}
	return all
}

// lostByWait are tasks that were closed by their owner's wait for a reply.
func (b *book) lostByWait() (all []string) {
	for _, r := range b.runs {
		if r.reason != rollcallv1.FinishReason_FINISH_REASON_WAITING {
			continue
		}
		for _, t := range b.tasks {
			ends := func(at int) bool { return at >= r.from && at <= r.to }
			if t.owner == b.name(r.member) && (slices.ContainsFunc(t.done, ends) || slices.ContainsFunc(t.ended, ends)) {
				all = append(all, fmt.Sprintf("%s waits for a reply, and its task %s is closed", b.name(r.member), t.id))
			}
		}
	}
	return all
}

// byItself are tasks that were opened again by nobody.
func (b *book) byItself() (all []string) {
	for _, t := range b.tasks {
		for _, r := range t.reopened {
			if r.by == "" || r.by == "framework" {
				all = append(all, t.id+" was opened again by itself")
			}
		}
	}
	return all
}

// stirred is what members did after a restart before there was new mail.
func (b *book) stirred(r restart) (all []string) {
	until := b.events + 1
	for _, m := range b.mail {
		if m.at > r.events {
			until = m.at
			break
		}
	}
	for _, a := range b.activity {
		if a.at > r.events && a.at < until {
			all = append(all, fmt.Sprintf("%s %s after the restart, before there was mail", b.name(a.member), a.what))
		}
	}
	return all
}
