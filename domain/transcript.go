package domain

import (
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Turn is one run in a member's transcript.
type Turn struct {
	Run string
	// Replied is true once a model answered in it.
	Replied bool    `json:",omitempty"`
	Entries []Entry `json:",omitempty"`
}

// Entry is one event of a transcript.
type Entry struct {
	Place Place
	// Mail that the event consumed, in order.
	Mail []MailPlace `json:",omitempty"`
}

// MailPlace names a message and where it stands.
type MailPlace struct {
	ID    string
	Place Place
	// Whole: the operator's words, which no frame cuts.
	Whole bool `json:",omitempty"`
}

// Bounds of what a request shows, in bytes unless said otherwise. They are
// part of the renderer's version.
const (
	// ShownMail is how many messages one frame holds.
	ShownMail = 50
	// ShownMailBytes is what one message of a frame shows, ShownFrameBytes what
	// all of them show together. A brief is an assignment: it may fill a frame.
	ShownMailBytes  = 32 << 10
	ShownFrameBytes = 64 << 10
	// ShownOutput is what one tool result shows.
	ShownOutput = 32 << 10
	// ShownArguments is what one call's arguments show.
	ShownArguments = 32 << 10
)

// A transcript is kept within contextBytes of text, as it is shown; each entry
// counts for at least entryBytes, so that many small ones are bounded too.
const (
	contextBytes = 400 << 10
	entryBytes   = 200
)

func (e Entry) size() uint64 {
	var framed, whole uint64
	for _, m := range e.Mail {
		if m.Whole {
			whole += entryBytes + m.Place.Size
		} else {
			framed += entryBytes + m.Place.Size
		}
	}
	return entryBytes + e.Place.Size + whole + min(framed, ShownMail*entryBytes+ShownFrameBytes)
}

func (t *Turn) size() uint64 {
	var n uint64
	for _, e := range t.Entries {
		n += e.size()
	}
	return n
}

// turn is the open run's turn.
func (m *Member) turn() *Turn {
	if len(m.Turns) == 0 {
		m.Turns = append(m.Turns, &Turn{Run: m.Run.ID})
	}
	return m.Turns[len(m.Turns)-1]
}

func (m *Member) record(e Entry) {
	t := m.turn()
	t.Entries = append(t.Entries, e)
}

// unrecord takes returned mail out of the open turn, and the events that
// brought nothing else.
func (m *Member) unrecord(back map[string]bool) {
	t := m.turn()
	entries := t.Entries[:0]
	for i, e := range t.Entries {
		had := len(e.Mail)
		e.Mail = keep(e.Mail, func(mail MailPlace) bool { return !back[mail.ID] })
		if i == 0 || had == 0 || len(e.Mail) > 0 {
			entries = append(entries, e)
		}
	}
	t.Entries = entries
}

// closeTurn ends the open turn. One in which no model spoke leaves nothing to
// remember; of the rest, the newest are kept whole.
func (m *Member) closeTurn() {
	if t := m.turn(); !t.Replied {
		m.Turns = m.Turns[:len(m.Turns)-1]
	}
	first, _ := fitting(m.Turns, contextBytes)
	for _, t := range m.Turns[:first] {
		m.Omitted += len(t.Entries)
	}
	m.Turns = slices.Clone(m.Turns[first:])
	if len(m.Turns) == 0 {
		m.Turns = nil
	}
}

// fitting is the index of the oldest turn such that it and all newer ones fit
// into budget; the newest always does.
func fitting(turns []*Turn, budget uint64) (first int, size uint64) {
	first = len(turns)
	for first > 0 {
		n := turns[first-1].size()
		if size+n > budget && first < len(turns) {
			break
		}
		size += n
		first--
	}
	return first, size
}

func (m MailPlace) ref() *rollcallv1.MessageRef {
	return &rollcallv1.MessageRef{Message: m.ID, Ref: m.Place.Ref()}
}

func (e Entry) context() ContextEntry {
	entry := ContextEntry{Ref: e.Place.Ref()}
	for _, m := range e.Mail {
		entry.Mail = append(entry.Mail, m.ref())
	}
	return entry
}

// consumedIn reports whether one of the turns consumed the message.
func consumedIn(turns []*Turn, message string) bool {
	return slices.ContainsFunc(turns, func(t *Turn) bool {
		return slices.ContainsFunc(t.Entries, func(e Entry) bool {
			return slices.ContainsFunc(e.Mail, func(m MailPlace) bool { return m.ID == message })
		})
	})
}
