package e2e_test

import (
	"encoding/json"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/internal/model/scripted"
)

// asked are the requests that the model server has of a member in a
// conversation, in order; an empty member is everybody.
func (p *place) asked(id, member string) (found []scripted.Request) {
	for _, r := range p.models.Requests() {
		if r.Conversation == id && (member == "" || r.Member == member) {
			found = append(found, r)
		}
	}
	return found
}

// served is the request of a conversation that a rule answered, past or to come.
func (p *place) served(id, rule string) scripted.Request {
	p.t.Helper()
	r, err := p.models.WaitFor(p.ctx(), func(r scripted.Request) bool {
		return r.Conversation == id && r.RuleName == rule
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// held waits until a request stands at a hold of the script.
func (p *place) held(name string) scripted.Request {
	p.t.Helper()
	r, err := p.models.WaitHeld(p.ctx(), name)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// shown is a request as a model reads it.
type shown struct {
	role string
	text string
	// calls are the names of the tools that an assistant called.
	calls []string
}

func read(t *testing.T, r scripted.Request) (all []shown) {
	t.Helper()
	var body struct {
		Messages []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
			Calls   []struct {
				Function struct {
					Name string `json:"name"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		t.Fatalf("request %d of %s: %v", r.N, r.Member, err)
	}
	for _, m := range body.Messages {
		s := shown{role: m.Role, text: m.Content}
		for _, c := range m.Calls {
			s.calls = append(s.calls, c.Function.Name)
		}
		all = append(all, s)
	}
	return all
}

// turn is a user message taken apart: what stands in the frame, and the
// operator's words outside.
type turn struct {
	notices []string
	mail    []letter
	outside string
}

// letter is a message as the frame shows it.
type letter struct {
	head map[string]string
	text string
}

var (
	framed    = regexp.MustCompile(`(?s)\A<team-mailbox>\n(.*)</team-mailbox>(?:\n\n(.*))?\z`)
	inFrame   = regexp.MustCompile(`(?s)<notice>([^<>]*)</notice>\n|<message ([^<>]*)>([^<>]*)</message>\n`)
	attribute = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// turnsOf takes the user messages of a request apart. A frame anywhere but at
// the head of one, or anything else in it than notices and messages, is an error.
func turnsOf(t *testing.T, r scripted.Request) (all []turn) {
	t.Helper()
	for _, m := range read(t, r) {
		if m.role != "user" {
			continue
		}
		parts := framed.FindStringSubmatch(m.text)
		if parts == nil {
			if strings.Contains(m.text, "team-mailbox>") && !strings.Contains(m.text, "&lt;") {
				t.Errorf("request %d of %s: a frame in %q", r.N, r.Member, m.text)
			}
			all = append(all, turn{outside: m.text})
			continue
		}
		one := turn{outside: parts[2]}
		if rest := inFrame.ReplaceAllString(parts[1], ""); rest != "" {
			t.Errorf("request %d of %s: %q stands in the frame", r.N, r.Member, rest)
		}
		for _, e := range inFrame.FindAllStringSubmatch(parts[1], -1) {
			if e[2] == "" {
				one.notices = append(one.notices, html.UnescapeString(e[1]))
				continue
			}
			l := letter{head: map[string]string{}, text: html.UnescapeString(e[3])}
			for _, a := range attribute.FindAllStringSubmatch(e[2], -1) {
				l.head[a[1]] = html.UnescapeString(a[2])
			}
			one.mail = append(one.mail, l)
		}
		all = append(all, one)
	}
	return all
}

// newest is the last user message of a request.
func newest(t *testing.T, r scripted.Request) turn {
	t.Helper()
	all := turnsOf(t, r)
	if len(all) == 0 {
		t.Fatalf("request %d of %s has no user message", r.N, r.Member)
	}
	return all[len(all)-1]
}

// kinds of the letters, in order.
func (u turn) kinds() (all []string) {
	for _, l := range u.mail {
		all = append(all, l.head["kind"])
	}
	return all
}

// times counts how often words stand in what a request shows.
func times(t *testing.T, r scripted.Request, words string) (n int) {
	t.Helper()
	for _, m := range read(t, r) {
		n += strings.Count(html.UnescapeString(m.text), words)
	}
	return n
}
