package scripted

import (
	"encoding/json"
	"fmt"
	"strings"
)

// find gives the place of the first rule that matches and has not answered as
// often as it may; -1 if there is none.
func (s *Script) find(member, messages string, answered []int) int {
	for i, r := range s.rules {
		if (r.Times == 0 || answered[i] < int(r.Times)) && r.matches(member, messages) {
			return i
		}
	}
	return -1
}

func (r rule) matches(member, messages string) bool {
	if r.Member != nil && !r.Member.MatchString(member) {
		return false
	}
	for _, p := range r.Has {
		if !p.MatchString(messages) {
			return false
		}
	}
	for _, p := range r.Lacks {
		if p.MatchString(messages) {
			return false
		}
	}
	return true
}

// answer is a rule's answer to one request.
type answer struct {
	text, reasoning string
	calls           []wireCall
	finish          string
}

// render fills in what the rule captures. A capture without a match is an
// error: the script promised it.
func (r rule) render(messages, callPrefix string) (answer, error) {
	captured := map[string]string{}
	for key, p := range r.Capture {
		value, ok := lastMatch(p, messages)
		if !ok {
			return answer{}, fmt.Errorf("capture %s: %s is not in the messages", key, p)
		}
		captured[key] = value
	}
	a := answer{reasoning: fill(r.Reasoning, captured), finish: r.Finish}
	if r.Text != nil {
		a.text = fill(*r.Text, captured)
	}
	for i, t := range r.Tools {
		args, err := fillJSON(string(t.Args), captured)
		if err != nil {
			return answer{}, fmt.Errorf("tool %s: %w", t.Name, err)
		}
		if t.Raw != nil {
			args = *t.Raw
		}
		a.calls = append(a.calls, wireCall{
			ID: fmt.Sprintf("%s_%d", callPrefix, i), Type: "function",
			Function: wireFunction{Name: t.Name, Arguments: args},
		})
	}
	if a.finish == "" {
		a.finish = "stop"
		if len(a.calls) > 0 {
			a.finish = "tool_calls"
		}
	}
	return a, nil
}

// lastMatch is the first group of the last match, or the whole match.
func lastMatch(p pattern, messages string) (string, bool) {
	matches := p.FindAllStringSubmatch(messages, -1)
	if len(matches) == 0 {
		return "", false
	}
	m := matches[len(matches)-1]
	value := m[min(1, len(m)-1)]
	// The messages are JSON: what is captured there is escaped.
	var plain string
	if json.Unmarshal([]byte(`"`+value+`"`), &plain) == nil {
		value = plain
	}
	return value, true
}

func fill(text string, captured map[string]string) string {
	return placeholder.ReplaceAllStringFunc(text, func(s string) string {
		return captured[placeholder.FindStringSubmatch(s)[1]]
	})
}

// fillJSON fills the strings of a JSON document.
func fillJSON(text string, captured map[string]string) (string, error) {
	if text == "" {
		return "{}", nil
	}
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "", err
	}
	return encode(walk(v, captured))
}

func walk(v any, captured map[string]string) any {
	switch v := v.(type) {
	case string:
		return fill(v, captured)
	case []any:
		for i := range v {
			v[i] = walk(v[i], captured)
		}
	case map[string]any:
		for k := range v {
			v[k] = walk(v[k], captured)
		}
	}
	return v
}
