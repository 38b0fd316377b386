package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// generous is a model server whose answers are as large as a test likes: the
// scripted one sends small pieces, and would take too many for them. It keeps
// its own record of what it was asked.
type generous struct {
	*httptest.Server

	mu    sync.Mutex
	asked []question
	// answer is what the last message of a request is answered with: words, or
	// a call of a tool.
	answer func(q question) (words string, tool string, arguments string)
}

// question is one request as the server got it.
type question struct {
	size     int
	messages []message
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// last is the newest message.
func (q question) last() message { return q.messages[len(q.messages)-1] }

func openGenerous(t *testing.T, answer func(question) (string, string, string)) *generous {
	g := &generous{answer: answer}
	g.Server = httptest.NewServer(http.HandlerFunc(g.serve))
	t.Cleanup(g.Close)
	return g
}

func (g *generous) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var req struct {
		Messages []message `json:"messages"`
	}
	if err != nil || !utf8.Valid(body) || json.Unmarshal(body, &req) != nil {
		http.Error(w, "no request", http.StatusBadRequest)
		return
	}
	q := question{len(body), req.Messages}
	g.mu.Lock()
	g.asked = append(g.asked, q)
	g.mu.Unlock()
	words, tool, arguments := g.answer(q)
	send := func(v any) {
		text, _ := json.Marshal(v) // strings always encode
		fmt.Fprintf(w, "data: %s\n\n", text)
	}
	choice := func(delta map[string]any, finish any) map[string]any {
		return map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	// Pieces end anywhere, also within a character, as they do on real servers
	// that count tokens: so they are bytes of the JSON, not of the text.
	const piece = 60_000
	for piece := range slices.Chunk([]rune(words), piece) {
		send(choice(map[string]any{"content": string(piece)}, nil))
	}
	if tool != "" {
		send(choice(map[string]any{"tool_calls": []any{map[string]any{"index": 0, "id": "c" + strconv.Itoa(len(q.messages)), "function": map[string]any{"name": tool}}}}, nil))
		for piece := range slices.Chunk([]rune(arguments), piece) {
			send(choice(map[string]any{"tool_calls": []any{map[string]any{"index": 0, "function": map[string]any{"arguments": string(piece)}}}}, nil))
		}
	}
	send(choice(map[string]any{}, "stop"))
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// questions is the record, oldest first.
func (g *generous) questions() []question {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.asked)
}

// memory is what the node takes at most since the last call, in MiB, as the
// kernel counts it.
func (p *place) memory() int {
	p.t.Helper()
	dir := fmt.Sprintf("/proc/%d/", p.node.Process.Pid)
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		p.t.Skip("this system does not tell how much memory a process takes")
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		p.t.Fatal(err)
	}
	_ = os.WriteFile(dir+"clear_refs", []byte("5"), 0) // begin anew, where that is allowed
	return kib >> 10
}
