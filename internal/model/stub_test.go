package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var stubs atomic.Int64

// stub serves every request with answer; the client's own connections are
// closed when the test ends.
func stub(t *testing.T, cfg Config, answer http.HandlerFunc) *OpenAI {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	// Ports are used again, and gates stay: each stub is an account of its own.
	cfg.BaseURL = fmt.Sprintf("%s/%d/v1", server.URL, stubs.Add(1))
	if cfg.Total == 0 {
		cfg.Total = 2 * time.Minute
	}
	client := New(cfg)
	t.Cleanup(client.Close)
	return client
}

// raw answers with exactly these bytes, split where the reader would not expect.
func raw(status int, contentType, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		for left := body; left != ""; {
			n := min(len(left), 977)
			_, _ = io.WriteString(w, left[:n])
			w.(http.Flusher).Flush()
			left = left[n:]
		}
	}
}

// stream is an event stream of these payloads.
func stream(payloads ...string) http.HandlerFunc {
	return raw(200, "text/event-stream", events(payloads...))
}

func events(payloads ...string) string {
	var b strings.Builder
	for _, p := range payloads {
		fmt.Fprintf(&b, "data: %s\n\n", p)
	}
	return b.String()
}

// Pieces of a stream.
const (
	hi   = `{"id":"c","model":"m1","choices":[{"index":0,"delta":{"role":"assistant","content":"hi"},"finish_reason":null}]}`
	stop = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	done = `[DONE]`
)

// says is a chunk with this JSON as its delta, and a finish reason if given.
func deltaOf(delta string, finish ...string) string {
	word := "null"
	if len(finish) > 0 {
		word = `"` + finish[0] + `"`
	}
	return `{"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + word + `}]}`
}

// piece is a delta with these entries of tool_calls.
func piece(entries ...string) string {
	return deltaOf(`{"tool_calls":[` + strings.Join(entries, ",") + `]}`)
}

func finish(word string) string { return deltaOf(`{}`, word) }

var (
	caller = Caller{Key: domain.Key{Tenant: "main", Conversation: "01j"}, Member: "Backend", Run: "r1", Step: 2}
	tools  = []*rollcallv1.ToolDefinition{
		{Name: "get", Description: "gets", Schema: `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`},
		{Name: "now", Schema: `{"type":"object","properties":{}}`},
	}
	question = Request{
		Model:    "m",
		Messages: []Message{{Role: "system", Content: "You answer."}, {Role: "user", Content: "Hello?"}},
		Tools:    tools,
	}
)

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func ask(t *testing.T, c *OpenAI) (Reply, error) {
	t.Helper()
	return c.Call(testContext(t), caller, question, nil)
}

// wantError asks for a failure with this code.
func wantError(t *testing.T, err error, code string) *Error {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("error is %v, want an *Error with code %s", err, code)
	}
	if e.Code != code {
		t.Fatalf("code is %s, want %s: %v", e.Code, code, e)
	}
	if e.What == "" || e.Try == "" {
		t.Errorf("an error must say what happened and what to try: %+v", e)
	}
	return e
}
