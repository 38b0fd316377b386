package model

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

var afterTools = Request{
	Model: "m",
	Messages: []Message{
		{Role: "system", Content: "You answer."},
		{Role: "user", Content: "<team-mailbox> & \"quotes\"\n\u2028 é"},
		{Role: "assistant", Calls: []*rollcallv1.ToolCall{{Id: "old", Name: "get", Arguments: `{"a":1}`}}},
		{Role: "tool", CallID: "old"},
	},
	Tools: tools,
}

func TestEncode(t *testing.T) {
	got, err := Encode(afterTools)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"model":"m","messages":[` +
		`{"role":"system","content":"You answer."},` +
		`{"role":"user","content":"<team-mailbox> & \"quotes\"\n\u2028 é"},` +
		`{"role":"assistant","content":"","tool_calls":[{"id":"old","type":"function","function":{"name":"get","arguments":"{\"a\":1}"}}]},` +
		`{"role":"tool","content":"(no output)","tool_call_id":"old"}],` +
		`"tools":[{"type":"function","function":{"name":"get","description":"gets","parameters":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}},` +
		`{"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}],` +
		`"stream":true,"stream_options":{"include_usage":true}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

// TestEncodeIsWhatIsSent compares the bytes that a server receives.
func TestEncodeIsWhatIsSent(t *testing.T) {
	var bodies [][]byte
	var headers []http.Header
	refuse := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies, headers = append(bodies, body), append(headers, r.Header)
		if r.URL.Path != "/v1/chat/completions" {
			t.Errorf("path is %s", r.URL.Path)
		}
		if refuse && bytes.Contains(body, []byte("stream_options")) {
			raw(400, "application/json", `{"error":{"message":"Unrecognized request argument supplied: stream_options"}}`)(w, r)
			return
		}
		stream(hi, stop)(w, r)
	}))
	defer server.Close()
	client := New(Config{BaseURL: " " + server.URL + "/v1/chat/completions/ ", Key: "sk-test-123456"})
	defer client.Close()
	from := caller
	from.Member = "Zoë / Ünal"

	_, err := client.Call(t.Context(), from, afterTools, nil)
	e := wantError(t, err, CodeRefused)
	if !e.Transient {
		t.Errorf("the refusal of stream_options must be tried again: %v", e)
	}
	full, _ := Encode(afterTools)
	if !bytes.Equal(bodies[0], full) || e.RequestHash != hashOf(full) {
		t.Errorf("sent %s, encoded %s", bodies[0], full)
	}

	r, err := client.Call(t.Context(), from, afterTools, nil)
	if err != nil {
		t.Fatal(err)
	}
	plain := afterTools
	plain.Plain = true
	short, _ := Encode(plain)
	if !bytes.Equal(bodies[1], short) || r.RequestHash != hashOf(short) || bytes.Contains(short, []byte("stream_options")) {
		t.Errorf("sent %s, encoded %s", bodies[1], short)
	}
	for _, hash := range []string{e.RequestHash, r.RequestHash} {
		if !matches(t, afterTools, hash) || matches(t, question, hash) {
			t.Errorf("Hashes is wrong about %s", hash)
		}
	}
	for name, want := range map[string]string{
		"Rollcall-Conversation": "01j", "Rollcall-Member": "Zo%C3%AB%20%2F%20%C3%9Cnal", "Rollcall-Run": "r1", "Rollcall-Step": "2",
		"Authorization": "Bearer sk-test-123456", "Content-Type": "application/json",
	} {
		if got := headers[1].Get(name); got != want {
			t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
}

// TestEncodeIsStrict is what every server refuses: better here, with a reason.
func TestEncodeIsStrict(t *testing.T) {
	calls := func(ids ...string) Message {
		m := Message{Role: "assistant"}
		for _, id := range ids {
			m.Calls = append(m.Calls, &rollcallv1.ToolCall{Id: id, Name: "get", Arguments: "{}"})
		}
		return m
	}
	user, result := Message{Role: "user", Content: "?"}, func(id string) Message { return Message{Role: "tool", CallID: id, Content: "1"} }
	for name, messages := range map[string][]Message{
		"no message":             nil,
		"only empty":             {{Role: "system"}},
		"open call":              {user, calls("a")},
		"one of two open":        {user, calls("a", "b"), result("a"), user},
		"user between":           {user, calls("a"), user, result("a")},
		"result of nothing":      {user, result("a")},
		"result twice":           {user, calls("a"), result("a"), result("a")},
		"result of earlier call": {user, calls("a"), result("a"), user, result("a")},
		"id twice":               {user, calls("a", "a"), result("a")},
		"id empty":               {user, calls(""), result("")},
		"calls of a user":        {{Role: "user", Calls: calls("a").Calls}, result("a")},
	} {
		if body, err := Encode(Request{Model: "m", Messages: messages}); err == nil {
			t.Errorf("%s: encoded as %s", name, body)
		}
	}
	if _, err := Encode(Request{Messages: []Message{user}}); err == nil {
		t.Error("a request without a model was encoded")
	}
	if _, err := Encode(Request{Model: "m", Messages: []Message{user}, Tools: []*rollcallv1.ToolDefinition{{Name: "x", Schema: "{"}}}); err == nil {
		t.Error("a schema that is not JSON was encoded")
	}
	if _, err := Encode(Request{Model: "m", Messages: []Message{user, calls("a", "b"), result("b"), result("a"), calls("a"), result("a")}}); err != nil {
		t.Errorf("a paired history: %v", err)
	}
}

// TestEncodeMends is what strict servers refuse in a history and the model
// would be asked again and again for.
func TestEncodeMends(t *testing.T) {
	encoded := func(model string, messages ...Message) []wireMessage {
		t.Helper()
		body, err := Encode(Request{Model: model, Messages: messages})
		if err != nil {
			t.Fatal(err)
		}
		var out wireRequest
		if err := json.Unmarshal(body, &out); err != nil {
			t.Fatal(err)
		}
		return out.Messages
	}
	history := []Message{
		{Role: "user"},
		{Role: "assistant", Content: " "},
		{Role: "user", Content: "go"},
		{Role: "assistant", Reasoning: "hm", Calls: []*rollcallv1.ToolCall{
			{Id: "call_1", Name: "no such tool!", Arguments: `{"a":`},
			{Id: "call_2", Name: "", Arguments: ""},
			{Id: "call_3", Name: strings.Repeat("n", 80), Arguments: `[1]`},
			{Id: "call_4", Name: "get", Arguments: `{"a":"\ud83d"}`, Extra: `{"x":"\udc00"}`},
			{Id: "call_5", Name: "get", Arguments: `{"a":"\ud83d\ude00"}`, Extra: `{"x":"\\udc00"}`},
		}},
		{Role: "tool", CallID: "call_1", Content: "bad"},
		{Role: "tool", CallID: "call_2", Content: "\n"},
		{Role: "tool", CallID: "call_3", Content: "ok"},
		{Role: "tool", CallID: "call_4", Content: "ok"},
		{Role: "tool", CallID: "call_5", Content: "ok"},
		{Role: "user", Content: "mail"},
	}
	got := encoded("m", history...)
	if got[0].Content != noWords || got[1].Content != noWords || got[3].Content != "" || got[5].Content != noOutput {
		t.Errorf("empty contents became %+v", got)
	}
	c := got[3].ToolCalls
	if c[0].Function != (wireFunction{"no_such_tool_", `{"invalid_arguments":"{\"a\":"}`}) ||
		c[1].Function != (wireFunction{"unnamed", "{}"}) ||
		c[2].Function != (wireFunction{strings.Repeat("n", 64), `{"invalid_arguments":"[1]"}`}) ||
		c[3].Function != (wireFunction{"get", `{"invalid_arguments":"{\"a\":\"\\ud83d\"}"}`}) || c[3].Extra != nil ||
		c[4].Function != (wireFunction{"get", `{"a":"\ud83d\ude00"}`}) || string(c[4].Extra) != `{"x":"\\udc00"}` {
		t.Errorf("calls became %+v", c)
	}
	if got[3].Reasoning != "" {
		t.Error("reasoning was sent to a model that does not ask for it")
	}

	mistral := encoded("mistral-large", history...)
	if len(mistral) != len(history)+1 || mistral[9].Role != "assistant" || mistral[10].Role != "user" {
		t.Errorf("a user message follows a tool result: %+v", mistral)
	}
	for i, c := range mistral[3].ToolCalls {
		if !shortID.MatchString(c.ID) || mistral[4+i].ToolCallID != c.ID {
			t.Errorf("call id %q is not nine letters and digits, or its result is lost", c.ID)
		}
	}

	if got := encoded("deepseek-reasoner", history[:9]...); got[3].Reasoning != "hm" {
		t.Error("reasoning of the open turn was not sent back")
	}
	if got := encoded("deepseek-reasoner", history...); got[3].Reasoning != "" {
		t.Error("reasoning of an earlier turn was sent back")
	}
}

func matches(t *testing.T, req Request, hash string) bool {
	t.Helper()
	hashes, err := Hashes(req)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(hashes, hash)
}
