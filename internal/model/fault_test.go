package model

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestFaults holds the client to the ways in which servers say no.
func TestFaults(t *testing.T) {
	body := func(message string) string { return `{"error":{"message":"` + message + `"}}` }
	for name, c := range map[string]struct {
		answer    http.HandlerFunc
		code      string
		transient bool
		says      string
		retry     time.Duration
	}{
		"400":                    {answer: raw(400, "application/json", body("bad field")), code: CodeRefused, says: "HTTP 400 Bad Request: bad field"},
		"400 pairing":            {answer: raw(400, "application/json", body("An assistant message with 'tool_calls' must be followed by tool messages")), code: CodeRefused, says: "must be followed"},
		"400 tool_use_failed":    {answer: raw(400, "application/json", `{"error":{"message":"Failed to call a function.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=get>"}}`), code: CodeProtocol, transient: true, says: "the model wrote: <function=get>"},
		"400 key of gemini":      {answer: raw(400, "application/json", `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`), code: CodeKeyRefused, says: "API key not valid"},
		"400 model":              {answer: raw(400, "application/json", `{"error":{"message":"The model x does not exist"}}`), code: CodeRefused, says: "does not exist"},
		"400 detail":             {answer: raw(400, "application/json", `{"detail":[{"loc":["body"],"msg":"field required"}]}`), code: CodeRefused, says: "field required"},
		"422 detail":             {answer: raw(422, "application/json", `{"detail":"unexpected"}`), code: CodeRefused, says: "unexpected"},
		"400 error a string":     {answer: raw(400, "application/json", `{"error":"plainly no"}`), code: CodeRefused, says: "plainly no"},
		"400 error a kind":       {answer: raw(400, "application/json", `{"statusCode":400,"error":"Bad Request","message":"body/tools must be an array"}`), code: CodeRefused, says: "Bad Request; body/tools must be an array"},
		"401 error a kind":       {answer: raw(401, "application/json", `{"error":"invalid_token","error_description":"The token has expired"}`), code: CodeKeyRefused, says: "invalid_token; The token has expired"},
		"400 object error":       {answer: raw(400, "application/json", `{"object":"error","message":"no","type":"BadRequestError","code":400}`), code: CodeRefused, says: ": no"},
		"400 message a list":     {answer: raw(400, "application/json", `{"error":{"message":["one","two"]}}`), code: CodeRefused, says: "one; two"},
		"400 empty":              {answer: raw(400, "", ""), code: CodeRefused, says: "HTTP 400"},
		"400 of upstream":        {answer: raw(400, "application/json", `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"upstream words"}}}`), code: CodeRefused, says: "upstream words"},
		"context openai":         {answer: raw(400, "application/json", `{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}`), code: CodeContextTooLong, says: "8192"},
		"context anthropic":      {answer: raw(400, "application/json", body("prompt is too long: 210000 tokens > 200000 maximum")), code: CodeContextTooLong, says: "210000"},
		"context gemini":         {answer: raw(400, "application/json", `[{"error":{"message":"The input token count (1100000) exceeds the maximum number of tokens allowed (1048576)."}}]`), code: CodeContextTooLong, says: "1100000"},
		"context llama.cpp":      {answer: raw(500, "application/json", body("the request exceeds the available context size")), code: CodeContextTooLong, says: "context size"},
		"context vllm":           {answer: raw(400, "application/json", `{"object":"error","message":"Please reduce the length of the messages"}`), code: CodeContextTooLong, says: "reduce"},
		"context groq":           {answer: raw(413, "application/json", `{"error":{"message":"Request too large for model x on tokens per minute (TPM)","code":"rate_limit_exceeded"}}`), code: CodeContextTooLong, says: "TPM"},
		"413 page":               {answer: raw(413, "text/html", "<html><title>413 Request Entity Too Large</title></html>"), code: CodeContextTooLong, says: `an HTML page titled "413 Request Entity Too Large"`},
		"401":                    {answer: raw(401, "application/json", body("Incorrect API key provided: sk-test-123456.")), code: CodeKeyRefused, says: "[key removed]"},
		"401 repeats the header": {answer: raw(401, "text/plain", "bad token Bearer sk-test-123456"), code: CodeKeyRefused, says: "bad token Bearer [key removed]"},
		"403":                    {answer: raw(403, "", ""), code: CodeKeyRefused},
		"402":                    {answer: raw(402, "application/json", body("Insufficient Balance")), code: CodeQuota},
		"404":                    {answer: raw(404, "application/json", body("no such model")), code: CodeRefused, says: "no such model"},
		"404 page":               {answer: raw(404, "text/html", "<!doctype html><body><h1>Not  found</h1></body>"), code: CodeRefused, says: `reads "Not found"`},
		"405":                    {answer: raw(405, "", ""), code: CodeRefused},
		"408":                    {answer: raw(408, "", ""), code: CodeTimeout, transient: true},
		"308":                    {answer: raw(308, "", "", "Location", "https://elsewhere.example/v1"), code: CodeRefused, says: "to https://elsewhere.example/v1"},
		"302":                    {answer: raw(302, "", "", "Location", "/login"), code: CodeRefused, says: "to /login"},
		"204":                    {answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, code: CodeServerError, transient: true},
		"429":                    {answer: raw(429, "application/json", body("slow down")), code: CodeRateLimited, transient: true},
		"429 seconds":            {answer: raw(429, "", "", "Retry-After", "7"), code: CodeRateLimited, transient: true, retry: 7 * time.Second},
		"429 fraction":           {answer: raw(429, "", "", "Retry-After", "1.5"), code: CodeRateLimited, transient: true, retry: 1500 * time.Millisecond},
		"429 date":               {answer: raw(429, "", "", "Date", "Wed, 21 Oct 2026 07:28:00 GMT", "Retry-After", "Wed, 21 Oct 2026 07:28:07 GMT"), code: CodeRateLimited, transient: true, retry: 7 * time.Second},
		"429 date gone":          {answer: raw(429, "", "", "Date", "Wed, 21 Oct 2026 07:28:00 GMT", "Retry-After", "Wed, 21 Oct 2026 07:00:00 GMT"), code: CodeRateLimited, transient: true},
		"429 zero":               {answer: raw(429, "", "", "Retry-After", "0"), code: CodeRateLimited, transient: true},
		"429 nonsense":           {answer: raw(429, "", "", "Retry-After", "soon"), code: CodeRateLimited, transient: true},
		"429 milliseconds":       {answer: raw(429, "", "", "Retry-After-Ms", "250", "Retry-After", "9"), code: CodeRateLimited, transient: true, retry: 250 * time.Millisecond},
		"429 reset":              {answer: raw(429, "", "", "X-RateLimit-Remaining-Tokens", "0", "X-RateLimit-Reset-Tokens", "6m0s"), code: CodeRateLimited, transient: true, retry: 6 * time.Minute},
		"429 in words":           {answer: raw(429, "application/json", body("Rate limit reached. Please try again in 1m2.5s.")), code: CodeRateLimited, transient: true, retry: 62500 * time.Millisecond},
		"429 quota":              {answer: raw(429, "application/json", `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}`), code: CodeQuota},
		"429 quota of a minute":  {answer: raw(429, "application/json", `[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay": "34s"}]}}]`), code: CodeRateLimited, transient: true, retry: 34 * time.Second},
		"500":                    {answer: raw(500, "application/json", body("oops")), code: CodeServerError, transient: true},
		"502 page":               {answer: raw(502, "text/html", "<html><head><title>502 Bad Gateway</title></head></html>"), code: CodeServerError, transient: true, says: `titled "502 Bad Gateway"`},
		"503 with a wish":        {answer: raw(503, "", "", "Retry-After", "3"), code: CodeServerError, transient: true, retry: 3 * time.Second},
		"529":                    {answer: raw(529, "application/json", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), code: CodeServerError, transient: true, says: "Overloaded"},

		"200 page":             {answer: raw(200, "text/html", "<html><head><title>Sign in</title></head></html>"), code: CodeProtocol, says: "Sign in"},
		"200 error":            {answer: raw(200, "application/json", `{"error":{"message":"Provider returned error","code":502}}`), code: CodeServerError, transient: true, says: "Provider"},
		"200 error in a list":  {answer: raw(200, "application/json", `[{"error":{"message":"no","code":400}}]`), code: CodeRefused},
		"200 error with 429":   {answer: raw(200, "application/json", `{"error":{"message":"Rate limited upstream","code":429}}`), code: CodeRateLimited, transient: true},
		"200 other json":       {answer: raw(200, "application/json", `{"status":"ok"}`), code: CodeProtocol, transient: true, says: `{\"status\":\"ok\"}`},
		"200 empty":            {answer: raw(200, "text/event-stream", ""), code: CodeProtocol, transient: true, says: "it is empty"},
		"200 text":             {answer: raw(200, "text/plain", "upstream timed out"), code: CodeProtocol, transient: true, says: "upstream timed out"},
		"200 half a json":      {answer: raw(200, "application/json", `{"choices":[{"mess`), code: CodeCut, transient: true},
		"200 broken json":      {answer: raw(200, "application/json", `{"choices":[}`), code: CodeProtocol, transient: true},
		"only comments":        {answer: raw(200, "text/event-stream", ": wait\n\n: wait\n\n"), code: CodeProtocol, transient: true},
		"only done":            {answer: stream(done), code: CodeProtocol, transient: true},
		"done without finish":  {answer: stream(hi, done), code: CodeCut, transient: true},
		"end without finish":   {answer: stream(hi), code: CodeCut, transient: true},
		"finish empty":         {answer: stream(hi, finish("")), code: CodeCut, transient: true},
		"finish taken back":    {answer: stream(deltaOf(`{"content":"a"}`, "stop"), hi), code: CodeCut, transient: true},
		"finish error":         {answer: stream(hi, finish("error")), code: CodeServerError, transient: true},
		"finish of deepseek":   {answer: stream(hi, finish("insufficient_system_resource")), code: CodeServerError, transient: true},
		"an event no json":     {answer: stream(hi, "{oops"), code: CodeProtocol, transient: true, says: "{oops"},
		"choices no list":      {answer: stream(`{"choices":"x"}`), code: CodeProtocol, transient: true},
		"error first":          {answer: stream(`{"error":{"message":"oops","code":500}}`), code: CodeServerError, transient: true, says: "oops"},
		"error in the middle":  {answer: stream(hi, `{"error":{"message":"oops"}}`, stop), code: CodeServerError, transient: true, says: "oops"},
		"error after a remark": {answer: raw(200, "text/event-stream", events(hi)+": x\n\nevent: error\ndata: {\"error\":{\"message\":\"oops\"}}\n\n"), code: CodeServerError, transient: true, says: "oops"},
		"error with a space":   {answer: stream(hi, `{ "error" : { "message" : "oops" } }`), code: CodeServerError, transient: true, says: "oops"},
		"error as text":        {answer: stream(hi, `{"error":"oops"}`), code: CodeServerError, transient: true, says: "oops"},
		"error as a list":      {answer: stream(hi, `[{"error":{"message":"oops"}}]`), code: CodeProtocol, transient: true, says: "oops"},
		"error of vllm":        {answer: stream(hi, `{"object":"error","message":"oops","code":500}`), code: CodeServerError, transient: true, says: "oops"},
		"error of openrouter":  {answer: stream(hi, `{"id":"x","provider":"p","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502,"message":"oops"}}`), code: CodeServerError, transient: true, says: "oops"},
		"error in a choice":    {answer: stream(hi, `{"choices":[{"delta":{},"error":{"message":"oops"},"finish_reason":"error"}]}`), code: CodeServerError, transient: true, says: "oops"},
		"error a kind":         {answer: stream(hi, `{"error":"TypeError","message":"no length of undefined","status":500}`), code: CodeServerError, transient: true, says: "TypeError; no length of undefined"},
		"error as detail":      {answer: stream(hi, `{"detail":"oops"}`), code: CodeServerError, transient: true, says: "oops"},
		"event: error":         {answer: raw(200, "text/event-stream", events(hi)+"event: error\ndata: oops\n\n"), code: CodeServerError, transient: true, says: "oops"},
		"quota in the stream":  {answer: stream(`{"error":{"message":"no","code":"insufficient_quota"}}`), code: CodeQuota},
		"context in a stream":  {answer: stream(`{"error":{"message":"no","code":"context_length_exceeded"}}`), code: CodeContextTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ask(t, stub(t, Config{Key: "sk-test-123456"}, c.answer))
			e := wantError(t, err, c.code)
			if e.Transient != c.transient {
				t.Errorf("transient is %v: %v", e.Transient, e)
			}
			if !strings.Contains(e.Why, c.says) {
				t.Errorf("why is %q, want %q in it", e.Why, c.says)
			}
			if e.RetryAfter != c.retry {
				t.Errorf("retry after %v, want %v", e.RetryAfter, c.retry)
			}
			if strings.Contains(e.Error(), "sk-test") {
				t.Errorf("the key is in the error: %v", e)
			}
			if e.RequestHash == "" {
				t.Error("the error does not say what was sent")
			}
		})
	}
}

func TestAddressFaults(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := "http://" + listener.Addr().String()
	_ = listener.Close()
	secure := httptest.NewUnstartedServer(stream(hi, stop))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewServer(stream(hi, stop))
	defer plain.Close()
	for name, c := range map[string]struct {
		url, code string
		transient bool
	}{
		"refused":        {refused, CodeUnreachable, true},
		"unknown name":   {"http://no-such-host.invalid/v1", CodeUnreachable, true},
		"no scheme":      {"api.example/v1", CodeRefused, false},
		"other scheme":   {"ftp://api.example/v1", CodeRefused, false},
		"no certificate": {secure.URL, CodeUnreachable, false},
		"no https":       {strings.Replace(plain.URL, "http", "https", 1), CodeUnreachable, false},
		"with password":  {strings.Replace(refused, "http://", "http://me:hunter22@", 1), CodeUnreachable, true},
	} {
		t.Run(name, func(t *testing.T) {
			client := New(Config{BaseURL: c.url, Total: 20 * time.Second})
			defer client.Close()
			_, err := ask(t, client)
			if e := wantError(t, err, c.code); e.Transient != c.transient || strings.Contains(e.Error(), "hunter22") {
				t.Errorf("transient is %v: %v", e.Transient, e)
			}
		})
	}
}

func TestNoKey(t *testing.T) {
	var sent []string
	client := stub(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Values("Authorization")
		w.WriteHeader(401)
	})
	_, err := ask(t, client)
	if e := wantError(t, err, CodeKeyRefused); !strings.Contains(e.Try, "OPENAI_API_KEY") || sent != nil {
		t.Errorf("%v; sent %q", e, sent)
	}
}

// TestBrokenOff cuts, and resets, an answer after every byte. It is complete
// exactly if the finish reason had come.
func TestBrokenOff(t *testing.T) {
	text := events(piece(`{"index":0,"id":"c1","function":{"name":"get","arguments":"{\"a\":1}"}}`), finish("tool_calls"), usageChunk, done)
	whole := strings.Index(text, `"tool_calls"}]}`) + len(`"tool_calls"}]}`)
	for _, reset := range []bool{false, true} {
		var at int
		client := stub(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, text[:at])
			w.(http.Flusher).Flush()
			if reset {
				panic(http.ErrAbortHandler)
			}
		})
		for at = range len(text) + 1 {
			r, err := ask(t, client)
			complete := at >= whole
			if complete != (err == nil) || complete && len(r.Calls) != 1 {
				t.Fatalf("after %d of %d bytes, reset %v: %+v, %v", at, len(text), reset, r, err)
			}
			if err == nil {
				continue
			}
			e, ok := errors.AsType[*Error](err)
			if !ok || !e.Transient || e.Code != CodeCut && e.Code != CodeProtocol {
				t.Fatalf("after %d of %d bytes, reset %v: %v", at, len(text), reset, err)
			}
		}
	}
}

// TestSplitEverywhere delivers an answer in two writes, split at every byte.
func TestSplitEverywhere(t *testing.T) {
	text := "\ufeff: x\r\n\r\n" + strings.ReplaceAll(events(deltaOf(`{"content":"é😀"}`), stop, usageChunk, done), "\n", "\r\n")
	for at := range len(text) + 1 {
		n := newNormaliser(testExchange(), io.NopCloser(io.MultiReader(strings.NewReader(text[:at]), strings.NewReader(text[at:]))), 1<<20)
		got, err := io.ReadAll(n)
		n.x.watch.stop()
		want := "data: {\"model\":\"\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"é😀\"},\"finish_reason\":\"\"}]}\n\n"
		if err != nil || !strings.HasPrefix(string(got), want) || !strings.HasSuffix(string(got), "data: [DONE]\n\n") {
			t.Fatalf("split at %d: %q, %v", at, got, err)
		}
	}
}

func testExchange() *exchange {
	return &exchange{watch: newWatch(func(error) {}, time.Hour, time.Hour), extras: map[int]string{}}
}

// TestOneConnection: an answer is read to its end, so that the next request
// needs no new connection.
func TestOneConnection(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"stream": stream(hi, stop, usageChunk, done), "no done": stream(hi, stop), "json": raw(200, "application/json", `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`),
		"refusal": raw(500, "", "no"),
	} {
		var connections atomic.Int64
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			answer(w, r)
		}))
		server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				connections.Add(1)
			}
		}
		server.Start()
		client := New(Config{BaseURL: server.URL, Key: t.Name() + name})
		for range 5 {
			if _, err := ask(t, client); (err == nil) != (name != "refusal") {
				t.Errorf("%s: %v", name, err)
			}
		}
		client.Close()
		server.Close()
		if n := connections.Load(); n != 1 {
			t.Errorf("%s: %d connections for 5 requests", name, n)
		}
	}
}

func TestMaxReply(t *testing.T) {
	_, err := ask(t, stub(t, Config{MaxReply: 10_000}, stream(deltaOf(`{"content":"`+strings.Repeat("x", 20_000)+`"}`), stop)))
	if e := wantError(t, err, CodeProtocol); e.Transient || !strings.Contains(e.Error(), "too long") {
		t.Error(e)
	}
}

func TestWithout(t *testing.T) {
	for in, want := range map[string]string{
		"key 12345678abc!":        "key [key removed]!",
		"x12345678abcx":           "x[key removed]x",
		"sk-proj-abcdef and more": "[key removed] and more",
		"Bearer abcdefgh.ij":      "[key removed]",
	} {
		if got := without("12345678abc", in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if got := without("ollama", "ollama: not xollamax"); got != "[key removed]: not xollamax" {
		t.Errorf("a short key: %q", got)
	}
	if got := without("", "all stays"); got != "all stays" {
		t.Errorf("no key: %q", got)
	}
}
