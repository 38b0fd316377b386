package prompt

import (
	"strings"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Consumed reads mail that a member has consumed, for the tool that shows it
// again: all in one frame, the operator's words too, since a tool's result is
// not the operator speaking.
type Consumed struct {
	// Names of the members by id.
	Names  map[string]string
	Source Source
}

// Whole shows one message from the byte offset on, room bytes of it at most;
// more is how many bytes come after what is shown.
func (c Consumed) Whole(m *rollcallv1.MessageRef, offset, room int) (frame string, more int, err error) {
	l, err := open(m, c.Names, c.Source)
	if err != nil {
		return "", 0, err
	}
	body := l.body[len(head(l.body, max(0, offset))):]
	shown := head(body, room)
	l.body, l.size = shown, len(shown)
	return framed([]letter{l}, room), len(body) - len(shown), nil
}

// Some shows messages in their order, of one sender if from is not empty, each
// up to each bytes and all of them up to room; last is the index after the
// last one that was looked at.
func (c Consumed) Some(mail []*rollcallv1.MessageRef, from string, each, room int) (frame string, last int, err error) {
	var letters []letter
	for i, m := range mail {
		l, err := open(m, c.Names, c.Source)
		if err != nil {
			return "", 0, err
		}
		if from != "" && fold(l.from) != fold(from) && l.event.GetFrom() != from {
			last = i + 1
			continue
		}
		if room -= min(len(l.body), each) + overhead; room < 0 && len(letters) > 0 {
			break
		}
		letters, last = append(letters, l), i+1
	}
	return framed(letters, each), last, nil
}

// overhead is about what a message's own tag takes, in bytes.
const overhead = 200

func framed(letters []letter, each int) string {
	if len(letters) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("<" + frameTag + ">\n")
	for _, l := range letters {
		l.write(&b, each)
	}
	b.WriteString("</" + frameTag + ">")
	return b.String()
}

// Versions lists the commits that hold the messages, each once, ascending.
func Versions(mail []*rollcallv1.MessageRef) []uint64 {
	refs := make([]*rollcallv1.Ref, 0, len(mail))
	for _, m := range mail {
		refs = append(refs, m.GetRef())
	}
	return versions(refs)
}
