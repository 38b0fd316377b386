package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// stub is a model server that answers at once, or after a delay, and notes when
// it was asked about which message: the last id in the request.
type stub struct {
	server *http.Server
	url    string

	delay    atomic.Int64 // nanoseconds
	inFlight atomic.Int64
	last     atomic.Int64 // unix nanoseconds of the newest arrival or answer

	mu    sync.Mutex
	first map[string]time.Time
	count map[string]int
	total int
	bytes int64
}

// startStub serves on loopback until close.
func startStub() (*stub, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &stub{url: "http://" + l.Addr().String() + "/v1"}
	s.reset()
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.server.Serve(l) }() // ends with close
	return s, nil
}

func (s *stub) close() { _ = s.server.Close() }

func (s *stub) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first, s.count, s.total, s.bytes = map[string]time.Time{}, map[string]int{}, 0, 0
	s.delay.Store(0)
}

func (s *stub) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// at is when the model was first asked about a message.
func (s *stub) at(id string) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.first[id]
	return t, ok
}

// repeated counts the messages that the model was asked about more than once.
func (s *stub) repeated() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.count {
		if c > 1 {
			n++
		}
	}
	return n
}

// promptBytes is the mean size of a request.
func (s *stub) promptBytes() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return float64(s.bytes) / float64(max(s.total, 1))
}

// quiet is for how long nobody has asked, and nobody been answered.
func (s *stub) quiet() time.Duration {
	if s.inFlight.Load() > 0 {
		return 0
	}
	return time.Since(time.Unix(0, s.last.Load()))
}

func (s *stub) note(body []byte) string {
	now := time.Now()
	id := ""
	if i := bytes.LastIndex(body, []byte("[[m:")); i >= 0 {
		id = idOf(string(body[i:min(i+100, len(body))]))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.first[id]; !known {
		s.first[id] = now
	}
	s.count[id]++
	s.total++
	s.bytes += int64(len(body))
	s.last.Store(now.UnixNano())
	return id
}

// answerTo is what the model says, about 200 bytes.
func answerTo(id string) string {
	return "About " + id + ": " + strings.Repeat("it is all well. ", 11)
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller is gone
	}
	s.inFlight.Add(1)
	defer func() {
		s.last.Store(time.Now().UnixNano())
		s.inFlight.Add(-1)
	}()
	id := s.note(body)
	if d := time.Duration(s.delay.Load()); d > 0 {
		select {
		case <-time.After(d):
		case <-r.Context().Done():
			return
		}
	}
	if bytes.Contains(body, []byte(`"stream":true`)) {
		stream(w, answerTo(id))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{ // the caller sees a broken answer
		"id": "1", "object": "chat.completion", "model": modelName,
		"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": map[string]string{"role": "assistant", "content": answerTo(id)}}},
		"usage":   map[string]int{"prompt_tokens": len(body) / 4, "completion_tokens": 50, "total_tokens": len(body)/4 + 50},
	})
}

// stream says the text in four pieces of server-sent events.
func stream(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	var b bytes.Buffer
	chunk := func(delta map[string]string, reason any) {
		data, _ := json.Marshal(map[string]any{ // plain data
			"id": "1", "object": "chat.completion.chunk", "model": modelName,
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": reason}},
		})
		fmt.Fprintf(&b, "data: %s\n\n", data)
	}
	for len(text) > 0 {
		n := min(50, len(text))
		chunk(map[string]string{"content": text[:n]}, nil)
		text = text[n:]
	}
	chunk(map[string]string{}, "stop")
	b.WriteString("data: [DONE]\n\n")
	_, _ = w.Write(b.Bytes())
}
