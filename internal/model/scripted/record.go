package scripted

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// Request is the server's own record of one request.
type Request struct {
	// N is the order of arrival, from 1.
	N    int
	Time time.Time
	// Who asked, by the request's headers; Member is decoded.
	Conversation, Member, Run, Step string
	Header                          http.Header
	// Body is exactly what was received.
	Body []byte
	// Messages is the JSON that rules are matched with; empty when the body
	// was refused.
	Messages string
	// Rule is the place of the rule that answered, from 1; 0 when there was none.
	Rule     int
	RuleName string
	// Status is that of the answer. It is 0 until there is one.
	Status int
	// Refused says why the request was answered with an error of the server's
	// own: a body that no model takes, or no rule.
	Refused string
	// Ended is true once the answer is written, or given up.
	Ended bool
	// Gone is true when the client went away before that.
	Gone bool
}

// A line of the record file: one when a request is there and its rule is
// chosen, one when its answer has ended.
type line struct {
	Type         string      `json:"type"` // request or end
	N            int         `json:"n"`
	Time         time.Time   `json:"time"`
	Conversation string      `json:"conversation,omitempty"`
	Member       string      `json:"member,omitempty"`
	Run          string      `json:"run,omitempty"`
	Step         string      `json:"step,omitempty"`
	Rule         int         `json:"rule,omitempty"`
	RuleName     string      `json:"rule_name,omitempty"`
	Refused      string      `json:"refused,omitempty"`
	Header       http.Header `json:"header,omitempty"`
	// Body is the exact body if it is valid UTF-8, BodyBytes otherwise.
	Body      string `json:"body,omitempty"`
	BodyBytes []byte `json:"body_base64,omitempty"`
	Status    int    `json:"status,omitempty"`
	Gone      bool   `json:"gone,omitempty"`
}

func requestLine(r Request) line {
	l := line{
		Type: "request", N: r.N, Time: r.Time, Conversation: r.Conversation, Member: r.Member, Run: r.Run, Step: r.Step,
		Rule: r.Rule, RuleName: r.RuleName, Refused: r.Refused, Header: r.Header.Clone(),
	}
	if l.Header.Get("Authorization") != "" {
		l.Header.Set("Authorization", "removed")
	}
	if utf8.Valid(r.Body) {
		l.Body = string(r.Body)
	} else {
		l.BodyBytes = r.Body
	}
	return l
}

// recorder appends lines to a file. A line is with the operating system when
// write returns, so that it outlives this process.
type recorder struct{ file *os.File }

func openRecorder(path string) (*recorder, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open record: %w", err)
	}
	return &recorder{file}, nil
}

// write appends one line with one system call. A nil recorder writes nothing.
func (r *recorder) write(l line) error {
	if r == nil {
		return nil
	}
	text, err := encode(l)
	if err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	if _, err := r.file.WriteString(text + "\n"); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

func (r *recorder) close() error {
	if r == nil {
		return nil
	}
	return r.file.Close()
}

// ReadRecord reads a record file: every request in order, with its end if it
// had one. A last line that was cut by a crash is left out.
func ReadRecord(path string) ([]Request, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	var requests []Request
	latest := map[int]int{} // a server that starts anew counts anew
	for text := range strings.Lines(string(data)) {
		if !strings.HasSuffix(text, "\n") {
			break
		}
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			return nil, fmt.Errorf("read record %s: %w", path, err)
		}
		switch l.Type {
		case "request":
			latest[l.N] = len(requests)
			requests = append(requests, l.request())
		case "end":
			if i, ok := latest[l.N]; ok {
				requests[i].Status, requests[i].Gone, requests[i].Ended = l.Status, l.Gone, true
			}
		}
	}
	return requests, nil
}

func (l line) request() Request {
	r := Request{
		N: l.N, Time: l.Time, Conversation: l.Conversation, Member: l.Member, Run: l.Run, Step: l.Step,
		Rule: l.Rule, RuleName: l.RuleName, Refused: l.Refused, Header: l.Header, Body: l.BodyBytes,
	}
	if r.Body == nil {
		r.Body = []byte(l.Body)
	}
	if req, err := readRequest(r.Body); err == nil {
		r.Messages, _ = encode(req.Messages)
	}
	return r
}
