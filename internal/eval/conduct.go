package eval

import (
	"fmt"
	"slices"
	"strings"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Conduct is how a model used the team, counted in the log. 0 is best in all.
type Conduct struct {
	// Needless is 1 when a team was made for what needs none.
	Needless int `json:"needless_teams"`
	// Redundant counts the members beyond those that the work needs.
	Redundant int `json:"redundant_members"`
	// Duplicate counts work that was done twice: equal briefs, equal files of two
	// members, inputs that two members read where each has its own, and calls
	// repeated in a run.
	Duplicate int `json:"duplicate_work"`
	// Invalid counts tool calls that were refused or failed, but for inputs that
	// are not there on purpose.
	Invalid int `json:"invalid_calls"`
	// Loops counts polls of the team's status beyond one a turn, waits that were
	// begun again without a reply between, rings of waits, and mail with which
	// members only wake each other.
	Loops int `json:"waiting_loops"`
	// Guards counts what a guard stopped: runs at a limit, calls refused by one,
	// waits for an answer that cannot come.
	Guards int `json:"guard_hits"`
	// Undelivered counts runs that ended on work that they neither delivered nor
	// wait with.
	Undelivered int `json:"undelivered_runs"`
	// Lacking counts what the case is about and the log does not show, such as a
	// delivery that its reader never read.
	Lacking int `json:"lacking_evidence"`
}

// counts are all of them, in the order of the fields.
func (c Conduct) counts() []int {
	return []int{c.Needless, c.Redundant, c.Duplicate, c.Invalid, c.Loops, c.Guards, c.Undelivered, c.Lacking}
}

func (c Conduct) clean() bool {
	return !slices.ContainsFunc(c.counts(), func(n int) bool { return n > 0 })
}

func (c *Conduct) add(o Conduct) {
	c.Needless += o.Needless
	c.Redundant += o.Redundant
	c.Duplicate += o.Duplicate
	c.Invalid += o.Invalid
	c.Loops += o.Loops
	c.Guards += o.Guards
	c.Undelivered += o.Undelivered
	c.Lacking += o.Lacking
}

// guards are the codes with which the runtime stops a run, or refuses a call
// that is right in itself.
var guards = []string{
	"limit-reached", "depth-limit", "step-limit", "run-limit", "repeated-call",
	"budget-used-up", "run-budget-used-up", "member-budget-used-up", "team-budget-used-up",
}

// polls is the code of a tool that was called again in one turn.
const polls = "once-a-run"

// conduct counts, and says each time what was seen.
func (c Case) conduct(b *book, alone bool) (Conduct, []string) {
	var n Conduct
	var notes []string
	note := func(count *int, by int, format string, args ...any) {
		*count += by
		notes = append(notes, fmt.Sprintf(format, args...))
	}
	others := b.others()
	if c.Members == 0 && (b.teams > 0 || len(others) > 0) {
		note(&n.Needless, 1, "needless: a team was made for a question that its own words answer")
	}
	if more := len(others) - c.Members; more > 0 {
		note(&n.Redundant, more, "redundant: %d members where %d do", len(others), c.Members)
	}
	for _, what := range append(b.twice(), c.shared(b)...) {
		note(&n.Duplicate, 1, "duplicate: %s", what)
	}
	for _, x := range b.calls {
		switch {
		case !x.failed:
		case x.code == polls:
			note(&n.Loops, 1, "loop: %s called %s again in one turn", b.name(x.member), x.name)
		case slices.Contains(guards, x.code):
			note(&n.Guards, 1, "guard: %s of %s was refused: %s", x.name, b.name(x.member), x.code)
		case !c.removed(x):
			note(&n.Invalid, 1, "invalid: %s of %s: %s", x.name, b.name(x.member), firstLine(x.output))
		}
	}
	for _, m := range b.mail {
		switch {
		case m.quiet:
			note(&n.Loops, 1, "loop: %s and others only woke each other", b.name(m.from))
		case m.kind != rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT:
		case m.topic == "deadlock":
			note(&n.Loops, 1, "loop: %s waits in a ring", b.name(m.to))
		case m.topic == "nobody-left" || m.topic == "unanswered":
			note(&n.Guards, 1, "guard: %s was told that it waits in vain: %s", b.name(m.to), m.topic)
		}
	}
	for _, who := range b.rewaits() {
		note(&n.Loops, 1, "loop: %s waited again without a reply between", who)
	}
	for _, r := range b.runs {
		switch {
		case r.reason == rollcallv1.FinishReason_FINISH_REASON_OUT_OF_BUDGET, slices.Contains(guards, r.code):
			note(&n.Guards, 1, "guard: a run of %s was stopped: %s", b.name(r.member), r.code)
		case len(r.undelivered) > 0 && r.reason == rollcallv1.FinishReason_FINISH_REASON_IDLE && !b.waitsIn(r):
			note(&n.Undelivered, 1, "undelivered: %s ended its turn with %s open", b.name(r.member), strings.Join(r.undelivered, ", "))
		}
	}
	if c.evidence != nil && !alone {
		for _, what := range c.evidence(b) {
			note(&n.Lacking, 1, "lacking: %s", what)
		}
	}
	return n, notes
}

// removed reports a look for what is not there on purpose.
func (c Case) removed(x *call) bool {
	return slices.ContainsFunc(c.Removed, func(p string) bool { return strings.HasSuffix(x.path(), p) })
}

// twice is work that the log shows twice.
func (b *book) twice() (found []string) {
	for i, t := range b.tasks {
		for _, u := range b.tasks[:i] {
			// A replacement has the brief of the one that failed.
			if len(u.ended) == 0 && words(t.text) == words(u.text) && words(t.text) != "" {
				found = append(found, fmt.Sprintf("%s and %s have the same brief", u.id, t.id))
			}
		}
	}
	told := map[string]bool{}
	for i, f := range b.written {
		for _, g := range b.written[:i] {
			if f.sum == g.sum && f.member != g.member && !told[f.sum] {
				told[f.sum] = true
				found = append(found, fmt.Sprintf("%s/%s and %s/%s are the same file", b.name(g.member), g.path, b.name(f.member), f.path))
			}
		}
	}
	for i, x := range b.calls {
		for _, y := range b.calls[:i] {
			if x.run == y.run && x.name == y.name && x.args == y.args && !x.failed && !y.failed && !b.changed(y, x) {
				found = append(found, fmt.Sprintf("%s called %s twice alike in one turn", b.name(x.member), x.name))
				break
			}
		}
	}
	return found
}

// changed reports whether the caller wrote something between two calls: then the
// second may look at it.
func (b *book) changed(from, to *call) bool {
	for _, x := range b.calls {
		if x.run == from.run && x.at >= from.at && x.at < to.at && (x.name == "file_write" || x.name == "file_edit" || x.name == "file_delete") {
			return true
		}
	}
	return false
}

// shared are inputs that several members read where each has its own.
func (c Case) shared(b *book) (found []string) {
	if !c.Exclusive {
		return nil
	}
	paths, _ := c.Inputs()
	for _, p := range paths {
		if who := b.readers("Lead/" + p); len(who) > 1 {
			found = append(found, fmt.Sprintf("%s read %s", strings.Join(who, " and "), p))
		}
	}
	return found
}

// readers are the members that read a path.
func (b *book) readers(path string) (names []string) {
	for _, x := range b.calls {
		if x.name == "file_read" && !x.failed && x.path() == path && !slices.Contains(names, b.name(x.member)) {
			names = append(names, b.name(x.member))
		}
	}
	return names
}

// rewaits are members that began a wait after one that nobody answered.
func (b *book) rewaits() (names []string) {
	for i, w := range b.waits {
		for _, v := range b.waits[:i] {
			if v.member == w.member && v.to != 0 && v.to < w.from && v.reason == "replied" {
				continue
			}
			if v.member == w.member {
				names = append(names, b.name(w.member))
				break
			}
		}
	}
	return names
}

// waitsIn reports whether a run ended on a question that stands open.
func (b *book) waitsIn(r *run) bool {
	return slices.ContainsFunc(b.waits, func(w *wait) bool {
		return w.member == r.member && w.from <= r.to && (w.to == 0 || w.to > r.to)
	})
}

func words(text string) string { return strings.Join(strings.Fields(strings.ToLower(text)), " ") }

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if r := []rune(line); len(r) > 160 {
		line = string(r[:159]) + "…"
	}
	return line
}
