package scripted

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"time"
)

// maxBody bounds a request.
const maxBody = 64 << 20

// Config says how to serve a script.
type Config struct {
	Script *Script
	// Addr to listen on; a free port of 127.0.0.1 when empty.
	Addr string
	// Record is a file to which every request is appended before it is
	// answered, as JSON lines; empty keeps the record in memory only.
	Record string
}

// Server serves a script. It owns one goroutine for its listener and those of
// its connections; Close ends them all.
type Server struct {
	script   *Script
	url      string
	http     *http.Server
	recorder *recorder
	stop     context.CancelFunc
	served   chan struct{}

	mu       sync.Mutex
	requests []Request
	answered []int            // by rule
	holds    map[string]*hold // by name
	changed  chan struct{}    // closed at each change of the record
	failed   error            // of the record file
	active   int              // requests being answered
	closing  bool
}

// hold is a named gate of the script.
type hold struct {
	open chan struct{}
	at   []int // requests that wait there
}

// Start serves a script on addr (a free port of 127.0.0.1 when empty).
func Start(script *Script, addr string) (*Server, error) {
	return Config{Script: script, Addr: addr}.Start()
}

// Start serves the script until Close.
func (c Config) Start() (*Server, error) {
	if c.Script == nil {
		return nil, errors.New("start scripted model: there is no script")
	}
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	recorder, err := openRecorder(c.Record)
	if err != nil {
		return nil, fmt.Errorf("start scripted model: %w", err)
	}
	listener, err := net.Listen("tcp", c.Addr)
	if err != nil {
		_ = recorder.close()
		return nil, fmt.Errorf("start scripted model: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{
		script: c.Script, url: "http://" + listener.Addr().String() + "/v1", recorder: recorder,
		stop: stop, served: make(chan struct{}), answered: make([]int, len(c.Script.rules)),
		holds: map[string]*hold{}, changed: make(chan struct{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{map[string]any{"id": "scripted", "object": "model", "owned_by": "rollcall"}}})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusNotFound, failure("the scripted model serves POST /v1/chat/completions, not "+r.Method+" "+r.URL.Path, "not_found"))
	})
	s.http = &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(listener) // ends by Close
	}()
	return s, nil
}

// URL is what OPENAI_BASE_URL must be.
func (s *Server) URL() string { return s.url }

// Close breaks all connections off and waits until every request has ended.
// The error is that of the record file, if it could not be written.
func (s *Server) Close() error {
	s.mu.Lock()
	again := s.closing
	s.closing = true
	s.mu.Unlock()
	s.stop()
	err := s.http.Close()
	<-s.served
	for {
		s.mu.Lock()
		active, changed := s.active, s.changed
		s.mu.Unlock()
		if active == 0 {
			break
		}
		<-changed
	}
	if again {
		return nil
	}
	return errors.Join(err, s.failed, s.recorder.close())
}

// begin counts a request, unless the server closes.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.active++
	return true
}

// chat is one request: it is recorded, then answered, then its end is recorded.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	if !s.begin() {
		return
	}
	n, status, gone := 0, 0, true
	defer func() { s.end(n, status, gone) }()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return // the client went away, or sends without end
	}
	member, err := url.PathUnescape(r.Header.Get("Rollcall-Member"))
	if err != nil {
		member = r.Header.Get("Rollcall-Member")
	}
	rec := Request{
		Time: time.Now(), Header: r.Header.Clone(), Body: body, Member: member,
		Conversation: r.Header.Get("Rollcall-Conversation"), Run: r.Header.Get("Rollcall-Run"), Step: r.Header.Get("Rollcall-Step"),
	}
	var (
		req wireRequest
		ans answer
	)
	n, req, ans = s.admit(&rec)
	if rec.Refused != "" {
		status = http.StatusBadRequest
		slug := "no_rule"
		if rec.Rule > 0 {
			slug = "bad_rule"
		} else if rec.Messages == "" {
			slug = "invalid_request"
		}
		writeJSON(w, status, failure(rec.Refused, slug))
		gone = false
		return
	}
	rule := s.script.rules[rec.Rule-1]
	if s.wait(r.Context(), n, rule) {
		status, gone = rule.write(r.Context(), w, req, ans, n)
		if !rule.Reset {
			return
		}
	}
	panic(http.ErrAbortHandler) // breaks the connection off
}

// admit numbers and records a request and chooses its answer.
func (s *Server) admit(rec *Request) (n int, req wireRequest, ans answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec.N = len(s.requests) + 1
	req, err := readRequest(rec.Body)
	if err != nil {
		rec.Refused = err.Error()
	} else {
		rec.Messages, _ = encode(req.Messages) // it was JSON before
		ans, err = s.choose(rec)
		if err != nil {
			rec.Refused = err.Error()
		}
	}
	s.requests = append(s.requests, *rec)
	s.keep(requestLine(*rec))
	s.change()
	return rec.N, req, ans
}

func (s *Server) choose(rec *Request) (answer, error) {
	i := s.script.find(rec.Member, rec.Messages, s.answered)
	if i < 0 {
		return answer{}, fmt.Errorf("%s: no rule matches member %q, step %s", s.script.name, rec.Member, orDash(rec.Step))
	}
	s.answered[i]++
	rec.Rule, rec.RuleName = i+1, s.script.rules[i].Name
	prefix := fmt.Sprintf("call_%d", rec.N)
	if rec.Run != "" && rec.Step != "" {
		prefix = "call_" + unsafeInID.ReplaceAllString(rec.Run+"_"+rec.Step, "")
	}
	ans, err := s.script.rules[i].render(rec.Messages, prefix)
	if err != nil {
		return answer{}, fmt.Errorf("%s: rule %d (line %d): member %q, step %s: %w", s.script.name, i+1, s.script.rules[i].line, rec.Member, orDash(rec.Step), err)
	}
	return ans, nil
}

var unsafeInID = regexp.MustCompile(`[^A-Za-z0-9_-]`)

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (s *Server) end(n, status int, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
	defer s.change()
	if n == 0 {
		return // it never arrived in full
	}
	gone = gone && !s.closing
	r := &s.requests[n-1]
	r.Status, r.Gone, r.Ended = status, gone, true
	s.keep(line{Type: "end", N: n, Time: time.Now(), Status: status, Gone: gone})
}

// keep writes a line of the record; its first failure is kept for Close.
func (s *Server) keep(l line) {
	if err := s.recorder.write(l); err != nil && s.failed == nil {
		s.failed = err
	}
}

// Requests are all requests so far, in order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}
