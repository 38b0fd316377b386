package scripted

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"
)

// pieceSize is how many bytes of text or arguments one chunk carries, about.
const pieceSize = 16

// A reply's JSON, whole or in chunks.
type (
	wireReply struct {
		ID      string       `json:"id"`
		Object  string       `json:"object"`
		Created int64        `json:"created"`
		Model   string       `json:"model"`
		Choices []wireChoice `json:"choices"`
		Usage   *wireUsage   `json:"usage,omitempty"`
	}
	wireChoice struct {
		Index   int        `json:"index"`
		Delta   *wireDelta `json:"delta,omitempty"`
		Message *wireDelta `json:"message,omitempty"`
		Finish  *string    `json:"finish_reason"`
	}
	wireDelta struct {
		Role      string     `json:"role,omitempty"`
		Content   *string    `json:"content,omitempty"`
		Reasoning string     `json:"reasoning_content,omitempty"`
		ToolCalls []wireCall `json:"tool_calls,omitempty"`
	}
	wireUsage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
	wireFailure struct {
		Error wireProblem `json:"error"`
	}
	wireProblem struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Slug    string `json:"code,omitempty"`
	}
)

// failure is an error in the API's form. Its code is the API's, not one of
// Rollcall's own.
func failure(message, slug string) wireFailure {
	return wireFailure{wireProblem{Message: message, Type: "invalid_request_error", Slug: slug}}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	text, err := encode(v)
	if err != nil {
		status, text = http.StatusInternalServerError, `{"error":{"message":"the answer cannot be encoded"}}`
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // a client that went away is noted by the caller
}

// write gives the answer, faults and all, and returns its status. gone is true
// if the client went away before the last of it.
func (r rule) write(ctx context.Context, w http.ResponseWriter, req wireRequest, ans answer, n int) (status int, gone bool) {
	if r.Status != 0 {
		message := ans.text
		if message == "" {
			message = "a failure of the script"
		}
		if r.RetryAfter != "" {
			w.Header().Set("Retry-After", r.RetryAfter)
		}
		writeJSON(w, int(r.Status), failure(message, r.Code))
		return int(r.Status), false
	}
	reply := wireReply{ID: "chatcmpl-" + strconv.Itoa(n), Created: time.Now().Unix(), Model: req.Model}
	used := usageOf(req, ans)
	if req.Stream {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-cache")
		gone = r.stream(ctx, w, reply, req, ans, used)
	} else {
		r.whole(w, reply, ans, used)
	}
	return http.StatusOK, gone
}

// whole is the answer to a request that is not to be streamed.
func (r rule) whole(w http.ResponseWriter, reply wireReply, ans answer, used wireUsage) {
	reply.Object, reply.Usage = "chat.completion", &used
	reply.Choices = []wireChoice{{
		Message: &wireDelta{Role: "assistant", Content: &ans.text, Reasoning: ans.reasoning, ToolCalls: ans.calls},
		Finish:  &ans.finish,
	}}
	text, _ := encode(reply) // strings and numbers always encode
	if r.Cut || r.Reset {
		text = text[:len(text)/2]
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, text)
	flush(w)
}

// stream sends small chunks, the finish reason in one of its own, then usage
// if it was asked for. It reports whether the client went away meanwhile.
func (r rule) stream(ctx context.Context, w http.ResponseWriter, reply wireReply, req wireRequest, ans answer, used wireUsage) bool {
	reply.Object = "chat.completion.chunk"
	deltas := deltasOf(ans)
	if r.Cut || r.Reset {
		deltas = deltas[:(len(deltas)+1)/2]
	}
	send := func(choices []wireChoice, usage *wireUsage) {
		reply.Choices, reply.Usage = choices, usage
		text, _ := encode(reply) // strings and numbers always encode
		_, _ = io.WriteString(w, "data: "+text+"\n\n")
	}
	for _, d := range deltas {
		send([]wireChoice{{Delta: &d}}, nil)
		if d.ToolCalls == nil { // words are read while they come, calls are not
			flush(w)
		}
	}
	flush(w)
	if r.Cut || r.Reset {
		return ctx.Err() != nil
	}
	send([]wireChoice{{Delta: &wireDelta{}, Finish: &ans.finish}}, nil)
	if req.StreamOptions != nil && req.StreamOptions.IncludeUsage {
		send([]wireChoice{}, &used)
	}
	flush(w)
	gone := ctx.Err() != nil
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
	flush(w)
	return gone
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

func deltasOf(ans answer) []wireDelta {
	empty := ""
	deltas := []wireDelta{{Role: "assistant", Content: &empty}}
	for _, p := range pieces(ans.reasoning) {
		deltas = append(deltas, wireDelta{Reasoning: p})
	}
	for _, p := range pieces(ans.text) {
		deltas = append(deltas, wireDelta{Content: &p})
	}
	for i, c := range ans.calls {
		arguments := c.Function.Arguments
		c.Index, c.Function.Arguments = &i, ""
		deltas = append(deltas, wireDelta{ToolCalls: []wireCall{c}})
		for _, p := range pieces(arguments) {
			deltas = append(deltas, wireDelta{ToolCalls: []wireCall{{Index: &i, Function: wireFunction{Arguments: p}}}})
		}
	}
	return deltas
}

// pieces cuts a text between runes.
func pieces(s string) []string {
	var out []string
	for s != "" {
		n := min(pieceSize, len(s))
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n++
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

// usageOf is a rough count, four bytes a token, always the same for the same
// request and answer.
func usageOf(req wireRequest, ans answer) wireUsage {
	messages, _ := encode(req.Messages)
	size := len(ans.text) + len(ans.reasoning)
	for _, c := range ans.calls {
		size += len(c.Function.Name) + len(c.Function.Arguments)
	}
	u := wireUsage{Prompt: (len(messages) + 3) / 4, Completion: (size + 3) / 4}
	u.Total = u.Prompt + u.Completion
	return u
}
