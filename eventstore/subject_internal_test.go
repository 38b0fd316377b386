package eventstore

import (
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
)

func TestSubjectsRoundTrip(t *testing.T) {
	k := domain.Key{Tenant: "main", Conversation: "01jabc"}
	if got, err := ParseEventSubject(EventSubject(k)); err != nil || got != k {
		t.Fatalf("event subject: %v, %v", got, err)
	}
	e, err := parseCommand("rollcall.cmd.7.main.01jabc.lead")
	if err != nil || e.Key != k || e.To != "lead" {
		t.Fatalf("command: %+v, %v", e, err)
	}
	if e, err = parseDead(deadSubject(e)); err != nil || e.Key != k || e.To != "lead" {
		t.Fatalf("dead letter: %+v, %v", e, err)
	}
	l := Lease{Partition: 7, Epoch: 12}
	if p, epoch, ok := parseConsumer(consumerName(l)); !ok || p != 7 || epoch != 12 {
		t.Fatalf("consumer %s: %d, %d, %v", consumerName(l), p, epoch, ok)
	}
}

func TestSubjectsRefused(t *testing.T) {
	k := domain.Key{Tenant: "main", Conversation: "01jabc"}
	other := strings.Replace(EventSubject(k), "events.", "events.1", 1)
	for _, s := range []string{
		"", "rollcall.events", "rollcall.events.7.main", other, EventSubject(k) + ".x",
		"rollcall.events.0.Main.c", "rollcall.events.-1.main.c", "rollcall.in.main.c.lead",
	} {
		if got, err := ParseEventSubject(s); err == nil {
			t.Errorf("%q is %v", s, got)
		}
	}
	for _, s := range []string{"", "rollcall.cmd.7.main.c", "rollcall.cmd.7.main.c.lead.x", "rollcall.cmd.7.MAIN.c.lead", "rollcall.dead.main.c.lead"} {
		if got, err := parseCommand(s); err == nil {
			t.Errorf("%q is %+v", s, got)
		}
	}
	for _, s := range []string{"", "p", "p7", "p7-", "p07-1", "p7-01", "q7-1", "p7-1-2", "p-7-1", "pp7-1"} {
		if p, e, ok := parseConsumer(s); ok {
			t.Errorf("%q is %d, %d", s, p, e)
		}
	}
}

// What parses is exactly what would be built from it.
func FuzzSubjects(f *testing.F) {
	k := domain.Key{Tenant: "main", Conversation: "01jabc"}
	for _, s := range []string{
		EventSubject(k), InboxSubject(k, "lead"), "rollcall.cmd.7.main.01jabc._", "rollcall.dead.a.b.c",
		"p7-12", "rollcall.events..main.", "rollcall.cmd.*.>.x.y", "rollcall.events.7.main.c d", "\x00",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if k, err := ParseEventSubject(s); err == nil && (EventSubject(k) != s || !k.Valid()) {
			t.Errorf("%q parsed as %v", s, k)
		}
		if e, err := parseCommand(s); err == nil && (!e.Key.Valid() || !strings.HasSuffix(s, "."+e.Key.String()+"."+e.To)) {
			t.Errorf("%q parsed as %+v", s, e)
		}
		if e, err := parseDead(s); err == nil && deadSubject(e) != s {
			t.Errorf("%q parsed as %+v", s, e)
		}
		if p, e, ok := parseConsumer(s); ok && consumerName(Lease{Partition: p, Epoch: e}) != s {
			t.Errorf("%q parsed as %d, %d", s, p, e)
		}
	})
}
