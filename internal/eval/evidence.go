package eval

import (
	"fmt"
	"slices"
	"strings"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// What the log of a team must show for a case to have come about.

// reviewed: two members, at work at the same time, each on a file of its own.
func reviewed(b *book) (lacks []string) {
	for _, p := range []string{"lease.txt", "budget.csv"} {
		if len(slices.DeleteFunc(b.readers("Lead/"+p), func(name string) bool { return name == "Lead" })) == 0 {
			lacks = append(lacks, "no member read "+p)
		}
	}
	var spans []*run
	for _, m := range b.others() {
		if own := b.of(m.id); len(own) > 0 {
			spans = append(spans, own[0])
		}
	}
	for i, r := range spans {
		for _, q := range spans[:i] {
			if r.from < q.to && q.from < r.to {
				return lacks
			}
		}
	}
	return append(lacks, "no two members were at work at the same time")
}

// handedOver: a task depends on another, and its owner read what was delivered.
func handedOver(b *book) (lacks []string) {
	dependent := false
	for _, t := range b.tasks {
		for _, need := range t.needs {
			dependent = true
			up := b.task(need)
			if up == nil || len(t.done) == 0 {
				continue
			}
			for _, p := range up.paths {
				full := b.name(up.by) + "/" + p
				if !slices.Contains(b.readers(full), b.name(t.by)) {
					lacks = append(lacks, fmt.Sprintf("%s delivered without reading %s", b.name(t.by), full))
				}
			}
		}
	}
	if !dependent {
		lacks = append(lacks, "nobody depends on anybody")
	}
	return lacks
}

// asked: somebody asked and was answered, a member by a wait or the Lead in its
// own words.
func asked(b *book) []string {
	if len(b.waits) > 0 {
		return waited(b)
	}
	said := 0
	for _, m := range b.mail {
		if m.kind == rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE {
			said++
		}
	}
	if said < 2 { // the objective is the first
		return []string{"nobody asked for the decision"}
	}
	return nil
}

// waited: a member asked and slept, and the answer closed the wait.
func waited(b *book) (lacks []string) {
	if len(b.waits) == 0 {
		return []string{"nobody waited for the decision"}
	}
	for _, w := range b.waits {
		if w.reason != "replied" {
			lacks = append(lacks, fmt.Sprintf("the wait of %s was not ended by a reply", b.name(w.member)))
		}
	}
	return lacks
}

// revised: what was delivered is opened again for the same member, nothing stays
// stale, and nobody is made for it.
func revised(b *book) (lacks []string) {
	correction := 0
	for _, m := range b.mail {
		if m.kind == rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE && strings.HasPrefix(m.text, "Correction") {
			correction = m.at
		}
	}
	again := 0
	for _, t := range b.tasks {
		switch {
		case correction > 0 && t.made > correction:
			lacks = append(lacks, t.id+" was made for what is the revision of another")
		case t.stale:
			lacks = append(lacks, t.id+" stayed stale")
		}
		if slices.ContainsFunc(t.reopened, func(r reopening) bool { return r.at > correction }) {
			again++
		}
	}
	if again == 0 {
		lacks = append(lacks, "no delivered task was revised")
	}
	return lacks
}

// recovered: what was finished stays as it was, and a replacement depends on
// what is there.
func recovered(b *book) (lacks []string) {
	missed := slices.ContainsFunc(b.calls, func(c *call) bool { return c.failed && strings.HasSuffix(c.path(), "gauge.csv") })
	if !missed {
		lacks = append(lacks, "nobody tried to read gauge.csv")
	}
	done := 0
	for _, t := range b.tasks {
		if len(t.done) > 0 {
			done++
			if len(t.reopened) > 0 && len(t.ended) == 0 && t.done[0] < t.reopened[0].at {
				lacks = append(lacks, t.id+" was finished and done again")
			}
		}
	}
	if done == 0 {
		lacks = append(lacks, "no member delivered anything")
	}
	return lacks
}
