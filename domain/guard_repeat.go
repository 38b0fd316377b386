package domain

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// codeRepeated is of calls that are not made, and of runs that end, because the
// same call was made again and again.
const codeRepeated = "repeated-call"

// Repeat counts how often a run made one call without anything else changing.
type Repeat struct {
	// Outcome is a mark of what the call came to.
	Outcome string
	Times   int
}

// repeated refuses a call that the run made as often as the limit allows. When
// it tries as often again, stop is true: the run ends.
func (d *Decision) repeated(m *Member, call Call) (refusal *Refusal, stop bool) {
	k := d.b.limits.IdenticalCalls
	r := m.Run.Repeats[callMark(call)]
	if r == nil || r.Times < k {
		return nil, false
	}
	return Refuse(codeRepeated, call.Name+" was not run",
		fmt.Sprintf("you called it %d times with the same arguments and nothing else changed; none of %d such calls is left", r.Times, k),
		"do something else: use what it said, ask somebody, or end your turn with a short text"), r.Times+1 >= 2*k
}

// endRepeating ends a run that does not stop calling the same.
func (d *Decision) endRepeating(m *Member, name string) {
	d.finish(m, failing(codeRepeated, fmt.Sprintf("it called %s %d times with the same arguments and nothing else changed", name, 2*d.b.limits.IdenticalCalls)))
}

// called counts a call's outcome. A call that was not made before, or came to
// something else than then, is a change: everything counts anew. What a
// coordination tool itself makes, such as the next message's number, is none.
func (m *Member) called(call Call, e *rollcallv1.ToolCallFinished, coordination bool) {
	if m.Run.Repeats == nil {
		m.Run.Repeats = map[string]*Repeat{}
	}
	mark := callMark(call)
	r := m.Run.Repeats[mark]
	if r != nil && refusedFor(e, codeRepeated) {
		r.Times++
		return
	}
	text := e.GetOutput().GetText()
	if coordination {
		text = withoutNumbers(text)
	}
	outcome := shortHash(text, e.GetOutput().GetBlob().GetSha256())
	if r != nil && r.Outcome == outcome {
		r.Times++
		return
	}
	for _, other := range m.Run.Repeats {
		other.Times = 0
	}
	m.Run.Repeats[mark] = &Repeat{Outcome: outcome, Times: 1}
}

// refusedFor reports whether a call's outcome is a refusal of that code.
func refusedFor(e *rollcallv1.ToolCallFinished, code string) bool {
	return e.GetError() && strings.HasSuffix(e.GetOutput().GetText(), "["+code+"]")
}

// callMark is equal for calls of one tool with the same arguments, however they
// are written.
func callMark(call Call) string {
	arguments := cmp.Or(strings.TrimSpace(call.Arguments), "{}")
	dec := json.NewDecoder(strings.NewReader(arguments))
	dec.UseNumber()
	var value any
	if dec.Decode(&value) == nil {
		if canonical, err := json.Marshal(value); err == nil {
			arguments = string(canonical)
		}
	}
	var blob string
	if call.Blob != nil {
		blob = call.Blob.SHA256
	}
	return shortHash(call.Name, arguments, blob)
}

func shortHash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// withoutNumbers is the text with each number as one mark.
func withoutNumbers(text string) string {
	var b strings.Builder
	number := false
	for _, r := range text {
		digit := r >= '0' && r <= '9'
		if !digit {
			b.WriteRune(r)
		} else if !number {
			b.WriteByte('#')
		}
		number = digit
	}
	return b.String()
}
