package model

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	openai "github.com/sashabaranov/go-openai"
)

// TestHostileAnswers: an answer that is large and full of small things costs a
// bounded multiple of its bytes, whatever it is made of. What is compared is
// what was ever allocated: a step that copies all of what came before with
// each piece would allocate thousands of times as much.
func TestHostileAnswers(t *testing.T) {
	const size = 256 << 10
	fill := func(one string) string { return strings.TrimSuffix(strings.Repeat(one, size/len(one)), ",") }
	var words strings.Builder
	for i := 0; words.Len() < size; i++ {
		fmt.Fprintf(&words, `"word %d",`, i)
	}
	for name, c := range map[string]struct {
		answer string
		most   int // times the size
		want   string
	}{
		"parts of a text":         {events(`{"choices":[{"delta":{"content":[`+fill(`"a",`)+`]}}]}`, stop, done), 400, ""},
		"parts with types":        {events(`{"choices":[{"delta":{"content":[`+fill(`{"text":"a"},`)+`]}}]}`, stop, done), 400, ""},
		"choices":                 {events(`{"choices":[`+fill(`{"delta":{"content":"a"}},`)+`]}`, stop, done), 400, ""},
		"choices without end":     {events(`{"choices":[`+fill(`{},`)+`]}`, stop, done), 400, "too long"},
		"calls in an event":       {events(`{"choices":[{"delta":{"tool_calls":[`+fill(`{},`)+`]}}]}`, stop, done), 400, "too long"},
		"calls, an event each":    {fill(events(piece(`{"id":"a","function":{"name":"a","arguments":"{}"}}`))) + events(stop), 400, ""},
		"arguments":               {fill(events(piece(`{"index":0,"function":{"arguments":"a"}}`))) + events(stop), 400, ""},
		"an error in words":       {events(`{"error":[` + words.String()[:words.Len()-1] + `]}`), 30, "failed"},
		"thoughts within another": {events(`{"choices":[{"delta":{"content":` + strings.Repeat(`[{"thinking":`, 4000) + `"` + fill("x") + `"` + strings.Repeat(`}]`, 4000) + `}}]}`), 60, ""},
		"blanks":                  {fill("\n") + events(stop), 30, ""},
		"a page":                  {"<html>" + fill("<a "), 30, "page"},
		"lines of data":           {fill("data: [\n"), 30, ""},
		"one line":                {"data: " + fill("x"), 30, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := readAll(t, c.answer)
			runtime.ReadMemStats(&after)
			if got := int(after.TotalAlloc-before.TotalAlloc) / len(c.answer); got > c.most {
				t.Errorf("%d bytes of an answer take %d times as many, want at most %d", len(c.answer), got, c.most)
			}
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("it is read with the error %v, want %q", err, c.want)
			}
		})
	}
}

// readAll reads an answer as a call does.
func readAll(t *testing.T, answer string) (*accumulator, error) {
	t.Helper()
	n := newNormaliser(testExchange(), io.NopCloser(strings.NewReader(answer)), DefaultMaxReply)
	defer n.x.watch.stop()
	whole, err := io.ReadAll(n)
	if err != nil {
		return nil, err
	}
	acc := newAccumulator(n.x.extras)
	for i, event := range strings.Split(strings.TrimSuffix(string(whole), "\n\n"), "\n\n") {
		payload := strings.TrimPrefix(event, "data: ")
		if payload == done || payload == "" {
			continue
		}
		var c openai.ChatCompletionStreamResponse
		if err := json.Unmarshal([]byte(payload), &c); err != nil {
			t.Fatal(err)
		}
		acc.add(c, i)
	}
	return acc, nil
}

// A reply of more calls than can be kept is refused while it comes in, one of
// ten thousand is not: the run answers it.
func TestCallsOfAReplyAreBounded(t *testing.T) {
	acc := newAccumulator(nil)
	for n := 1; n <= maxCalls+1; n++ {
		if fail := acc.overrun(); fail != nil {
			t.Fatalf("after %d calls: %v", n-1, fail)
		}
		acc.piece(openai.ToolCall{ID: strconv.Itoa(n), Function: openai.FunctionCall{Name: "a", Arguments: "{}"}}, n)
	}
	if fail := acc.overrun(); fail == nil || fail.Why == "" || fail.Try == "" || fail.Transient {
		t.Errorf("%d calls: %v", len(acc.calls), fail)
	}
	if maxCalls < 10_000 {
		t.Error("a reply of 10,000 calls cannot be answered")
	}
}

// What an error shows of an answer ends between two characters.
func TestFirstOfEndsBetweenCharacters(t *testing.T) {
	for at := 190; at < 205; at++ {
		for _, tail := range []string{"😀😀😀😀", `\ud83d\ude00\ud83d\ude00`} {
			shown := firstOf([]byte(strings.Repeat("x", at) + tail))
			if !utf8.ValidString(shown) || strings.Contains(shown, "\uFFFD") || strings.HasSuffix(shown, `\ud83d`) {
				t.Errorf("after %d bytes %q is shown", at, shown[180:])
			}
		}
	}
}
