package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// TestInputBacklog: 5,000 messages of an outside scheduler, some of them long,
// for a Lead that is busy, and among them, and last, the operator's words. The
// next request is bounded and has all the operator's words in full, the newest
// last; the node's memory is bounded; and every message can be read afterwards.
func TestInputBacklog(t *testing.T) {
	t.Parallel()
	const backlog, every, long = 5_000, 1_000, 20 << 10
	p := newPlace(t, script(t, `rules:
  - {name: think, lacks: [message 5000], hold: thinking, text: Let me think.}
  - {name: on, text: I am on.}
`))
	p.start()
	c := p.client()
	id := p.detach("busy", "Think.")
	p.held("thinking")
	nc := p.nats()
	var words []string // the operator's
	text := func(n int) string {
		text := fmt.Sprintf("message %d.", n)
		if n%100 == 1 {
			text += strings.Repeat(" 語😀", long/8)
		}
		return text
	}
	for n := 1; n <= backlog; n++ {
		if n%every == 0 {
			words = append(words, text(n))
			if err := nc.PublishMsg(inbox(id, "lead", fmt.Sprintf(`{"text":%s,"mode":"queue"}`, quoted(text(n))), "Content-Type", "application/json")); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := nc.PublishMsg(inbox(id, "lead", fmt.Sprintf(`{"kind":"framework_alert","text":%s}`, quoted(text(n))), "Content-Type", "application/json")); err != nil {
			t.Fatal(err)
		}
	}
	p.until(c, id, "all is in the mailbox", func(s *domain.State) bool { return len(s.Lead().Unread) == backlog })
	p.models.Release("thinking")
	p.until(c, id, "all is read", quiet)

	asked := p.asked(id, "Lead")
	if len(asked) != 2 && len(asked) != 3 {
		t.Fatalf("%d calls", len(asked))
	}
	for _, r := range asked[1:] {
		if size := len(r.Body); size > 512<<10 {
			t.Errorf("a request has %d bytes", size)
		}
	}
	last := newest(t, asked[len(asked)-1])
	if !strings.HasSuffix(last.outside, words[len(words)-1]) {
		t.Errorf("the newest words of the operator are not last: %.300q", last.outside)
	}
	for _, w := range words {
		if times(t, asked[len(asked)-1], w) != 1 {
			t.Errorf("%q is not shown once", w)
		}
	}
	if mib := p.memory(); mib > roomy {
		t.Errorf("the node took %d MiB", mib)
	} else {
		t.Logf("the node took %d MiB, the last request has %d bytes", mib, len(asked[len(asked)-1].Body))
	}

	mail := document[api.MailAnswer](p, "mail", "busy/lead", "--limit", "6000")
	if len(mail.Messages) != backlog+1 {
		t.Errorf("%d messages can be read, want %d", len(mail.Messages), backlog+1)
	}
	for i, m := range mail.Messages {
		if i == 0 {
			continue // the objective
		}
		if got, err := c.Text(p.ctx(), id, m.Text); err != nil || got != text(i) || m.State != "consumed" {
			t.Fatalf("message %d is %s, %.100q, %v", i, m.State, got, err)
		}
	}
	if n := len(only(p.facts(c, id), (*rollcallv1.Event).GetMessagesReturned)); n != 0 {
		t.Errorf("mail was returned %d times", n)
	}
	p.settle(c, id)
}
