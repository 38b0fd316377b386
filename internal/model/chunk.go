package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// What servers send as a chunk, as loosely as they do: every field whose type
// differs between servers stays raw until it is looked at.
type (
	looseChunk struct {
		Model   json.RawMessage `json:"model"`
		Choices json.RawMessage `json:"choices"`
		Usage   json.RawMessage `json:"usage"`
	}
	looseChoice struct {
		Index   json.RawMessage `json:"index"`
		Delta   json.RawMessage `json:"delta"`
		Message json.RawMessage `json:"message"`
		Finish  json.RawMessage `json:"finish_reason"`
		Error   json.RawMessage `json:"error"`
	}
	looseDelta struct {
		Content          json.RawMessage `json:"content"`
		Refusal          json.RawMessage `json:"refusal"`
		ReasoningContent json.RawMessage `json:"reasoning_content"`
		Reasoning        json.RawMessage `json:"reasoning"`
		ReasoningDetails json.RawMessage `json:"reasoning_details"`
		ToolCalls        json.RawMessage `json:"tool_calls"`
		FunctionCall     json.RawMessage `json:"function_call"`
	}
	looseCall struct {
		Index    json.RawMessage `json:"index"`
		ID       json.RawMessage `json:"id"`
		Function json.RawMessage `json:"function"`
		Extra    json.RawMessage `json:"extra_content"`
		looseFunction
	}
	looseFunction struct {
		Name      json.RawMessage `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	looseUsage struct {
		Prompt     json.RawMessage `json:"prompt_tokens"`
		Completion json.RawMessage `json:"completion_tokens"`
		CacheHit   json.RawMessage `json:"prompt_cache_hit_tokens"`
		Details    json.RawMessage `json:"prompt_tokens_details"`
	}
	looseUsageDetails struct {
		Cached json.RawMessage `json:"cached_tokens"`
	}
)

// The chunk that go-openai is given: only what is read, in the types it wants.
type (
	chunk struct {
		Model   string   `json:"model"`
		Choices []choice `json:"choices"`
		Usage   *usage   `json:"usage,omitempty"`
	}
	choice struct {
		Index  int    `json:"index"`
		Delta  delta  `json:"delta"`
		Finish string `json:"finish_reason"`
	}
	delta struct {
		Content   string `json:"content,omitempty"`
		Reasoning string `json:"reasoning_content,omitempty"`
		Calls     []call `json:"tool_calls,omitempty"`
		many      bool   // more calls than a reply may have
	}
	call struct {
		Index    *int         `json:"index,omitempty"`
		ID       string       `json:"id,omitempty"`
		Type     string       `json:"type"`
		Function wireFunction `json:"function"`
		extra    string
	}
	usage struct {
		Prompt     uint64        `json:"prompt_tokens"`
		Completion uint64        `json:"completion_tokens"`
		Details    *usageDetails `json:"prompt_tokens_details,omitempty"`
	}
	usageDetails struct {
		Cached uint64 `json:"cached_tokens"`
	}
)

// mend turns one event of a stream, or a whole answer, into a chunk. ok is
// false for an event that says nothing, such as a ping. An error in the event
// is returned as an *Error.
func (t tails) mend(payload []byte) (c chunk, ok bool, err *Error) {
	var loose looseChunk
	if json.Unmarshal(payload, &loose) != nil {
		return c, false, protocol("the model server sent an event that is no JSON object", payload)
	}
	choices, many, bad := list[looseChoice](loose.Choices)
	switch {
	case bad != nil:
		return c, false, protocol("the model server sent choices of an unknown form", payload)
	case many:
		return c, false, tooLong(fmt.Sprintf("one event of it has more than %d choices", maxCalls))
	}
	if err := errorIn(payload, choices); err != nil {
		return c, false, err
	}
	c = chunk{Model: plainString(loose.Model), Choices: []choice{}, Usage: mendUsage(loose.Usage)}
	for _, l := range choices {
		if index, _ := number(l.Index); index > 0 {
			continue // only one choice is ever asked for
		}
		one := t.choice(l)
		if one.Delta.many {
			return c, false, tooLong(fmt.Sprintf("one event of it makes more than %d calls", maxCalls))
		}
		c.Choices = append(c.Choices, one)
	}
	return c, len(c.Choices) > 0 || c.Usage != nil, nil
}

func (t tails) choice(l looseChoice) choice {
	out := choice{Finish: plainString(l.Finish)}
	if out.Finish == "null" {
		out.Finish = ""
	}
	for _, raw := range [...]json.RawMessage{l.Delta, l.Message} {
		var d looseDelta
		if !isSet(raw) || json.Unmarshal(raw, &d) != nil {
			continue
		}
		out.Delta = t.delta(d)
		if !out.Delta.empty() {
			break
		}
	}
	return out
}

func (d delta) empty() bool { return d.Content == "" && d.Reasoning == "" && len(d.Calls) == 0 }

func (t tails) delta(l looseDelta) delta {
	var d delta
	d.Content, d.Reasoning = t.content("content", l.Content, nestedParts)
	refusal, _ := t.content("refusal", l.Refusal, nestedParts)
	d.Content += refusal
	// Some send the same thoughts under two names.
	for _, raw := range [...]json.RawMessage{l.ReasoningContent, l.Reasoning, l.ReasoningDetails} {
		if d.Reasoning != "" {
			break
		}
		text, thought := t.content("reasoning", raw, nestedParts)
		d.Reasoning = text + thought
	}
	calls, many, err := list[looseCall](l.ToolCalls)
	if d.many = many; err != nil {
		var one looseCall
		if json.Unmarshal(l.ToolCalls, &one) == nil {
			calls = []looseCall{one}
		}
	}
	if len(calls) == 0 && isSet(l.FunctionCall) {
		calls = []looseCall{{Function: l.FunctionCall}}
	}
	for _, c := range calls {
		d.Calls = append(d.Calls, t.call(c))
	}
	return d
}

// nestedParts is how deep thoughts lie in one another at most; servers use one
// level. Each is decoded anew, so without a bound a hostile answer takes for ever.
const nestedParts = 4

// content reads a text given as a string or as parts; thoughts among the parts
// are kept apart.
func (t tails) content(key string, raw json.RawMessage, deep int) (text, thought string) {
	if s, ok := t.text(key, raw); ok {
		return s, ""
	}
	if deep == 0 {
		return "", ""
	}
	var parts []json.RawMessage
	if !isSet(raw) || json.Unmarshal(raw, &parts) != nil {
		return "", ""
	}
	var words, thoughts strings.Builder
	for _, raw := range parts {
		if s, ok := t.text(key, raw); ok {
			words.WriteString(s)
			continue
		}
		var part struct {
			Type     string          `json:"type"`
			Text     json.RawMessage `json:"text"`
			Summary  json.RawMessage `json:"summary"`
			Thinking json.RawMessage `json:"thinking"`
		}
		if json.Unmarshal(raw, &part) != nil {
			continue
		}
		for _, field := range [...]json.RawMessage{part.Text, part.Summary} {
			if s, ok := t.text(key, field); ok {
				words.WriteString(s)
			}
		}
		if isSet(part.Thinking) {
			inner, deeper := t.content("reasoning", part.Thinking, deep-1)
			thoughts.WriteString(inner + deeper)
		}
	}
	return words.String(), thoughts.String()
}

func (t tails) call(l looseCall) call {
	c := call{ID: plainString(l.ID), Type: "function"}
	if i, ok := number(l.Index); ok && i >= 0 && i < math.MaxInt32 {
		index := int(i)
		c.Index = &index
	}
	f := l.looseFunction
	if isSet(l.Function) {
		_ = json.Unmarshal(l.Function, &f) // a function of another form has no name
	}
	c.Function.Name = plainString(f.Name)
	if isSet(f.Arguments) {
		s, ok := t.text("arguments "+string(l.Index), f.Arguments)
		if !ok {
			s = string(f.Arguments) // an object, as it is
		}
		c.Function.Arguments = s
	}
	if isSet(l.Extra) {
		var b bytes.Buffer
		if json.Compact(&b, l.Extra) == nil {
			c.extra = b.String()
		}
	}
	return c
}

func mendUsage(raw json.RawMessage) *usage {
	var l looseUsage
	if !isSet(raw) || json.Unmarshal(raw, &l) != nil {
		return nil
	}
	u := &usage{Prompt: count(l.Prompt), Completion: count(l.Completion)}
	if u.Prompt == 0 && u.Completion == 0 {
		return nil
	}
	var details looseUsageDetails
	if isSet(l.Details) {
		_ = json.Unmarshal(l.Details, &details) // another form has no figure
	}
	if cached := max(count(details.Cached), count(l.CacheHit)); cached > 0 {
		u.Details = &usageDetails{Cached: min(cached, u.Prompt)}
	}
	return u
}

// list decodes a list; nothing is an empty one. Of a list that is both long and
// full of small things it stops in time: each costs many times its bytes.
func list[T any](raw json.RawMessage) (out []T, many bool, err error) {
	const small = 64 << 10
	if !isSet(raw) {
		return nil, false, nil
	}
	if len(raw) <= small || raw[0] != '[' {
		err = json.Unmarshal(raw, &out)
		return out, len(out) > maxCalls, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return nil, false, err
	}
	for d.More() {
		if len(out) > maxCalls {
			return nil, true, nil
		}
		var one T
		if err := d.Decode(&one); err != nil {
			return nil, false, err
		}
		out = append(out, one)
	}
	return out, false, nil
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// plainString reads a string, or a number as one; anything else is "".
func plainString(raw json.RawMessage) string {
	if !isSet(raw) {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

// number reads a number, or a string that holds one.
func number(raw json.RawMessage) (float64, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(plainString(raw)), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// count reads a figure of tokens, rounded up.
func count(raw json.RawMessage) uint64 {
	f, ok := number(raw)
	if !ok || f <= 0 {
		return 0
	}
	return uint64(math.Ceil(min(f, 1<<50)))
}
