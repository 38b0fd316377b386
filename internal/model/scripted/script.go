package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// Script is a checked script. It does not change and may serve many servers.
type Script struct {
	name  string
	rules []rule
}

// Name is the file's name, as in errors.
func (s *Script) Name() string { return s.name }

// rule is one rule as it is written. In its texts {{key}} stands for what was
// captured.
type rule struct {
	Name      string             `yaml:"name"`
	Member    *pattern           `yaml:"member"`
	Has       []pattern          `yaml:"has"`
	Lacks     []pattern          `yaml:"lacks"`
	Times     amount             `yaml:"times"`
	Capture   map[string]pattern `yaml:"capture"`
	Text      *string            `yaml:"text"`
	Reasoning string             `yaml:"reasoning"`
	Tools     []toolCall         `yaml:"tools"`
	DelayMS   amount             `yaml:"delay_ms"`
	Finish    string             `yaml:"finish"`

	Hold       string `yaml:"hold"`
	Status     amount `yaml:"status"`
	Code       string `yaml:"code"`
	RetryAfter string `yaml:"retry_after"`
	Cut        bool   `yaml:"cut"`
	Reset      bool   `yaml:"reset"`

	line, column int
}

type toolCall struct {
	Name string    `yaml:"name"`
	Args arguments `yaml:"args"`
	// Raw are arguments just as they are written, JSON or not.
	Raw *string `yaml:"raw"`
}

// SyntaxError says where a script is wrong, and how.
type SyntaxError struct {
	File         string
	Line, Column int
	Problem      string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Problem)
}

// Load reads and checks a script. The error is a *SyntaxError if the file
// could be read.
func Load(path string) (*Script, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("load script: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	data, err := io.ReadAll(io.LimitReader(f, maxScript+1))
	if err != nil {
		return nil, fmt.Errorf("load script: %w", err)
	}
	return Parse(path, data)
}

// maxScript is the longest script that is read, in bytes: its tree takes many
// times as much.
const maxScript = 4 << 20

// Parse checks a script; name is the file's in errors, which are *SyntaxError.
func Parse(name string, data []byte) (s *Script, err error) {
	wrong := func(line, column int, format string, args ...any) (*Script, error) {
		return nil, &SyntaxError{File: name, Line: line, Column: column, Problem: fmt.Sprintf(format, args...)}
	}
	if len(data) > maxScript {
		return wrong(1, 1, "it has more than the %d bytes that are read", maxScript)
	}
	// The YAML library has panicked on broken input before.
	defer func() {
		if p := recover(); p != nil {
			s, err = wrong(1, 1, "the YAML cannot be read: %v", p)
		}
	}()
	var file struct {
		Rules []rule `yaml:"rules"`
	}
	d := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict())
	switch err := d.Decode(&file); {
	case errors.Is(err, io.EOF):
	case err != nil:
		line, column, problem := placeOf(err)
		return wrong(line, column, "%s", problem)
	}
	if len(file.Rules) == 0 {
		return wrong(1, 1, "a script needs rules: begin it with \"rules:\" and a list")
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return wrong(1, 1, "a script is one YAML document, this file holds more")
	}
	for i, r := range file.Rules {
		if r.line == 0 {
			return wrong(1, 1, "rule %d is empty", i+1)
		}
		if problem := r.problem(); problem != "" {
			return wrong(r.line, r.column, "rule %d: %s", i+1, problem)
		}
	}
	return &Script{name: name, rules: file.Rules}, nil
}

// placeOf gives the place and the words of a YAML error.
func placeOf(err error) (line, column int, problem string) {
	e, ok := errors.AsType[yaml.Error](err)
	if !ok {
		return 1, 1, err.Error()
	}
	line, column, problem = 1, 1, e.GetMessage()
	if t := e.GetToken(); t != nil && t.Position != nil {
		line, column = t.Position.Line, t.Position.Column
	}
	if t, ok := errors.AsType[*yaml.TypeError](err); ok && t.SrcType != nil && t.DstType != nil {
		problem = fmt.Sprintf("%s was used where %s is expected", t.SrcType, t.DstType)
	}
	return line, column, problem
}

var placeholder = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// problem is what is wrong with a rule as a whole, "" if nothing is.
func (r rule) problem() string {
	texts := []string{r.Reasoning}
	if r.Text != nil {
		texts = append(texts, *r.Text)
	}
	for i, t := range r.Tools {
		if t.Name == "" {
			return fmt.Sprintf("tool %d has no name", i+1)
		}
		if t.Raw != nil && t.Args != "" {
			return fmt.Sprintf("tool %d has both args and raw", i+1)
		}
		texts = append(texts, string(t.Args))
	}
	for _, text := range texts {
		for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
			if _, ok := r.Capture[m[1]]; !ok {
				return fmt.Sprintf("%s is used, but capture has no %s", m[0], m[1])
			}
		}
	}
	switch {
	case r.Status != 0 && (r.Status < 400 || r.Status > 599):
		return fmt.Sprintf("status %d is no error: 400 to 599 are", r.Status)
	case r.Status != 0 && (len(r.Tools) > 0 || r.Cut || r.Reset):
		return "an error (status) has no tools, cut or reset"
	case r.Status == 0 && (r.RetryAfter != "" || r.Code != ""):
		return "retry_after and code need a status"
	case r.Cut && r.Reset:
		return "an answer is cut or reset, not both"
	case r.Text == nil && len(r.Tools) == 0 && r.Status == 0 && r.Reasoning == "":
		return "it answers nothing: give it text, tools or a status"
	}
	return ""
}

func (r *rule) UnmarshalYAML(node ast.Node) error {
	type plain rule
	if err := yaml.NodeToValue(node, (*plain)(r), yaml.Strict()); err != nil {
		return err
	}
	first := node.GetToken()
	if m, ok := node.(*ast.MappingNode); ok && len(m.Values) > 0 {
		first = m.Values[0].Key.GetToken()
	}
	r.line, r.column = first.Position.Line, first.Position.Column
	return nil
}

// amount is a whole number that is not negative.
type amount int

func (a *amount) UnmarshalYAML(node ast.Node) error {
	var v any
	if err := yaml.NodeToValue(node, &v); err != nil {
		return err
	}
	if n, ok := v.(uint64); ok && n <= math.MaxInt32 {
		*a = amount(n)
		return nil
	}
	return &yaml.SyntaxError{Message: fmt.Sprintf("a whole number from 0 is wanted, not %v", v), Token: node.GetToken()}
}

// pattern is a regular expression.
type pattern struct{ *regexp.Regexp }

func (p *pattern) UnmarshalYAML(node ast.Node) error {
	var s string
	if err := yaml.NodeToValue(node, &s); err != nil {
		return err
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return &yaml.SyntaxError{Message: "not a regular expression: " + strings.TrimPrefix(err.Error(), "error parsing regexp: "), Token: node.GetToken()}
	}
	p.Regexp = re
	return nil
}

// arguments are a tool's arguments as JSON with sorted keys.
type arguments string

func (a *arguments) UnmarshalYAML(node ast.Node) error {
	var args map[string]any
	if err := yaml.NodeToValue(node, &args, yaml.Strict()); err != nil {
		return err
	}
	if args == nil {
		args = map[string]any{}
	}
	text, err := encode(args)
	if err != nil {
		return &yaml.SyntaxError{Message: "arguments that are no JSON: " + err.Error(), Token: node.GetToken()}
	}
	*a = arguments(text)
	return nil
}

// encode writes JSON with characters as they are.
func encode(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
