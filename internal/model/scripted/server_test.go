package scripted_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/model"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func start(t *testing.T, script string, record ...string) (*scripted.Server, *model.OpenAI) {
	t.Helper()
	s, err := scripted.Parse("test.yaml", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	cfg := scripted.Config{Script: s}
	if len(record) > 0 {
		cfg.Record = record[0]
	}
	server, err := cfg.Start()
	if err != nil {
		t.Fatal(err)
	}
	// Ports are used again, and rate gates stay: each server is an account of its own.
	client := model.New(model.Config{BaseURL: server.URL(), Key: t.Name()})
	t.Cleanup(func() {
		client.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server, client
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

var (
	backend = model.Caller{Key: domain.Key{Tenant: "main", Conversation: "01j"}, Member: "Bäck end", Run: "r1", Step: 2}
	hello   = model.Request{Model: "m", Messages: []model.Message{{Role: "user", Content: `the field is "display_name" & <more>`}}}
)

func wantCode(t *testing.T, err error, code string) *model.Error {
	t.Helper()
	e, ok := errors.AsType[*model.Error](err)
	if !ok || e.Code != code {
		t.Fatalf("error is %v, want code %s", err, code)
	}
	return e
}

func TestAnswer(t *testing.T) {
	server, client := start(t, `
rules:
  - member: '^Bäck end$'
    has: ['"role":"user","content":"the field is \\"(\w+)\\" & <more>"']
    capture: {key: 'the field is \\"(\w+)'}
    reasoning: 'I think of {{key}}, and that takes some time.'
    text: 'The field is {{key}}; 世界 is long enough for several pieces.'
    tools:
      - {name: file_write, args: {path: page.html, text: '<b>{{key}}</b>'}}
      - {name: task_list}
`)
	var pieces int
	reply, err := client.Call(within(t), backend, hello, func(string) { pieces++ })
	if err != nil {
		t.Fatal(err)
	}
	if want := "The field is display_name; 世界 is long enough for several pieces."; reply.Text != want || pieces < 3 {
		t.Errorf("text is %q in %d pieces, want %q", reply.Text, pieces, want)
	}
	if reply.Reasoning != "I think of display_name, and that takes some time." || reply.Finish != "tool_calls" {
		t.Errorf("reply is %+v", reply)
	}
	if c := reply.Calls; len(c) != 2 || c[0].GetId() != "call_r1_2_0" || c[0].GetName() != "file_write" ||
		c[0].GetArguments() != `{"path":"page.html","text":"<b>display_name</b>"}` || c[1].GetArguments() != "{}" {
		t.Errorf("calls are %v", c)
	}
	if u := reply.Usage; u.GetEstimated() || u.GetInputTokens() == 0 || u.GetOutputTokens() == 0 {
		t.Errorf("usage is %v", u)
	}
	got := server.Requests()
	body, _ := model.Encode(hello)
	if len(got) != 1 || got[0].Member != "Bäck end" || got[0].Run != "r1" || got[0].Step != "2" || got[0].Conversation != "01j" ||
		got[0].Rule != 1 || string(got[0].Body) != string(body) || reply.RequestHash == "" {
		t.Errorf("record is %+v", got)
	}
}

func TestNoRule(t *testing.T) {
	server, client := start(t, `
rules:
  - {member: Frontend, text: no}
  - {has: [never], text: no}
  - {has: ['the field'], times: 1, text: once}
`)
	if _, err := client.Call(within(t), backend, hello, nil); err != nil {
		t.Fatal(err)
	}
	_, err := client.Call(within(t), backend, hello, nil)
	e := wantCode(t, err, model.CodeRefused)
	if e.Transient || !strings.Contains(e.Why, `test.yaml: no rule matches member "Bäck end", step 2`) {
		t.Error(e)
	}
	if got := server.Requests()[1]; got.Rule != 0 || got.Status != 0 && got.Status != 400 || !strings.Contains(got.Refused, "no rule") {
		t.Errorf("record is %+v", got)
	}
}

func TestCaptureOfNothing(t *testing.T) {
	_, client := start(t, "rules:\n  - {capture: {key: 'nothing (\\w+)'}, text: '{{key}}'}\n")
	_, err := client.Call(within(t), backend, hello, nil)
	if e := wantCode(t, err, model.CodeRefused); !strings.Contains(e.Why, "rule 1 (line 2)") || !strings.Contains(e.Why, "capture key") {
		t.Error(e)
	}
}

// TestFaults are the failures that a script can make.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		rule, code string
		transient  bool
		retry      time.Duration
	}{
		"error":             {"{status: 503}", model.CodeServerError, true, 0},
		"rate":              {"{status: 429, retry_after: 7}", model.CodeRateLimited, true, 7 * time.Second},
		"quota":             {"{status: 429, code: insufficient_quota, text: pay}", model.CodeQuota, false, 0},
		"key":               {"{status: 401}", model.CodeKeyRefused, false, 0},
		"cut":               {"{text: 'a text of some length', cut: true}", model.CodeCut, true, 0},
		"reset":             {"{text: 'a text of some length', reset: true}", model.CodeCut, true, 0},
		"cut within a call": {"{tools: [{name: get, args: {text: 'a text of some length'}}], cut: true}", model.CodeCut, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := start(t, "rules:\n  - "+c.rule+"\n")
			_, err := client.Call(within(t), backend, hello, nil)
			if e := wantCode(t, err, c.code); e.Transient != c.transient || e.RetryAfter != c.retry {
				t.Error(e)
			}
			ended, err := server.WaitFor(within(t), func(r scripted.Request) bool { return r.Ended })
			if err != nil || ended.Gone || ended.Status == 0 {
				t.Errorf("record is %+v, %v", ended, err)
			}
		})
	}
	t.Run("empty", func(t *testing.T) {
		_, client := start(t, "rules:\n  - {text: ''}\n")
		if r, err := client.Call(within(t), backend, hello, nil); err != nil || r.Text != "" || r.Finish != "stop" {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("length", func(t *testing.T) {
		_, client := start(t, "rules:\n  - {text: half, tools: [{name: get}], finish: length}\n")
		r, err := client.Call(within(t), backend, hello, nil)
		if err != nil || r.Finish != "length" || len(r.Calls) != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestHold(t *testing.T) {
	server, client := start(t, "rules:\n  - {hold: gate, text: through}\n")
	done := make(chan error, 1)
	go func() {
		_, err := client.Call(context.WithoutCancel(t.Context()), backend, hello, nil)
		done <- err
	}()
	held, err := server.WaitHeld(within(t), "gate")
	if err != nil || held.N != 1 || held.Ended {
		t.Fatalf("%+v, %v", held, err)
	}
	select {
	case err := <-done:
		t.Fatalf("answered at the hold: %v", err)
	default:
	}
	server.Release("gate")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call(within(t), backend, hello, nil); err != nil {
		t.Errorf("an open hold: %v", err)
	}
	server.Release("gate") // once more is nothing
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := server.WaitHeld(ctx, "gate"); err == nil {
		t.Errorf("%+v is still held", r)
	}
}

// TestGone: the record says when a client went away.
func TestGone(t *testing.T) {
	server, client := start(t, `
rules:
  - {times: 1, hold: gate, text: never}
  - {delay_ms: 3600000, text: never}
`)
	for n := 1; n <= 2; n++ {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := client.Call(ctx, backend, hello, nil)
			done <- err
		}()
		if _, err := server.WaitFor(within(t), func(r scripted.Request) bool { return r.N == n }); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		r, err := server.WaitFor(within(t), func(r scripted.Request) bool { return r.N == n && r.Ended })
		if err != nil || !r.Gone || r.Status != 0 {
			t.Errorf("record is %+v, %v", r, err)
		}
	}
}

func TestWaitGivesUp(t *testing.T) {
	server, client := start(t, "rules:\n  - {text: a}\n")
	if _, err := client.Call(within(t), backend, hello, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := server.WaitFor(ctx, func(scripted.Request) bool { return false })
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "Bäck end r1.2 (rule 1)") {
		t.Error(err)
	}
	if _, err := server.WaitHeld(ctx, "gate"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestCloseEndsHolds: closing waits for nobody, and blames no client.
func TestCloseEndsHolds(t *testing.T) {
	server, client := start(t, "rules:\n  - {hold: gate, text: never}\n")
	done := make(chan error, 1)
	go func() {
		_, err := client.Call(context.WithoutCancel(t.Context()), backend, hello, nil)
		done <- err
	}()
	if _, err := server.WaitHeld(within(t), "gate"); err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	wantCode(t, <-done, model.CodeCut)
	if r := server.Requests()[0]; !r.Ended || r.Gone {
		t.Errorf("record is %+v", r)
	}
}

// TestRecord: every request is in the file before its answer is out.
func TestRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.jsonl")
	server, client := start(t, "rules:\n  - {name: greeting, times: 1, text: a}\n  - {hold: gate, text: b}\n", path)
	if _, err := client.Call(within(t), backend, hello, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := server.WaitFor(within(t), func(r scripted.Request) bool { return r.Ended }); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := client.Call(context.WithoutCancel(t.Context()), backend, hello, nil)
		done <- err
	}()
	if _, err := server.WaitHeld(within(t), "gate"); err != nil {
		t.Fatal(err)
	}
	got, err := scripted.ReadRecord(path) // as if the process had died now
	if err != nil || len(got) != 2 {
		t.Fatalf("%d requests, %v", len(got), err)
	}
	if a := got[0]; a.Rule != 1 || a.RuleName != "greeting" || !a.Ended || a.Status != 200 || a.Gone || a.Member != "Bäck end" {
		t.Errorf("first is %+v", a)
	}
	if b := got[1]; b.Rule != 2 || b.Ended || b.Header.Get("Rollcall-Step") != "2" || b.Header.Get("Authorization") != "removed" {
		t.Errorf("second is %+v", b)
	}
	server.Release("gate")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	read, err := scripted.ReadRecord(path)
	if err != nil {
		t.Fatal(err)
	}
	memory := server.Requests()
	for i := range memory {
		memory[i].Header = nil
		memory[i].Time = memory[i].Time.Round(0)
		read[i].Header = nil
	}
	if diff := cmp.Diff(memory, read); diff != "" {
		t.Errorf("file and memory differ (-memory +file):\n%s", diff)
	}

	// A line that a crash cut is no request.
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = file.WriteString(`{"type":"request","n":3,"bo`)
	_ = file.Close()
	if got, err := scripted.ReadRecord(path); err != nil || len(got) != 2 {
		t.Errorf("%d requests, %v", len(got), err)
	}
}

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(within(t), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// TestStrict: what OpenAI refuses is refused, with a reason.
func TestStrict(t *testing.T) {
	server, _ := start(t, "rules:\n  - {text: fine}\n")
	const (
		user  = `{"role":"user","content":"?"}`
		calls = `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"get","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"get","arguments":"{}"}}]}`
		a     = `{"role":"tool","tool_call_id":"a","content":"1"}`
		b     = `{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"1"}]}`
	)
	messages := func(m ...string) string { return `{"model":"m","messages":[` + strings.Join(m, ",") + `]}` }
	call := func(fields string) string {
		return messages(user, `{"role":"assistant","tool_calls":[{`+fields+`}]}`, a)
	}
	for name, c := range map[string]struct{ body, why string }{
		"no json":                   {`{`, "not a JSON object"},
		"two documents":             {messages(user) + `{}`, "not a JSON object"},
		"a list":                    {`[]`, "not a JSON object"},
		"other form":                {`{"model":1,"messages":[]}`, "another form"},
		"no model":                  {`{"messages":[` + user + `]}`, "model is missing"},
		"no messages":               {messages(), "messages is empty"},
		"unknown argument":          {`{"model":"m","messages":[` + user + `],"member":"x"}`, "unrecognized request argument: member"},
		"options alone":             {`{"model":"m","messages":[` + user + `],"stream_options":{"include_usage":true}}`, "only allowed with stream"},
		"unknown role":              {messages(`{"role":"boss","content":"x"}`), `"boss" is unknown`},
		"no content":                {messages(`{"role":"user"}`), "content is missing"},
		"content an object":         {messages(`{"role":"user","content":{}}`), "neither a string"},
		"assistant silent":          {messages(user, `{"role":"assistant","content":""}`), "needs content or tool_calls"},
		"result missing":            {messages(user, calls, a, user), `"b" has none`},
		"result missing at the end": {messages(user, calls, b), `"a" has none`},
		"user between":              {messages(user, calls, a, user, b), `"b" has none`},
		"result twice":              {messages(user, calls, a, a, b), `"a" is not open`},
		"result of nothing":         {messages(user, a), `"a" is not open`},
		"result later":              {messages(user, calls, a, b, user, a), `"a" is not open`},
		"result silent":             {messages(user, calls, `{"role":"tool","tool_call_id":"a"}`), "content is missing"},
		"result of nobody":          {messages(user, calls, `{"role":"tool","content":"x"}`), "tool_call_id is missing"},
		"calls of a user":           {messages(`{"role":"user","content":"x","tool_calls":[{"id":"a","type":"function","function":{"name":"get","arguments":"{}"}}]}`), "no tool_calls"},
		"call without id":           {call(`"type":"function","function":{"name":"get","arguments":"{}"}`), "id is missing"},
		"call without type":         {call(`"id":"a","function":{"name":"get","arguments":"{}"}`), `type is ""`},
		"call of no name":           {call(`"id":"a","type":"function","function":{"name":"","arguments":"{}"}`), `name "" is not`},
		"call of bad name":          {call(`"id":"a","type":"function","function":{"name":"a.b","arguments":"{}"}`), `name "a.b" is not`},
		"call of no json":           {call(`"id":"a","type":"function","function":{"name":"get","arguments":"{"}`), "arguments is not JSON"},
		"tool of no name":           {`{"model":"m","messages":[` + user + `],"tools":[{"type":"function","function":{}}]}`, `name "" is not`},
		"tool twice":                {`{"model":"m","messages":[` + user + `],"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"a"}}]}`, "is there twice"},
		"tool type":                 {`{"model":"m","messages":[` + user + `],"tools":[{"type":"x","function":{"name":"a"}}]}`, `type is "x"`},
		"tool schema":               {`{"model":"m","messages":[` + user + `],"tools":[{"type":"function","function":{"name":"a","parameters":[]}}]}`, "not a JSON schema"},
	} {
		status, text := post(t, server.URL()+"/chat/completions", c.body)
		var out struct{ Error struct{ Message string } }
		_ = json.Unmarshal([]byte(text), &out)
		if status != 400 || !strings.Contains(out.Error.Message, c.why) {
			t.Errorf("%s: HTTP %d, %q; want %q in it", name, status, out.Error.Message, c.why)
		}
	}
	for name, body := range map[string]string{
		"paired":     messages(user, calls, b, a, user),
		"two blocks": messages(user, calls, b, a, calls, a, b),
		"spaced":     `{"messages": [ {"content": [ {"type":"text","text":"?"} ], "role": "user"} ], "model": "m", "stream": false}`,
	} {
		if status, text := post(t, server.URL()+"/chat/completions", body); status != 200 || !strings.Contains(text, `"content":"fine"`) {
			t.Errorf("%s: HTTP %d, %s", name, status, text)
		}
	}
	if status, text := post(t, server.URL()+"/completions", "{}"); status != 404 || !strings.Contains(text, "not POST /v1/completions") {
		t.Errorf("another path: HTTP %d, %s", status, text)
	}
}

// TestWire looks at the stream itself.
func TestWire(t *testing.T) {
	server, _ := start(t, "rules:\n  - {text: 'hello there, how are you?', tools: [{name: get, args: {a: 1}}]}\n")
	_, text := post(t, server.URL()+"/chat/completions", `{"model":"m","messages":[{"role":"user","content":"?"}],"stream":true,"stream_options":{"include_usage":true}}`)
	var got []string
	for scan := bufio.NewScanner(strings.NewReader(text)); scan.Scan(); {
		if payload, ok := strings.CutPrefix(scan.Text(), "data: "); ok {
			_, payload, _ = strings.Cut(payload, `"choices":`)
			got = append(got, payload)
		}
	}
	want := []string{
		`[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`,
		`[{"index":0,"delta":{"content":"hello there, how"},"finish_reason":null}]}`,
		`[{"index":0,"delta":{"content":" are you?"},"finish_reason":null}]}`,
		`[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1_0","type":"function","function":{"name":"get","arguments":""}}]},"finish_reason":null}]}`,
		`[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}]},"finish_reason":null}]}`,
		`[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
		`[],"usage":{"prompt_tokens":8,"completion_tokens":9,"total_tokens":17}}`,
		``,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stream (-want +got):\n%s", diff)
	}
}

func TestStartFails(t *testing.T) {
	s, err := scripted.Parse("x.yaml", []byte("rules:\n  - text: a\n"))
	if err != nil {
		t.Fatal(err)
	}
	first, err := scripted.Start(s, "")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := scripted.Start(s, strings.TrimSuffix(strings.TrimPrefix(first.URL(), "http://"), "/v1")); err == nil {
		t.Error("two servers at one address")
	}
	if _, err := (scripted.Config{Script: s, Record: t.TempDir()}).Start(); err == nil {
		t.Error("a folder for a record")
	}
	if _, err := scripted.Start(nil, ""); err == nil {
		t.Error("no script")
	}
}

// TestToolLoop: the history that a client sends back is one that the server takes.
func TestToolLoop(t *testing.T) {
	server, client := start(t, `
rules:
  - {lacks: ['"role":"tool"'], tools: [{name: 'no such tool', args: {}}, {name: get}]}
  - {has: ['"role":"tool","content":"(no output)"'], text: done}
  - {text: other}
`)
	first, err := client.Call(within(t), backend, hello, nil)
	if err != nil {
		t.Fatal(err)
	}
	req := hello
	req.Messages = append(req.Messages[:1:1], model.Message{Role: "assistant", Calls: first.Calls})
	for _, c := range first.Calls {
		req.Messages = append(req.Messages, model.Message{Role: "tool", CallID: c.GetId()})
	}
	from := backend
	from.Step++
	second, err := client.Call(within(t), from, req, nil)
	if err != nil || second.Text != "other" {
		t.Errorf("%+v, %v", second, err)
	}
	if got := server.Requests()[1].Messages; !strings.Contains(got, `"role":"tool","content":"(no output)"`) {
		t.Errorf("messages are %s", got)
	}
}

// Raw arguments are sent as they are written: a model may answer no JSON.
func TestRawArguments(t *testing.T) {
	_, client := start(t, `
rules:
  - tools: [{name: task_list, raw: '{"to": "le'}, {name: task_get, raw: ''}]
`)
	req := hello
	req.Tools = []*rollcallv1.ToolDefinition{{Name: "task_list", Schema: `{"type":"object"}`}, {Name: "task_get", Schema: `{"type":"object"}`}}
	reply, err := client.Call(within(t), backend, req, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(reply.Calls) != 2 || reply.Calls[0].GetArguments() != `{"to": "le` || reply.Calls[1].GetName() != "task_get" {
		t.Errorf("the calls are %v", reply.Calls)
	}
	if _, err := scripted.Parse("test.yaml", []byte("rules:\n  - tools: [{name: x, args: {}, raw: '{'}]\n")); err == nil || !strings.Contains(err.Error(), "both args and raw") {
		t.Errorf("args and raw together: %v", err)
	}
}
