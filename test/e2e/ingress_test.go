package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const ingressScript = `rules:
  - name: one member
    member: '^Lead$'
    lacks: ['"name":"team_create","arguments"']
    tools:
      - {name: team_create, args: {name: desk}}
      - {name: team_member_add, args: {name: Nora, initial_prompt: Wait for the outside.}}
  - {name: alarmed, member: '^Lead$', has: ['kind=\\"framework_alert\\"'], text: I look at the clock.}
  - {name: lead rests, member: '^Lead$', text: Nora waits.}
  - {name: nora hears, member: '^Nora$', text: I hear.}
`

// TestIngress: any NATS client reaches a member, without our client or program.
func TestIngress(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, ingressScript))
	p.start()
	c := p.client()
	first, second := p.detach("first", "A desk."), p.detach("second", "Another desk.")
	for _, id := range []string{first, second} {
		p.until(c, id, "the desk is open", func(s *domain.State) bool { return quiet(s) && len(s.Members) == 2 })
	}
	nc := p.nats()
	lastOf := func(p *place, id, member string) (n int, last turn) {
		asked := p.asked(id, member)
		return len(asked), newest(p.t, asked[len(asked)-1])
	}

	// An outside scheduler rings the Lead.
	t.Run("mailbox-alert-hook", func(t *testing.T) {
		p := p.on(t)
		before, _ := lastOf(p, first, "Lead")
		if err := nc.PublishMsg(inbox(first, "lead", `{"kind":"framework_alert","text":"SLA: one hour is left."}`, "Content-Type", "application/json")); err != nil {
			t.Fatal(err)
		}
		p.served(first, "alarmed")
		p.until(c, first, "the Lead rests", quiet)
		after, last := lastOf(p, first, "Lead")
		if after != before+1 || last.outside != "" || len(last.mail) != 1 || last.mail[0].head["kind"] != "framework_alert" ||
			last.mail[0].head["from"] != "framework" || last.mail[0].text != "SLA: one hour is left." {
			t.Errorf("%d calls: %+v", after-before, last)
		}
	})

	t.Run("mailbox-ingress", func(t *testing.T) {
		p := p.on(t)
		wakes := func(id, what string, publish func()) {
			t.Helper()
			before, _ := lastOf(p, id, "Nora")
			publish()
			p.until(c, id, what, func(s *domain.State) bool {
				return quiet(s) && len(p.asked(id, "Nora")) > before && len(s.Named("Nora").Unread) == 0
			})
		}
		// Plain text is the operator's words; the acknowledgement is JetStream's.
		wakes(first, "Nora reads it", func() { p.publish(nc, inbox(first, "m1", "Hello from outside")) })
		if _, last := lastOf(p, first, "Nora"); last.outside != "Hello from outside" || len(last.mail) > 0 {
			t.Errorf("Nora reads %+v", last)
		}

		// The same Rollcall-Id again does nothing.
		sub := got(nc.SubscribeSync(nats.NewInbox())).must(t)
		again := func() *rollcallv1.Answer {
			p.publish(nc, inbox(first, "m1", "Only once", "Rollcall-Id", "once-1", "Rollcall-Reply", sub.Subject))
			return p.answered(sub)
		}
		var one *rollcallv1.Answer
		wakes(first, "Nora reads it once", func() { one = again() })
		before, _ := lastOf(p, first, "Nora")
		if two := again(); two.GetVersion() != one.GetVersion() || two.GetSubject() != one.GetSubject() || two.GetRefusal() != nil {
			t.Errorf("again it came to %v, at first to %v", two, one)
		}
		if after, last := lastOf(p, first, "Nora"); after != before || last.outside != "Only once" {
			t.Errorf("Nora was called %d times more, and reads %+v", after-before, last)
		}

		// JetStream compares Nats-Msg-Id across conversations: further apart than
		// its short window nothing is lost.
		wakes(first, "Nora reads number 1", func() { p.publish(nc, inbox(first, "m1", "number 1", "Nats-Msg-Id", "1")) })
		<-time.After(2 * eventstoreWindow)
		wakes(second, "the other Nora reads number 1", func() { p.publish(nc, inbox(second, "m1", "number 1 as well", "Nats-Msg-Id", "1")) })
		if _, last := lastOf(p, second, "Nora"); last.outside != "number 1 as well" {
			t.Errorf("Nora reads %+v", last)
		}
		p.duplicates(nc, first, second)
	})
	p.settle(c, first, second)
}

// duplicates: nearer than the window the acknowledgement says that the second
// message was dropped, so that its publisher knows.
func (p *place) duplicates(nc *nats.Conn, first, second string) {
	p.t.Helper()
	acks := got(nc.SubscribeSync(nats.NewInbox())).must(p.t)
	for try := range 20 {
		id := fmt.Sprintf("near-%d", try)
		for _, to := range []string{first, second} {
			m := inbox(to, "m1", "near "+id, "Nats-Msg-Id", id)
			m.Reply = acks.Subject
			if err := nc.PublishMsg(m); err != nil {
				p.t.Fatal(err)
			}
		}
		dropped := 0
		for range 2 {
			reply := got(acks.NextMsgWithContext(p.ctx())).must(p.t)
			if acknowledged(p.t, reply).Duplicate {
				dropped++
			}
		}
		if dropped == 1 {
			p.until(p.client(), first, "the first one is read", func(s *domain.State) bool {
				asked := p.asked(first, "Nora")
				return quiet(s) && strings.Contains(newest(p.t, asked[len(asked)-1]).outside, id)
			})
			return
		}
	}
	p.t.Error("no acknowledgement ever said that a near message is a duplicate")
}
