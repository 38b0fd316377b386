// Package schema makes the schema of a tool's arguments from a Go struct and
// reads what a model sent by it. Its errors are written for the model: they
// name what is wrong and what is valid.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rollcall-dev/rollcall/internal/jsontext"
	"github.com/rollcall-dev/rollcall/internal/nearest"
)

// Args reads arguments of the struct T. Fields marked omitempty are optional;
// the tag jsonschema describes a field.
type Args[T any] struct {
	schema   *jsonschema.Schema
	resolved *jsonschema.Resolved
	text     string
}

// For makes the Args of T. It panics when T has no schema: that is a mistake in
// the program. change, if given, may narrow the schema (an enum, a minimum).
func For[T any](change ...func(properties map[string]*jsonschema.Schema)) Args[T] {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		panic(fmt.Sprintf("schema of %T: %v", *new(T), err))
	}
	oneType(s)
	for _, c := range change {
		c(s.Properties)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		panic(fmt.Sprintf("schema of %T: %v", *new(T), err))
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("schema of %T: %v", *new(T), err))
	}
	return Args[T]{schema: s, resolved: resolved, text: string(text)}
}

// oneType leaves each field one type: some servers take no more, and an absent
// list is as good as a null.
func oneType(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if rest := slices.DeleteFunc(slices.Clone(s.Types), func(t string) bool { return t == "null" }); len(rest) == 1 {
		s.Type, s.Types = rest[0], nil
	}
	oneType(s.Items)
	for _, p := range s.Properties {
		oneType(p)
	}
}

// JSON is the schema's text.
func (a Args[T]) JSON() string { return a.text }

// Read decodes and checks arguments. Absent arguments are an empty object, an
// object inside a string is taken as the object, a null is as good as absent.
func (a Args[T]) Read(raw json.RawMessage) (T, error) {
	var out T
	object, err := a.object(raw)
	if err != nil {
		return out, err
	}
	if problems := a.problems(object); len(problems) > 0 {
		return out, fmt.Errorf("%s. Valid arguments: %s", strings.Join(problems, "; "), a.valid())
	}
	if err := a.resolved.Validate(object); err != nil {
		return out, fmt.Errorf("%w. Valid arguments: %s", err, a.valid())
	}
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return out, fmt.Errorf("%w. Valid arguments: %s", err, a.valid())
	}
	return out, nil
}

func (a Args[T]) object(raw json.RawMessage) (map[string]any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return map[string]any{}, nil
	}
	half := jsontext.HalfCharacter(raw)
	value, err := decode(raw)
	if text, ok := value.(string); ok && err == nil {
		half += jsontext.HalfCharacter([]byte(text))
		value, err = decode([]byte(text))
	}
	if err != nil {
		return nil, fmt.Errorf("the arguments are not valid JSON (%w). Send one JSON object: %s", err, a.valid())
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the arguments must be one JSON object, not %s: %s", kind(value), a.valid())
	}
	if half != "" { // decoded, something else stands there now
		return nil, fmt.Errorf("the arguments have half of a character (a lone %s). Write both halves, such as \\ud83d\\ude00, or the character itself", half[:len(`\ud83d`)])
	}
	for name, v := range object {
		if v == nil {
			delete(object, name)
		}
	}
	return object, nil
}

func decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			err = errors.New("it ends too early")
		}
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more follows after its end")
	}
	return numbers(v), nil
}

// numbers makes whole numbers int64, for the validator knows no json.Number.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	}
	return v
}

// problems are the faults that models make, in plain words, in the order of
// the schema.
func (a Args[T]) problems(object map[string]any) []string {
	var out []string
	for _, name := range a.schema.PropertyOrder {
		value, present := object[name]
		p := a.schema.Properties[name]
		switch {
		case !present && slices.Contains(a.schema.Required, name):
			out = append(out, fmt.Sprintf("argument %q is missing", name))
		case present && !is(value, p.Type):
			out = append(out, fmt.Sprintf("argument %q must be %s, not %s", name, article(p.Type), kind(value)))
		case present && len(p.Enum) > 0 && !slices.Contains(p.Enum, value):
			out = append(out, fmt.Sprintf("argument %q must be one of %s, not %q", name, list(p.Enum), fmt.Sprint(value)))
		}
	}
	var unknown []string
	for name := range object {
		if a.schema.Properties[name] == nil {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		line := fmt.Sprintf("there is no argument %q", name)
		if near := nearest.To(name, a.schema.PropertyOrder, 1); len(near) > 0 {
			line += fmt.Sprintf(" (did you mean %q?)", near[0])
		}
		out = append(out, line)
	}
	return out
}

func (a Args[T]) valid() string {
	if len(a.schema.PropertyOrder) == 0 {
		return "none"
	}
	parts := make([]string, 0, len(a.schema.PropertyOrder))
	for _, name := range a.schema.PropertyOrder {
		need := "optional"
		if slices.Contains(a.schema.Required, name) {
			need = "required"
		}
		parts = append(parts, fmt.Sprintf("%s (%s, %s)", name, a.schema.Properties[name].Type, need))
	}
	return strings.Join(parts, ", ")
}

func list(values []any) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = fmt.Sprintf("%q", fmt.Sprint(v))
	}
	return strings.Join(parts, ", ")
}

func is(value any, t string) bool {
	switch t {
	case "string":
		_, ok := value.(string)
		return ok
	case "integer":
		switch v := value.(type) {
		case int64:
			return true
		case float64:
			return v == float64(int64(v))
		}
		return false
	case "number":
		switch value.(type) {
		case int64, float64:
			return true
		}
		return false
	case "boolean":
		_, ok := value.(bool)
		return ok
	case "array":
		_, ok := value.([]any)
		return ok
	case "object":
		_, ok := value.(map[string]any)
		return ok
	}
	return true
}

func kind(value any) string {
	switch value.(type) {
	case string:
		return "a string"
	case int64, float64:
		return "a number"
	case bool:
		return "a boolean"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	}
	return "null"
}

func article(t string) string {
	if strings.ContainsRune("aeiou", rune(t[0])) {
		return "an " + t
	}
	return "a " + t
}
