package domain

import (
	"fmt"
	"slices"
	"strings"
)

// The wait graph: a member that rests depends on whoever it waits for, one that
// has not begun on who delivers what its task builds on. Who works, has mail to
// read, is held back or waits for the operator can break every ring.

// Topics of alerts about waits.
const (
	topicNobodyLeft = "nobody-left"
	topicUnanswered = "unanswered"
	topicDeadlock   = "deadlock"
)

// awaits lists whom the member depends on, as its edges in the wait graph. It is
// free when something else can make it act. One answer is enough for who asked
// several; who has not begun needs all that is not delivered.
func (s *State) awaits(m *Member) (whom []*Member, all, free bool) {
	if m.Run != nil || m.Held || !m.Alive() {
		return nil, false, true
	}
	if t := s.Task(m.Task); m.Status == spawning && t != nil {
		for _, id := range t.Dependencies {
			dep := s.Task(id)
			if dep == nil || dep.Status == completed {
				continue
			}
			owner := s.Named(dep.Owner)
			if !dep.Open() || owner == nil || !owner.Alive() { // the Lead or the operator must act
				return nil, true, true
			}
			whom = append(whom, owner)
		}
		return whom, true, len(whom) == 0
	}
	if s.hasWaking(m) {
		return nil, false, true
	}
	for _, w := range m.Waits {
		next := s.Member(w.Awaited)
		if next == nil || !next.Alive() || !w.Read && !s.notBegun(next) {
			return nil, false, true
		}
		whom = append(whom, next)
	}
	return whom, false, false
}

// notBegun reports whether the member's task waits for what it depends on, so
// that its mail is kept unread.
func (s *State) notBegun(m *Member) bool {
	t := s.Task(m.Task)
	return m.Status == spawning && t != nil && t.Status == pending
}

// mayAnswer reports whether a member can still come to act: it works or will, or
// depends on somebody who may act. Those in asking are known not to, unless
// another does.
func (s *State) mayAnswer(m *Member, asking map[string]bool) bool {
	if asking[m.ID] {
		return false
	}
	whom, all, free := s.awaits(m)
	if free {
		return true
	}
	asking[m.ID] = true
	may := func(next *Member) bool { return s.mayAnswer(next, asking) }
	if all {
		return !slices.ContainsFunc(whom, func(next *Member) bool { return !may(next) })
	}
	return slices.ContainsFunc(whom, may)
}

// ring is the way through the wait graph that leads from the member to itself
// by way of whom it asked; nil when there is none.
func (s *State) ring(from, asked *Member) []*Member {
	seen := map[string]bool{}
	var walk func(m *Member) []*Member
	walk = func(m *Member) []*Member {
		if m == from {
			return []*Member{m}
		}
		if seen[m.ID] {
			return nil
		}
		seen[m.ID] = true
		whom, _, free := s.awaits(m)
		if free {
			return nil
		}
		for _, next := range whom {
			if rest := walk(next); rest != nil {
				return append([]*Member{m}, rest...)
			}
		}
		return nil
	}
	if rest := walk(asked); rest != nil {
		return append([]*Member{from}, rest...)
	}
	return nil
}

// ringText names a ring, such as "Backend -> Frontend -> Backend".
func ringText(ring []*Member) string {
	names := make([]string, len(ring))
	for i, m := range ring {
		names[i] = m.Name
	}
	return strings.Join(names, " -> ")
}

// ringTold reports whether the Lead was told of a ring: of one that a wait of
// these members is in.
func ringTold(ring []*Member) bool {
	return slices.ContainsFunc(ring, func(m *Member) bool {
		return slices.ContainsFunc(m.Waits, func(w *Wait) bool { return w.Ring })
	})
}

// RingNote says that the question which the caller has just asked whoever is
// named, and will sleep on, closes a ring that nobody in it can break; empty when it does
// not.
func (d *Decision) RingNote(to string) string {
	s, from := d.State(), d.Caller()
	asked := s.Recipient(to)
	if from == nil || from.Run == nil || asked == nil || asked == from {
		return ""
	}
	for _, w := range slices.Concat(from.Waits, from.Run.Asked) {
		if next := s.Member(w.Awaited); next == nil || s.mayAnswer(next, map[string]bool{from.ID: true}) {
			return ""
		}
	}
	ring := s.ring(from, asked)
	if ring == nil {
		return ""
	}
	return fmt.Sprintf("nobody can answer while you wait: %s. The Lead is told; do what you can without the answer", ringText(ring))
}

// tellRing tells the Lead of a ring that the wait is in, once; it reports whether
// there is one.
func (d *Decision) tellRing(m *Member, w *Wait, asked *Member) bool {
	s := d.State()
	ring := s.ring(m, asked)
	if ring == nil || s.mayAnswer(m, map[string]bool{}) {
		return false
	}
	if !ringTold(ring) {
		d.alert(s.Lead(), w, topicDeadlock, deadlockNote(s, m, w, asked, ring), max(m.Hops, asked.Hops)+1)
	}
	return true
}

func deadlockNote(s *State, m *Member, w *Wait, asked *Member, ring []*Member) string {
	text := fmt.Sprintf("Deadlock, a circle of waits: %s. %s waits for %s to answer %s", ringText(ring), m.Name, asked.Name, w.Message)
	if s.notBegun(asked) {
		text += fmt.Sprintf(", and %s begins only when what its task %s depends on is delivered", asked.Name, asked.Task)
	}
	return text + fmt.Sprintf(". None of them can go on. Answer %s yourself with reply_to %q, or change who depends on whom.", m.Name, w.Message)
}
