package model

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// maxCalls bounds the calls of one reply: far more than any run makes, and few
// enough to be kept while the rest of a hostile answer comes in.
const maxCalls = 20_000

// An accumulator puts the pieces of a reply together.
type accumulator struct {
	extras map[int]string

	text, reasoning strings.Builder
	finish          string
	model           string
	usage           *openai.Usage

	calls   []*slot
	byID    map[string]*slot
	byIndex map[int]*slot
	current *slot
	pieces  int
}

// A slot is one tool call on its way.
type slot struct {
	id, name  string
	arguments strings.Builder
	depth     depth
	extra     string
	index     *int
	chunk     int // the chunk that touched it last
}

func newAccumulator(extras map[int]string) *accumulator {
	return &accumulator{extras: extras, byID: map[string]*slot{}, byIndex: map[int]*slot{}}
}

// add takes one chunk and returns the text in it.
func (a *accumulator) add(c openai.ChatCompletionStreamResponse, number int) string {
	if c.Model != "" {
		a.model = c.Model
	}
	if c.Usage != nil {
		a.usage = c.Usage // later figures include earlier ones
	}
	var said strings.Builder
	for _, ch := range c.Choices {
		d := ch.Delta
		said.WriteString(strings.ReplaceAll(d.Content, "\x00", "\uFFFD"))
		a.reasoning.WriteString(strings.ReplaceAll(d.ReasoningContent, "\x00", "\uFFFD"))
		for _, piece := range d.ToolCalls {
			a.piece(piece, number)
		}
		if d.Content != "" || d.ReasoningContent != "" || len(d.ToolCalls) > 0 {
			a.finish = "" // a reason that is followed by more was none
		}
		if ch.FinishReason != "" {
			a.finish = string(ch.FinishReason)
		}
	}
	a.text.WriteString(said.String())
	return said.String()
}

// overrun reports more calls than a reply may have.
func (a *accumulator) overrun() *Error {
	if len(a.calls) <= maxCalls {
		return nil
	}
	return tooLong(fmt.Sprintf("it makes more than %d calls", maxCalls))
}

// piece finds the call that a piece belongs to, or begins one. Indexes and ids
// are hints: servers leave them out, repeat them, or number all calls 0.
func (a *accumulator) piece(p openai.ToolCall, chunk int) {
	s := a.owner(p, chunk)
	if s == nil {
		s = new(slot)
		a.calls = append(a.calls, s)
	}
	s.chunk, a.current = chunk, s
	if p.ID != "" && s.id == "" {
		s.id, a.byID[p.ID] = p.ID, s
	}
	if p.Index != nil {
		s.index, a.byIndex[*p.Index] = p.Index, s
	}
	switch name := p.Function.Name; {
	case name == "", strings.HasPrefix(s.name, name):
	case strings.HasPrefix(name, s.name):
		s.name = name // repeated, and longer
	default:
		s.name += name // split
	}
	if s.depth.complete() && s.arguments.String() == p.Function.Arguments {
		// The whole call once more, at its end.
	} else {
		s.arguments.WriteString(p.Function.Arguments)
		s.depth.feed([]byte(p.Function.Arguments))
	}
	if extra := a.extras[a.pieces]; extra != "" {
		s.extra = extra
	}
	a.pieces++
}

// owner is the call that the piece goes on with, nil if it begins a new one.
func (a *accumulator) owner(p openai.ToolCall, chunk int) *slot {
	s := a.current
	if p.Index != nil {
		if at := a.byIndex[*p.Index]; at != nil {
			s = at
		} else if p.ID != "" || p.Function.Name != "" {
			s = nil
		}
	}
	if p.ID != "" {
		if at := a.byID[p.ID]; at != nil && (p.Function.Name == "" || at.sameIndex(p.Index)) {
			s = at
		} else if s != nil && s.id != "" && s.id != p.ID {
			s = nil
		}
	}
	if s == nil || s.begunAnew(p, chunk) {
		return nil
	}
	return s
}

func (s *slot) sameIndex(index *int) bool {
	return s.index == nil || index == nil || *s.index == *index
}

// begunAnew reports a piece that, by what it holds, cannot go on with s.
func (s *slot) begunAnew(p openai.ToolCall, chunk int) bool {
	name, args := p.Function.Name, p.Function.Arguments
	switch {
	case s.chunk == chunk && name != "" && s.name != "":
		return true // two entries of one chunk are two calls
	case s.depth.complete():
		if p.ID == s.id && (name == s.name || name == "") && (args == "" || args == s.arguments.String()) {
			return false // the same once more
		}
		if name == "" {
			return strings.HasPrefix(strings.TrimSpace(args), "{")
		}
		return name != s.name || strings.TrimSpace(args) != ""
	case s.arguments.Len() > 0:
		return name != "" && name != s.name
	}
	return false
}

// result gives the calls their final form. used are the ids of the request's
// history, which a new call must not repeat; seed makes ids where the server
// gave none that is of use.
func (a *accumulator) result(used map[string]bool, seed string, tools []*rollcallv1.ToolDefinition) []*rollcallv1.ToolCall {
	var calls []*rollcallv1.ToolCall
	for i, s := range a.calls {
		args := s.arguments.String()
		if strings.TrimSpace(args) == "null" {
			args = ""
		}
		if s.name == "" && strings.TrimSpace(args) == "" {
			continue // a ghost
		}
		if args == "" && needsNothing(tools, s.name) {
			args = "{}"
		}
		id := s.id
		for n := 0; id == "" || used[id]; n++ {
			id = makeID(seed + "." + strconv.Itoa(i) + "." + strconv.Itoa(n))
		}
		used[id] = true
		calls = append(calls, &rollcallv1.ToolCall{Id: id, Name: s.name, Arguments: args, Extra: s.extra})
	}
	return calls
}

// needsNothing reports a tool of that name without required arguments: only
// then are no arguments the same as empty ones.
func needsNothing(tools []*rollcallv1.ToolDefinition, name string) bool {
	for _, t := range tools {
		if t.GetName() != name {
			continue
		}
		var schema struct {
			Required []string `json:"required"`
		}
		return t.GetSchema() == "" || json.Unmarshal([]byte(t.GetSchema()), &schema) == nil && len(schema.Required) == 0
	}
	return false
}
