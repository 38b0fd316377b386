package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	openai "github.com/sashabaranov/go-openai"
)

// FuzzNormaliser: whatever a server sends, and however it is cut into reads,
// what comes out is the same, and go-openai can read it.
func FuzzNormaliser(f *testing.F) {
	for _, seed := range []string{
		events(hi, stop, usageChunk, done), "\ufeff: x\r\n\r\ndata:" + hi + "\r\rdata: [DONE]", "\n\n{\"choices\":[{\"message\":{\"content\":\"hi\"}}]}",
		hi + "\n" + stop, "<html><title>x</title>", "event: error\ndata: x\n\n", events(`{"error":"x"}`), "[{\"error\":1}]", "data: {\"a\":\ndata: 1}\n",
		events(piece(`{"index":"0","id":7,"function":{"name":"get","arguments":{"a":1}},"extra_content":{"x":1}}`)), events(deltaOf(`{"content":"\ud83d"}`), deltaOf("{\"content\":\"\\ude00\xf0\"}")),
	} {
		f.Add([]byte(seed), uint(7))
	}
	f.Fuzz(func(t *testing.T, data []byte, at uint) {
		whole, err := normalise(bytes.NewReader(data))
		cut := int(at % uint(len(data)+1))
		parts, errParts := normalise(io.MultiReader(bytes.NewReader(data[:cut]), bytes.NewReader(data[cut:])))
		if !bytes.Equal(whole, parts) || (err == nil) != (errParts == nil) {
			t.Fatalf("whole: %q, %v\ncut at %d: %q, %v", whole, err, cut, parts, errParts)
		}
		if e, ok := errors.AsType[*Error](err); err != nil && (!ok || e.What == "" || !utf8.ValidString(e.Error())) {
			t.Fatalf("error is %v", err)
		}
		acc := newAccumulator(nil)
		for i, event := range strings.Split(strings.TrimSuffix(string(whole), "\n\n"), "\n\n") {
			payload, ok := strings.CutPrefix(event, "data: ")
			if !ok && event != "" {
				t.Fatalf("event %q", event)
			}
			if payload == done || event == "" {
				continue
			}
			var c openai.ChatCompletionStreamResponse
			if err := json.Unmarshal([]byte(payload), &c); err != nil {
				t.Fatalf("event %q: %v", event, err)
			}
			acc.add(c, i)
		}
		ids := map[string]bool{}
		for _, call := range acc.result(map[string]bool{}, "seed", tools) {
			if call.GetId() == "" || ids[call.GetId()] {
				t.Fatalf("call id %q is empty or used twice", call.GetId())
			}
			ids[call.GetId()] = true
		}
		if text := acc.text.String(); !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			t.Fatalf("text %q", text)
		}
	})
}

func normalise(r io.Reader) ([]byte, error) {
	n := newNormaliser(testExchange(), io.NopCloser(r), 1<<20)
	defer n.x.watch.stop()
	return io.ReadAll(n)
}

// FuzzComplaint: any body of any refusal becomes an error that can be shown.
func FuzzComplaint(f *testing.F) {
	for _, seed := range []string{`{"error":{"message":"x","code":429}}`, `[{"error":{"details":[{"retryDelay":"3s"}]}}]`, "<title>\xff</title>", `{"detail":[{"msg":"a"},"b"]}`, "try again in 1h", ""} {
		f.Add(429, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		e := refusal(status, nil, body)
		if e.Code == "" || e.What == "" || e.Try == "" || !utf8.ValidString(e.Error()) || len(e.Error()) > 2*maxWords {
			t.Fatalf("%+v", e)
		}
		if e.RetryAfter < 0 {
			t.Fatalf("retry after %v", e.RetryAfter)
		}
	})
}
