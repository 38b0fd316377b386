package domain

import (
	"cmp"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// What a reply may take before anything is known of this conversation's, and
// the bounds of what is expected afterwards, in tokens.
const (
	firstOutput = 1024
	leastOutput = 64
	mostOutput  = 8192
)

// bytesPerToken is what text of the usual languages comes to.
const bytesPerToken = 4

// estimate is about what the member's next model call uses: the text that it is
// shown and a reply. After a reply in the same run the server's own count of it
// is taken, and only what came since is guessed.
func (d *Decision) estimate(m *Member) Reservation {
	s := d.State()
	input := m.Run.Shown + tokensOf(m.since(m.Run.ShownEntries))
	if m.Run.Shown == 0 {
		input = tokensOf(s.shownBytes(m))
	}
	for _, mail := range m.Unread {
		input += tokensOf(entryBytes + mail.Place.Size)
	}
	output := uint64(firstOutput)
	if s.Used.Calls > 0 { // twice the mean of the replies so far
		output = min(max(2*s.Used.OutputTokens/s.Used.Calls, leastOutput), mostOutput)
	}
	need := Reservation{Tokens: input + output}
	if bound := s.Bindings[m.Run.Agent]; bound != nil {
		price := d.b.r.Prices[bound.Model]
		need.CostMicros = (input*price.Input + output*price.Output + 999_999) / 1_000_000
	}
	return need
}

func tokensOf(bytes uint64) uint64 { return (bytes + bytesPerToken - 1) / bytesPerToken }

// since is the size of what the open turn took up after its first entries.
func (m *Member) since(entries int) (size uint64) {
	t := m.turn()
	for _, e := range t.Entries[min(entries, len(t.Entries)):] {
		size += e.size()
	}
	return size
}

// shownBytes is about how much text the next request of the run has.
func (s *State) shownBytes(m *Member) uint64 {
	size := uint64(len(s.situation(m)))
	memory := rollcallv1.MemoryPolicy_MEMORY_POLICY_TRANSCRIPT
	if bound := s.Bindings[m.Run.Agent]; bound != nil {
		size += bound.Bytes
		memory = cmp.Or(bound.Memory, memory)
	}
	turns := m.Turns
	if memory == rollcallv1.MemoryPolicy_MEMORY_POLICY_TRANSCRIPT {
		_, all := fitting(turns, contextBytes)
		return size + all
	}
	if memory == rollcallv1.MemoryPolicy_MEMORY_POLICY_SUMMARY {
		for _, a := range m.Purpose {
			size += a.Place.Size
		}
	}
	return size + m.turn().size()
}
