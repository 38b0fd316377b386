package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
)

// A request as it is read, and as rules see its messages: the fields in this
// order, whoever wrote them.
type (
	wireRequest struct {
		Model         string        `json:"model"`
		Messages      []wireMessage `json:"messages"`
		Tools         []wireTool    `json:"tools"`
		Stream        bool          `json:"stream"`
		StreamOptions *struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	wireMessage struct {
		Role       string          `json:"role"`
		Content    json.RawMessage `json:"content,omitempty"`
		Reasoning  string          `json:"reasoning_content,omitempty"`
		ToolCalls  []wireCall      `json:"tool_calls,omitempty"`
		ToolCallID string          `json:"tool_call_id,omitempty"`
	}
	wireCall struct {
		Index    *int         `json:"index,omitempty"`
		ID       string       `json:"id,omitempty"`
		Type     string       `json:"type,omitempty"`
		Function wireFunction `json:"function"`
	}
	wireFunction struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	}
	wireTool struct {
		Type     string `json:"type"`
		Function struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		} `json:"function"`
	}
)

// known are the arguments that OpenAI knows; it refuses any other.
var known = map[string]bool{
	"model": true, "messages": true, "tools": true, "stream": true, "stream_options": true, "tool_choice": true,
	"parallel_tool_calls": true, "temperature": true, "top_p": true, "n": true, "stop": true, "max_tokens": true,
	"max_completion_tokens": true, "presence_penalty": true, "frequency_penalty": true, "logit_bias": true, "user": true,
	"seed": true, "response_format": true, "reasoning_effort": true, "logprobs": true, "top_logprobs": true, "metadata": true, "store": true,
}

var functionName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// readRequest decodes a body and refuses what OpenAI refuses.
func readRequest(body []byte) (wireRequest, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return wireRequest{}, fmt.Errorf("the body is not a JSON object: %w", err)
	}
	for name := range fields {
		if !known[name] {
			return wireRequest{}, fmt.Errorf("unrecognized request argument: %s", name)
		}
	}
	var req wireRequest
	d := json.NewDecoder(bytes.NewReader(body))
	if err := d.Decode(&req); err != nil {
		return wireRequest{}, fmt.Errorf("the body is of another form: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return wireRequest{}, errors.New("something follows the body's JSON")
	}
	switch {
	case req.Model == "":
		return wireRequest{}, errors.New("model is missing")
	case len(req.Messages) == 0:
		return wireRequest{}, errors.New("messages is empty")
	case req.StreamOptions != nil && !req.Stream:
		return wireRequest{}, errors.New("stream_options is only allowed with stream")
	}
	if err := checkTools(req.Tools); err != nil {
		return wireRequest{}, err
	}
	return req, checkMessages(req.Messages)
}

func checkTools(tools []wireTool) error {
	seen := map[string]bool{}
	for i, t := range tools {
		name := t.Function.Name
		var schema map[string]any
		switch {
		case t.Type != "function":
			return fmt.Errorf("tools[%d].type is %q, not function", i, t.Type)
		case !functionName.MatchString(name):
			return fmt.Errorf("tools[%d].function.name %q is not one to 64 of a-z, A-Z, 0-9, _ and -", i, name)
		case seen[name]:
			return fmt.Errorf("tools[%d].function.name %q is there twice", i, name)
		case len(t.Function.Parameters) > 0 && json.Unmarshal(t.Function.Parameters, &schema) != nil:
			return fmt.Errorf("tools[%d].function.parameters is not a JSON schema", i)
		}
		seen[name] = true
	}
	return nil
}

// checkMessages refuses histories in which calls and results are not paired,
// or a message says nothing.
func checkMessages(messages []wireMessage) error {
	open := map[string]bool{}
	for i, m := range messages {
		text, kind := contentOf(m.Content)
		if kind == contentOther {
			return fmt.Errorf("messages[%d].content is neither a string nor a list of parts", i)
		}
		if m.Role == "tool" {
			switch {
			case kind == contentNone:
				return fmt.Errorf("messages[%d].content is missing", i)
			case m.ToolCallID == "":
				return fmt.Errorf("messages[%d].tool_call_id is missing", i)
			case !open[m.ToolCallID]:
				return fmt.Errorf("messages[%d]: role tool must be a response to a preceding message with tool_calls; %q is not open", i, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
			continue
		}
		if err := allAnswered(open, i); err != nil {
			return err
		}
		switch m.Role {
		case "system", "developer", "user":
			if kind == contentNone {
				return fmt.Errorf("messages[%d].content is missing", i)
			}
			if len(m.ToolCalls) > 0 {
				return fmt.Errorf("messages[%d]: role %s has no tool_calls", i, m.Role)
			}
		case "assistant":
			if text == "" && len(m.ToolCalls) == 0 {
				return fmt.Errorf("messages[%d]: an assistant message needs content or tool_calls", i)
			}
			if err := checkCalls(m.ToolCalls, open, i); err != nil {
				return err
			}
		default:
			return fmt.Errorf("messages[%d].role %q is unknown", i, m.Role)
		}
	}
	return allAnswered(open, len(messages))
}

func allAnswered(open map[string]bool, at int) error {
	for id := range open {
		return fmt.Errorf("messages[%d]: an assistant message with tool_calls must be followed by tool messages for each tool_call_id; %q has none", at, id)
	}
	return nil
}

func checkCalls(calls []wireCall, open map[string]bool, at int) error {
	for j, c := range calls {
		where := fmt.Sprintf("messages[%d].tool_calls[%d]", at, j)
		switch {
		case c.ID == "":
			return fmt.Errorf("%s.id is missing", where)
		case open[c.ID]:
			return fmt.Errorf("%s.id %q is there twice", where, c.ID)
		case c.Type != "function":
			return fmt.Errorf("%s.type is %q, not function", where, c.Type)
		case !functionName.MatchString(c.Function.Name):
			return fmt.Errorf("%s.function.name %q is not one to 64 of a-z, A-Z, 0-9, _ and -", where, c.Function.Name)
		case !json.Valid([]byte(c.Function.Arguments)):
			return fmt.Errorf("%s.function.arguments is not JSON", where)
		}
		open[c.ID] = true
	}
	return nil
}

type contentKind int

const (
	contentNone contentKind = iota
	contentText
	contentOther
)

// contentOf reads a content, a string or parts.
func contentOf(raw json.RawMessage) (string, contentKind) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", contentNone
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s, contentText
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", contentOther
	}
	for _, p := range parts {
		s += p.Text
	}
	return s, contentText
}
