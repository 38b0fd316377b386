package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/rollcall-dev/rollcall/internal/jsontext"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// The request as it goes over the wire. The types are our own: go-openai
// leaves out empty contents and arguments, sends the stream's index back and
// checks model names, and each of these is some server's refusal. Optional
// fields are sent only where they are needed, for the same reason.
type (
	wireRequest struct {
		Model         string             `json:"model"`
		Messages      []wireMessage      `json:"messages"`
		Tools         []wireTool         `json:"tools,omitempty"`
		Stream        bool               `json:"stream"`
		StreamOptions *wireStreamOptions `json:"stream_options,omitempty"`
	}
	wireStreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	}
	wireMessage struct {
		Role       string     `json:"role"`
		Content    string     `json:"content"`
		Reasoning  string     `json:"reasoning_content,omitempty"`
		ToolCalls  []wireCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
	}
	wireCall struct {
		ID       string          `json:"id"`
		Type     string          `json:"type"`
		Function wireFunction    `json:"function"`
		Extra    json.RawMessage `json:"extra_content,omitempty"`
	}
	wireFunction struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	wireTool struct {
		Type     string         `json:"type"`
		Function wireDefinition `json:"function"`
	}
	wireDefinition struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}
)

// What stands where a server wants words and there are none.
const (
	noWords  = "(no text)"
	noOutput = "(no output)"
)

// Encode gives the exact bytes that Call sends for req as the HTTP body: the
// same request, the same bytes, in every process and after every restart.
//
// There is one choice that is not in the log: whether the server is asked for
// usage figures (stream_options). It is asked until it refuses the field.
// That refusal is a failed attempt like any other; from then on the Client
// sends requests as if Plain were set. So a hash recorded for an attempt is
// that of Encode(req) or of req with Plain set, and [Hashes] gives both.
//
// An error means that no server would take the request: no model, no message,
// a call without its result or a result without its call.
func Encode(req Request) ([]byte, error) {
	if req.Model == "" {
		return nil, errors.New("encode request: it names no model")
	}
	if err := checkPairs(req.Messages); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	out := wireRequest{Model: req.Model, Messages: profileOf(req.Model).messages(req.Messages), Stream: true}
	if len(out.Messages) == 0 {
		return nil, errors.New("encode request: it has no message")
	}
	if !req.Plain {
		out.StreamOptions = &wireStreamOptions{IncludeUsage: true}
	}
	for _, t := range req.Tools {
		tool, err := encodeTool(t)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		out.Tools = append(out.Tools, tool)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(out); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Hashes are what an attempt to send req may be recorded with, see Encode.
func Hashes(req Request) ([]string, error) {
	var hashes []string
	for _, plain := range []bool{false, true} {
		req.Plain = plain
		body, err := Encode(req)
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, hashOf(body))
	}
	return hashes, nil
}

func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// checkPairs holds a history to what strict servers demand: the results of a
// reply's calls follow it at once, each call has exactly one.
func checkPairs(messages []Message) error {
	open := map[string]bool{}
	for i, m := range messages {
		if m.Role == "tool" {
			if !open[m.CallID] {
				return fmt.Errorf("message %d: a result for call %q, which is not open", i, m.CallID)
			}
			delete(open, m.CallID)
			continue
		}
		if err := noneOpen(open, i); err != nil {
			return err
		}
		if len(m.Calls) > 0 && m.Role != "assistant" {
			return fmt.Errorf("message %d: calls in a message of role %q", i, m.Role)
		}
		for _, c := range m.Calls {
			if c.GetId() == "" || open[c.GetId()] {
				return fmt.Errorf("message %d: call id %q is empty or used twice", i, c.GetId())
			}
			open[c.GetId()] = true
		}
	}
	return noneOpen(open, len(messages))
}

func noneOpen(open map[string]bool, at int) error {
	for id := range open {
		return fmt.Errorf("message %d: call %q has no result before it", at, id)
	}
	return nil
}

func encodeTool(t *rollcallv1.ToolDefinition) (wireTool, error) {
	schema := json.RawMessage(t.GetSchema())
	if len(bytes.TrimSpace(schema)) == 0 {
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	if !json.Valid(schema) {
		return wireTool{}, fmt.Errorf("tool %s: its schema is not JSON", t.GetName())
	}
	return wireTool{
		Type:     "function",
		Function: wireDefinition{Name: t.GetName(), Description: t.GetDescription(), Parameters: schema},
	}, nil
}

var badInName = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// wireName is a name that servers accept in a history, also when the model
// made one up that they would not.
func wireName(name string) string {
	name = badInName.ReplaceAllString(name, "_")
	if len(name) > 64 {
		name = name[:64]
	}
	if name == "" {
		return "unnamed"
	}
	return name
}

// wireArguments are a JSON object in every case: some servers decode the
// arguments of a history. What is none is wrapped, so that the model sees what
// it wrote; it is never mended into something it did not write. Half of a
// character counts as none: some servers fail on it, and would fail on every
// later request of the run.
func wireArguments(raw string) string {
	trimmed := strings.TrimSpace(raw)
	if trimmed == "" {
		return "{}"
	}
	if trimmed[0] == '{' && wholeJSON(trimmed) {
		return raw
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(map[string]string{"invalid_arguments": raw}) // strings always encode
	return strings.TrimSuffix(b.String(), "\n")
}

func wireExtra(extra string) json.RawMessage {
	if strings.HasPrefix(extra, "{") && wholeJSON(extra) {
		return json.RawMessage(extra)
	}
	return nil
}

// wholeJSON reports JSON that any decoder can read.
func wholeJSON(s string) bool {
	return json.Valid([]byte(s)) && jsontext.HalfCharacter([]byte(s)) == ""
}
