package model

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A heard is a reply in the form that tests compare.
type heard struct {
	Text, Reasoning, Finish string
	Calls                   []string // "id name arguments"
	Usage                   string   // "in/out/cached", with "~" when estimated
}

func hear(r Reply) heard {
	h := heard{Text: r.Text, Reasoning: r.Reasoning, Finish: r.Finish}
	for _, c := range r.Calls {
		h.Calls = append(h.Calls, strings.TrimSpace(c.GetId()+" "+c.GetName()+" "+c.GetArguments()))
	}
	if u := r.Usage; !u.GetEstimated() {
		h.Usage = fmt.Sprintf("%d/%d/%d", u.GetInputTokens(), u.GetOutputTokens(), u.GetCachedTokens())
	}
	return h
}

const usageChunk = `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}`

// made is the id that the client gives to the n-th call of a reply.
func made(n int) string { return makeID(fmt.Sprintf("main.01j.r1.2.%d.0", n)) }

// TestReplies holds the client to what real servers send and mean.
func TestReplies(t *testing.T) {
	get := func(id, args string) []string { return []string{id + " get " + args} }
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   heard
	}{
		"normal":                    {stream(hi, deltaOf(`{"content":" there"}`), stop, usageChunk, done), heard{Text: "hi there", Finish: "stop", Usage: "10/2/4"}},
		"crlf":                      {raw(200, "text/event-stream", strings.ReplaceAll(events(hi, stop, done), "\n", "\r\n")), heard{Text: "hi", Finish: "stop"}},
		"cr alone":                  {raw(200, "text/event-stream", strings.ReplaceAll(events(hi, stop, done), "\n", "\r")), heard{Text: "hi", Finish: "stop"}},
		"byte order mark":           {raw(200, "text/event-stream", "\ufeff"+events(hi, stop, done)), heard{Text: "hi", Finish: "stop"}},
		"a thousand comments":       {raw(200, "text/event-stream", events(hi)+strings.Repeat(": keep-alive\n\n", 1000)+events(stop, done)), heard{Text: "hi", Finish: "stop"}},
		"blank lines first":         {raw(200, "text/event-stream", strings.Repeat("\n", 600)+events(hi, stop)), heard{Text: "hi", Finish: "stop"}},
		"no blank lines":            {raw(200, "text/event-stream", "data: "+hi+"\ndata: "+stop+"\ndata: [DONE]\n"), heard{Text: "hi", Finish: "stop"}},
		"data in several lines":     {raw(200, "text/event-stream", "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"hi\"}}]}\n\n"+events(stop)), heard{Text: "hi", Finish: "stop"}},
		"data without a space":      {raw(200, "text/event-stream", "data:"+hi+"\n\ndata:"+stop+"\n\ndata:[DONE]\n\n"), heard{Text: "hi", Finish: "stop"}},
		"empty data":                {raw(200, "text/event-stream", "data:\n\n"+events(hi)+"data: \n\n"+events(stop)), heard{Text: "hi", Finish: "stop"}},
		"event and id lines":        {raw(200, "text/event-stream", "event: message\nid: 1\nretry: 10\ndata: "+hi+"\n\n"+events(stop)), heard{Text: "hi", Finish: "stop"}},
		"pings as events":           {stream(hi, `{"type":"ping"}`, stop), heard{Text: "hi", Finish: "stop"}},
		"no done":                   {stream(hi, stop), heard{Text: "hi", Finish: "stop"}},
		"last event unended":        {raw(200, "text/event-stream", events(hi)+"data: "+stop), heard{Text: "hi", Finish: "stop"}},
		"half an event after all":   {raw(200, "text/event-stream", events(hi, stop)+`data: {"choices":[],"us`), heard{Text: "hi", Finish: "stop"}},
		"wrong content type":        {raw(200, "text/html", events(hi, stop)), heard{Text: "hi", Finish: "stop"}},
		"empty choices first":       {stream(`{"choices":[],"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}`, hi, stop), heard{Text: "hi", Finish: "stop"}},
		"choices null":              {stream(`{"choices":null,"usage":null}`, hi, stop), heard{Text: "hi", Finish: "stop"}},
		"delta null":                {stream(hi, `{"choices":[{"index":0,"delta":null,"finish_reason":"stop"}]}`), heard{Text: "hi", Finish: "stop"}},
		"message for delta":         {stream(`{"choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`), heard{Text: "hi", Finish: "stop"}},
		"odd types all over":        {stream(`{"id":7,"created":1.5,"object":null,"system_fingerprint":3,"choices":[{"index":"0","delta":{"content":"hi","role":7},"logprobs":[],"content_filter_results":[],"finish_reason":null}]}`, stop), heard{Text: "hi", Finish: "stop"}},
		"a second choice":           {stream(hi, `{"choices":[{"index":1,"delta":{"content":"no"}}]}`, stop), heard{Text: "hi", Finish: "stop"}},
		"error null":                {stream(`{"error":null,"choices":[{"delta":{"content":"hi"}}]}`, stop), heard{Text: "hi", Finish: "stop"}},
		"content as parts":          {stream(deltaOf(`{"content":[{"type":"text","text":"h"},{"type":"text","text":"i"}]}`), stop), heard{Text: "hi", Finish: "stop"}},
		"thoughts among parts":      {stream(deltaOf(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"hi"}]}`), stop), heard{Text: "hi", Reasoning: "hm", Finish: "stop"}},
		"reasoning_content":         {stream(deltaOf(`{"reasoning_content":"hm"}`), hi, stop), heard{Text: "hi", Reasoning: "hm", Finish: "stop"}},
		"reasoning":                 {stream(deltaOf(`{"reasoning":"hm","content":""}`), hi, stop), heard{Text: "hi", Reasoning: "hm", Finish: "stop"}},
		"reasoning under two names": {stream(deltaOf(`{"reasoning":"hm","reasoning_content":"hm"}`), hi, stop), heard{Text: "hi", Reasoning: "hm", Finish: "stop"}},
		"reasoning details":         {stream(deltaOf(`{"reasoning_details":[{"type":"reasoning.text","text":"hm"}]}`), hi, stop), heard{Text: "hi", Reasoning: "hm", Finish: "stop"}},
		"refusal":                   {stream(deltaOf(`{"refusal":"I will not."}`), stop), heard{Text: "I will not.", Finish: "stop"}},
		"surrogate pair cut":        {stream(deltaOf(`{"content":"a\ud83d"}`), deltaOf(`{"content":"\ude00b"}`), stop), heard{Text: "a😀b", Finish: "stop"}},
		"utf-8 cut":                 {stream(deltaOf("{\"content\":\"a\xf0\x9f\"}"), deltaOf("{\"content\":\"\x98\x80b\"}"), stop), heard{Text: "a😀b", Finish: "stop"}},
		"a backslash, no surrogate": {stream(deltaOf(`{"content":"a\\ud83d"}`), deltaOf(`{"content":"b"}`), stop), heard{Text: `a\ud83db`, Finish: "stop"}},
		"lone surrogate":            {stream(deltaOf(`{"content":"a\ud83db"}`), stop), heard{Text: "a\ufffdb", Finish: "stop"}},
		"nul in text":               {stream(deltaOf(`{"content":"a\u0000b"}`), stop), heard{Text: "a\ufffdb", Finish: "stop"}},

		"usage before finish":    {stream(hi, usageChunk, stop), heard{Text: "hi", Finish: "stop", Usage: "10/2/4"}},
		"usage in fractions":     {stream(hi, stop, `{"choices":[],"usage":{"prompt_tokens":9.5,"completion_tokens":"2"}}`), heard{Text: "hi", Finish: "stop", Usage: "10/2/0"}},
		"usage in every chunk":   {stream(`{"choices":[{"delta":{"content":"hi"}}],"usage":{"prompt_tokens":10,"completion_tokens":1}}`, `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":2}}`), heard{Text: "hi", Finish: "stop", Usage: "10/2/0"}},
		"usage of zeros":         {stream(hi, stop, `{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}`), heard{Text: "hi", Finish: "stop"}},
		"cache hits of deepseek": {stream(hi, stop, `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_cache_hit_tokens":8,"prompt_tokens_details":null}}`), heard{Text: "hi", Finish: "stop", Usage: "10/2/8"}},
		"finish unknown":         {stream(hi, finish("eos")), heard{Text: "hi", Finish: "eos"}},
		"finish in every chunk":  {stream(deltaOf(`{"content":"h"}`, "stop"), deltaOf(`{"content":"i"}`, "stop")), heard{Text: "hi", Finish: "stop"}},
		"finish length":          {stream(hi, piece(`{"index":0,"id":"c1","function":{"name":"get","arguments":"{}"}}`), finish("length")), heard{Text: "hi", Finish: "length"}},
		"finish max_tokens":      {stream(hi, finish("MAX_TOKENS")), heard{Text: "hi", Finish: "length"}},
		"finish content_filter":  {stream(piece(`{"index":0,"id":"c1","function":{"name":"get","arguments":"{}"}}`), finish("content_filter")), heard{Finish: "content_filter"}},
		"stop with calls":        {stream(piece(`{"index":0,"id":"c1","function":{"name":"get","arguments":"{\"a\":1}"}}`), stop), heard{Finish: "stop", Calls: get("c1", `{"a":1}`)}},
		"text and calls":         {stream(hi, piece(`{"index":0,"id":"c1","function":{"name":"get","arguments":"{\"a\":1}"}}`), finish("tool_calls")), heard{Text: "hi", Finish: "tool_calls", Calls: get("c1", `{"a":1}`)}},
		"a call as text":         {stream(deltaOf(`{"content":"<tool_call>{\"name\":\"get\"}</tool_call>"}`), stop), heard{Text: `<tool_call>{"name":"get"}</tool_call>`, Finish: "stop"}},
		"function_call of old":   {stream(deltaOf(`{"function_call":{"name":"get","arguments":"{\"a\":"}}`), deltaOf(`{"function_call":{"arguments":"1}"}}`), finish("function_call")), heard{Finish: "function_call", Calls: get(made(0), `{"a":1}`)}},
		"json for a stream":      {raw(200, "application/json", `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"hi","tool_calls":[{"id":"c1","type":"function","function":{"name":"get","arguments":"{\"a\":1}"}},{"id":"c2","type":"function","function":{"name":"get","arguments":"{\"a\":2}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`), heard{Text: "hi", Finish: "tool_calls", Calls: append(get("c1", `{"a":1}`), get("c2", `{"a":2}`)...), Usage: "3/1/0"}},
		"json after blank lines": {raw(200, "application/json", "\n\n  {\"choices\":[{\"message\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n"), heard{Text: "hi", Finish: "stop"}},
		"json lines":             {raw(200, "application/x-ndjson", hi+"\n"+stop+"\n"), heard{Text: "hi", Finish: "stop"}},
		"compressed":             {gzipped(events(hi, stop)), heard{Text: "hi", Finish: "stop"}},
		"nothing said":           {stream(deltaOf(`{"content":""}`), stop), heard{Finish: "stop"}},
		"only thoughts":          {stream(deltaOf(`{"reasoning":"hm"}`), stop), heard{Reasoning: "hm", Finish: "stop"}},
		"only a ghost":           {stream(piece(`{"index":0,"function":{"name":"","arguments":""}}`), finish("tool_calls")), heard{Finish: "tool_calls"}},
		"a long line":            {stream(deltaOf(`{"content":"`+strings.Repeat("x", 300_000)+`"}`), stop), heard{Text: strings.Repeat("x", 300_000), Finish: "stop"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var streamed strings.Builder
			r, err := stub(t, Config{}, c.answer).Call(testContext(t), caller, question, func(s string) { streamed.WriteString(s) })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, hear(r)); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
			if streamed.String() != r.Text {
				t.Errorf("streamed %q, replied %q", streamed.String(), r.Text)
			}
			if c.want.Usage == "" && (!r.Usage.GetEstimated() || r.Usage.GetInputTokens() == 0) {
				t.Errorf("usage is %v, want an estimate that says so", r.Usage)
			}
		})
	}
}

func gzipped(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = z.Write([]byte(body))
		_ = z.Close()
	}
}

// TestCalls holds the accumulator to the ways in which servers number, name
// and cut tool calls.
func TestCalls(t *testing.T) {
	for name, c := range map[string]struct {
		pieces []string
		want   []string
	}{
		"in pieces":                     {[]string{piece(`{"index":0,"id":"c1","type":"function","function":{"name":"get","arguments":""}}`), piece(`{"index":0,"function":{"arguments":"{\"a\""}}`), piece(`{"index":0,"function":{"arguments":":1}"}}`)}, []string{`c1 get {"a":1}`}},
		"nulls in later pieces":         {[]string{piece(`{"index":0,"id":"c1","function":{"name":"get","arguments":null}}`), piece(`{"index":0,"id":null,"type":null,"function":{"name":null,"arguments":"{\"a\":1}"}}`)}, []string{`c1 get {"a":1}`}},
		"interleaved":                   {[]string{piece(`{"index":0,"id":"c1","function":{"name":"get","arguments":"{"}}`, `{"index":1,"id":"c2","function":{"name":"now","arguments":"{"}}`), piece(`{"index":1,"function":{"arguments":"}"}}`, `{"index":0,"function":{"arguments":"\"a\":1}"}}`)}, []string{`c1 get {"a":1}`, `c2 now {}`}},
		"no index, whole":               {[]string{piece(`{"id":"c1","function":{"name":"get","arguments":"{\"a\":1}"}}`), piece(`{"id":"c2","function":{"name":"get","arguments":"{\"a\":2}"}}`)}, []string{`c1 get {"a":1}`, `c2 get {"a":2}`}},
		"no index, in pieces":           {[]string{piece(`{"id":"c1","function":{"name":"get","arguments":"{\"a\""}}`), piece(`{"function":{"arguments":":1}"}}`), piece(`{"id":"c2","function":{"name":"get","arguments":""}}`), piece(`{"function":{"arguments":"{\"a\":2}"}}`)}, []string{`c1 get {"a":1}`, `c2 get {"a":2}`}},
		"no index, no id":               {[]string{piece(`{"function":{"name":"get","arguments":"{\"a\":1}"}}`), piece(`{"function":{"name":"now","arguments":"{}"}}`)}, []string{made(0) + ` get {"a":1}`, made(1) + ` now {}`}},
		"index 0 for all":               {[]string{piece(`{"index":0,"id":"c1","function":{"name":"get","arguments":""}}`), piece(`{"index":0,"function":{"arguments":"{\"a\":1}"}}`), piece(`{"index":0,"id":"c2","function":{"name":"get","arguments":""}}`), piece(`{"index":0,"function":{"arguments":"{\"a\":2}"}}`)}, []string{`c1 get {"a":1}`, `c2 get {"a":2}`}},
		"index 0 for all, no id":        {[]string{piece(`{"index":0,"function":{"name":"get","arguments":"{\"a\":1}"}}`), piece(`{"index":0,"function":{"name":"get","arguments":"{\"a\":2}"}}`)}, []string{made(0) + ` get {"a":1}`, made(1) + ` get {"a":2}`}},
		"index 0 for all, one go":       {[]string{piece(`{"index":0,"function":{"name":"get","arguments":"{\"a\":1}"}}`, `{"index":0,"function":{"name":"now","arguments":"{}"}}`)}, []string{made(0) + ` get {"a":1}`, made(1) + ` now {}`}},
		"index 0 for all, no arguments": {[]string{piece(`{"index":0,"function":{"name":"now"}}`, `{"index":0,"function":{"name":"now"}}`)}, []string{made(0) + ` now {}`, made(1) + ` now {}`}},
		"index used again":              {[]string{piece(`{"index":0,"id":"c1","function":{"name":"get","arguments":"{\"a\":1}"}}`), piece(`{"index":1,"id":"c2","function":{"name":"now","arguments":"{}"}}`), piece(`{"index":0,"id":"c3","function":{"name":"now","arguments":"{}"}}`)}, []string{`c1 get {"a":1}`, `c2 now {}`, `c3 now {}`}},
		"index grows by piece":          {[]string{piece(`{"index":0,"id":"c1","function":{"name":"get","arguments":"{\"a\""}}`), piece(`{"index":1,"function":{"arguments":":1}"}}`)}, []string{`c1 get {"a":1}`}},
		"index as text":                 {[]string{piece(`{"index":"0","id":"c1","function":{"name":"get","arguments":"{\"a\""}}`), piece(`{"index":"0","function":{"arguments":":1}"}}`)}, []string{`c1 get {"a":1}`}},
		"id in every piece":             {[]string{piece(`{"id":"c1","function":{"name":"get","arguments":"{\"a\""}}`), piece(`{"id":"c1","function":{"arguments":":1}"}}`)}, []string{`c1 get {"a":1}`}},
		"id late":                       {[]string{piece(`{"index":0,"function":{"name":"get","arguments":"{\"a\""}}`), piece(`{"index":0,"id":"c1","function":{"arguments":":1}"}}`)}, []string{`c1 get {"a":1}`}},
		"id a number":                   {[]string{piece(`{"index":0,"id":17,"function":{"name":"get","arguments":"{\"a\":1}"}}`)}, []string{`17 get {"a":1}`}},
		"id empty":                      {[]string{piece(`{"index":0,"id":"","function":{"name":"get","arguments":"{\"a\":1}"}}`)}, []string{made(0) + ` get {"a":1}`}},
		"id repeated":                   {[]string{piece(`{"index":0,"id":"c1","function":{"name":"get","arguments":"{\"a\":1}"}}`, `{"index":1,"id":"c1","function":{"name":"get","arguments":"{\"a\":2}"}}`)}, []string{`c1 get {"a":1}`, made(1) + ` get {"a":2}`}},
		"id of an earlier turn":         {[]string{piece(`{"index":0,"id":"old","function":{"name":"get","arguments":"{\"a\":1}"}}`)}, []string{made(0) + ` get {"a":1}`}},
		"name in every piece":           {[]string{piece(`{"index":0,"id":"c1","function":{"name":"get","arguments":"{\"a\""}}`), piece(`{"index":0,"function":{"name":"get","arguments":":1}"}}`), piece(`{"index":0,"function":{"name":"get","arguments":""}}`)}, []string{`c1 get {"a":1}`}},
		"name growing":                  {[]string{piece(`{"index":0,"id":"c1","function":{"name":"g"}}`), piece(`{"index":0,"function":{"name":"get","arguments":"{\"a\":1}"}}`)}, []string{`c1 get {"a":1}`}},
		"name split":                    {[]string{piece(`{"index":0,"id":"c1","function":{"name":"ge"}}`), piece(`{"index":0,"function":{"name":"t","arguments":"{\"a\":1}"}}`)}, []string{`c1 get {"a":1}`}},
		"whole call at the end":         {[]string{piece(`{"index":0,"id":"c1","function":{"name":"get","arguments":"{\"a\":"}}`), piece(`{"index":0,"function":{"arguments":"1}"}}`), piece(`{"index":0,"id":"c1","function":{"name":"get","arguments":"{\"a\":1}"}}`)}, []string{`c1 get {"a":1}`}},
		"arguments an object":           {[]string{piece(`{"index":0,"id":"c1","function":{"name":"get","arguments":{"a":1}}}`)}, []string{`c1 get {"a":1}`}},
		"arguments in a surrogate":      {[]string{piece(`{"index":0,"id":"c1","function":{"name":"get","arguments":"{\"a\":\"\ud83d"}}`), piece(`{"index":0,"function":{"arguments":"\ude00\"}"}}`)}, []string{`c1 get {"a":"😀"}`}},
		"arguments cut":                 {[]string{piece(`{"index":0,"id":"c1","function":{"name":"get","arguments":"{\"a\":"}}`)}, []string{`c1 get {"a":`}},
		"one of two malformed":          {[]string{piece(`{"index":0,"id":"c1","function":{"name":"get","arguments":"{a:1"}}`, `{"index":1,"id":"c2","function":{"name":"now","arguments":"{}"}}`)}, []string{`c1 get {a:1`, `c2 now {}`}},
		"no arguments, needed":          {[]string{piece(`{"index":0,"id":"c1","function":{"name":"get"}}`)}, []string{`c1 get`}},
		"no arguments, not needed":      {[]string{piece(`{"index":0,"id":"c1","function":{"name":"now","arguments":""}}`)}, []string{`c1 now {}`}},
		"arguments null as text":        {[]string{piece(`{"index":0,"id":"c1","function":{"name":"now","arguments":"null"}}`)}, []string{`c1 now {}`}},
		"name unknown":                  {[]string{piece(`{"index":0,"id":"c1","function":{"name":"team_sendMessage","arguments":"{}"}}`)}, []string{`c1 team_sendMessage {}`}},
		"a ghost beside a call":         {[]string{piece(`{"index":0,"id":"","function":{"name":"","arguments":""}}`, `{"index":1,"id":"c1","function":{"name":"now","arguments":"{}"}}`)}, []string{`c1 now {}`}},
		"name beside function":          {[]string{piece(`{"index":0,"id":"c1","name":"now","arguments":"{}"}`)}, []string{`c1 now {}`}},
		"one call, not a list":          {[]string{deltaOf(`{"tool_calls":{"id":"c1","function":{"name":"now","arguments":"{}"}}}`)}, []string{`c1 now {}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := stub(t, Config{}, stream(append(c.pieces, finish("tool_calls"), done)...)).Call(testContext(t), caller, afterTools, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, hear(r).Calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// TestManyCalls is the reply of a model that has lost its mind.
func TestManyCalls(t *testing.T) {
	var pieces []string
	for i := range 10_000 {
		pieces = append(pieces, piece(fmt.Sprintf(`{"index":%d,"id":"c%d","function":{"name":"get","arguments":"{\"a\":%d}"}}`, i, i, i)))
	}
	r, err := ask(t, stub(t, Config{}, stream(append(pieces, finish("tool_calls"))...)))
	if err != nil || len(r.Calls) != 10_000 || r.Calls[9_999].GetArguments() != `{"a":9999}` {
		t.Fatalf("%d calls, %v", len(r.Calls), err)
	}
}

// TestThoughtSignature is sent back with the call it came with.
func TestThoughtSignature(t *testing.T) {
	r, err := ask(t, stub(t, Config{}, stream(
		piece(`{"index":0,"id":"c1","function":{"name":"now","arguments":"{}"}}`),
		piece(`{"index":1,"id":"c2","extra_content":{"google": {"thought_signature":"sig"}},"function":{"name":"now","arguments":"{}"}}`),
		finish("tool_calls"))))
	if err != nil {
		t.Fatal(err)
	}
	if r.Calls[0].GetExtra() != "" || r.Calls[1].GetExtra() != `{"google":{"thought_signature":"sig"}}` {
		t.Fatalf("calls are %v", r.Calls)
	}
	body, err := Encode(Request{Model: "gemini", Messages: []Message{
		{Role: "user", Content: "?"},
		{Role: "assistant", Calls: r.Calls},
		{Role: "tool", CallID: "c1", Content: "1"},
		{Role: "tool", CallID: "c2", Content: "2"},
	}})
	if err != nil || !strings.Contains(string(body), `"extra_content":{"google":{"thought_signature":"sig"}}`) {
		t.Fatalf("%s, %v", body, err)
	}
}
