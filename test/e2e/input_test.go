package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/text/unicode/norm"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
)

const inputScript = `rules:
  - {name: hear, member: '^Lead$', has: [Case input], text: I hear.}
  - {name: hear a lot, member: '^Lead$', has: [Zeile für Zeile], text: I hear a lot.}
  - name: short-lived team
    member: '^Lead$'
    has: [Case dissolved]
    lacks: ['"name":"team_create","arguments"']
    tools:
      - {name: team_create, args: {name: gone}}
      - {name: team_member_add, args: {name: Temp, initial_prompt: Help.}}
      - {name: team_dissolve, args: {}}
  - {name: dissolved, member: '^Lead$', has: [Case dissolved], text: All gone.}
  - {name: temp, member: '^Temp$', text: I help.}
`

// TestBadInput: what can never be taken in is refused with what to do, loses
// nothing, and is shown to the operator of the installation.
func TestBadInput(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, inputScript))
	p.start()
	c := p.client()
	id, dissolved := p.detach("input", "Case input: listen."), p.detach("dissolved", "Case dissolved: try.")
	p.until(c, id, "the Lead rests", quiet)
	p.until(c, dissolved, "the Lead rests", quiet)
	before := p.state(c, id).Version

	t.Run("by the command line", func(t *testing.T) {
		p := p.on(t)
		p.refused("conversation-not-found", 3, "send", "nosuch", "Hello")
		p.refused("conversation-not-found", 3, "send", "01h00000000000000000000000", "Hello")
		p.refused("conversation-not-found", 3, "show", "nosuch")
		p.refused("member-not-found", 3, "send", "input/Nobody", "Hello")
		p.refused("member-shut-down", 4, "send", "dissolved/Temp", "Hello")
		p.refused("team-not-found", 3, "dissolve", "input")
		p.refused("not-working", 4, "interrupt", "input")
		p.refused("not-held", 4, "retry", "input/Lead")
		p.refused("text-empty", 4, "send", "input", "  ")
		p.refused("text-invalid", 4, "send", "input", "caf\xe9")
		p.refused("text-invalid", 4, "run", "caf\xe9")
		p.refused("text-too-long", 4, "run", "x", "--name", strings.Repeat("long ", 800))
		p.refused("usage", 2, "send", "input")
		p.refused("usage", 2, "send", "input", "x", "--steer", "--queue")
		for text, code := range map[string]string{strings.Repeat("x", 600<<10): "text-too-long", "a\x00b": "text-invalid", "\xed\xa0\x80": "text-invalid"} {
			args := []string{"send", "input", "-", "--json"}
			p.feed(text, args...).refusal(t, code, 4, args)
		}
	})

	// A publisher that names where to answer is told; one that does not has it
	// in the dead letters.
	t.Run("by NATS", func(t *testing.T) {
		p := p.on(t)
		nc := p.nats()
		sub := got(nc.SubscribeSync(nats.NewInbox())).must(t)
		const lone = `{"text":"half \ud83d of it"}`
		wrong := []struct {
			m    *nats.Msg
			code string
		}{
			{inbox("01h00000000000000000000000", "lead", "Hello"), "conversation-not-found"},
			{inbox(id, "m7", "Hello"), "member-not-found"},
			{inbox(dissolved, "m1", "Hello"), "member-shut-down"},
			{inbox(id, "lead", ""), "text-empty"},
			{inbox(id, "lead", "caf\xe9"), "text-invalid"},
			{inbox(id, "lead", "a\x00b"), "text-invalid"},
			{inbox(id, "lead", lone, "Content-Type", "application/json"), "text-invalid"},
			{inbox(id, "lead", `{"text":"x`, "Content-Type", "application/json"), "json-invalid"},
			{inbox(id, "lead", `{"text":"x","kind":"control"}`, "Content-Type", "application/json"), "kind-refused"},
			{inbox(id, "lead", `{"text":"x","mode":"soon"}`, "Content-Type", "application/json"), "mode-invalid"},
			{inbox(id, "lead", "x", "Content-Type", "image/png"), "content-type-unknown"},
			{inbox(id, "lead", "x", "Rollcall-Id", strings.Repeat("x", 200)), "id-invalid"},
			{inbox(id, "_", "\xff\xff", "Content-Type", "application/protobuf"), "command-invalid"},
			{inbox(id, "lead", strings.Repeat("x", 512<<10+1)), "text-too-long"},
		}
		for _, w := range wrong {
			p.publish(nc, w.m) // silently: it dies
			w.m.Header.Set("Rollcall-Reply", sub.Subject)
			w.m.Reply = ""
			p.publish(nc, w.m)
			if r := p.answered(sub).GetRefusal(); r.GetCode() != w.code || r.GetWhat() == "" || r.GetWhy() == "" || r.GetTry() == "" {
				t.Errorf("%.60q to %s is answered with %v, want %s", w.m.Data, w.m.Subject, r, w.code)
			}
		}
		// What is too large for the inbox is not acknowledged at all.
		reply := got(nc.RequestMsgWithContext(p.ctx(), inbox(id, "lead", strings.Repeat("x", 700<<10)))).must(t)
		if a := acknowledged(t, reply); a.Error == nil || a.Seq != 0 {
			t.Errorf("700 KiB are acknowledged: %s", reply.Data)
		}

		letters := p.dead(nc)
		if len(letters) != len(wrong) {
			t.Errorf("there are %d dead letters, want %d", len(letters), len(wrong))
		}
		for i, l := range letters {
			if i < len(wrong) && (!strings.HasPrefix(l.reason, wrong[i].code+": ") || l.text != string(wrong[i].m.Data)) {
				t.Errorf("dead letter %d says %q of %.60q, want %s", i, l.reason, l.text, wrong[i].code)
			}
		}
		doctor := p.ok("doctor")
		if !strings.Contains(doctor, fmt.Sprintf("%d messages could never succeed", len(wrong))) || !strings.Contains(doctor, "text-too-long") {
			t.Errorf("the doctor says %s", doctor)
		}
	})

	// Nothing of it is in the log, and right words still come in.
	if after := p.state(c, id).Version; after != before {
		t.Errorf("the log of the conversation went from version %d to %d", before, after)
	}
	long := strings.Repeat("Zeile für Zeile. ", 28_000)
	if s := p.feed(long, "send", "input", "-", "--wait"); s.code != 0 {
		t.Errorf("500 KiB of right words come to %d: %s", s.code, s.err)
	}
	asked := p.asked(id, "Lead")
	// It fills the request; what the Lead is for stands before it all the same.
	if got := newest(t, asked[len(asked)-1]).outside; got != "Case input: listen.\n\n"+strings.TrimSpace(long) {
		t.Errorf("the Lead reads %d bytes of %d", len(got), len(long))
	}
	p.settle(c, id, dissolved)
}

// deadLetter is a message that could never succeed, as any client with access
// to the stream reads it.
type deadLetter struct{ reason, text string }

func (p *place) dead(nc *nats.Conn) (all []deadLetter) {
	p.t.Helper()
	js := got(jetstream.New(nc)).must(p.t)
	stream := got(js.Stream(p.ctx(), "ROLLCALL_DEAD")).must(p.t)
	state := got(stream.Info(p.ctx())).must(p.t).State
	for seq := state.FirstSeq; seq <= state.LastSeq && seq > 0; seq++ {
		m := got(stream.GetMsg(p.ctx(), seq)).must(p.t)
		all = append(all, deadLetter{m.Header.Get("Rollcall-Reason"), string(m.Data)})
	}
	return all
}

// TestNames: names in any script go round the whole way and come back as they
// are, in one normal form; those that cannot be are refused.
func TestNames(t *testing.T) {
	t.Parallel()
	names := []string{"调研员", "محلل البيانات", "👩‍🚀 Zoë", "Zoe\u0308 2", "नमस्ते", "Œuvre-d’art", "d.o.t & <b>", "Ж/"[:2], strings.Repeat("漢", 64)}
	bad := []string{"", "a/b", "a\\b", "tab\tbed", strings.Repeat("漢", 65), strings.Repeat("n", 4<<10), "user", "m3", "调研员"}
	var tools strings.Builder
	for _, name := range append(append([]string{}, names...), bad...) {
		fmt.Fprintf(&tools, "      - {name: team_member_add, args: {name: %q, initial_prompt: Say your name.}}\n", name)
	}
	p := newPlace(t, script(t, `rules:
  - name: everybody
    member: '^Lead$'
    lacks: ['"name":"team_create","arguments"']
    tools:
      - {name: team_create, args: {name: 世界}}
`+tools.String()+`  - {name: call them, member: '^Lead$', text: All are here.}
  - {name: here, capture: {me: 'Your name is \\"([^"]*?)\\"\.'}, text: 'I am {{me}}.'}
`))
	p.start()
	c := p.client()
	const title = "Größe 測試 🎌 e\u0301"
	id := p.detach(title, "Call the world.")
	s := p.until(c, id, "all rest", func(s *domain.State) bool { return quiet(s) && len(s.Members) > 1 })
	if len(s.Members) != len(names)+1 {
		t.Errorf("there are %d members of %d names", len(s.Members)-1, len(names))
	}
	for i, add := range outcomes(p.facts(c, id), "team_member_add") {
		if text := add.GetOutput().GetText(); add.GetError() != (i >= len(names)) || add.GetError() && !strings.Contains(text, "name-") || len(text) > 1<<10 {
			t.Errorf("member %d came to %.300q", i, text)
		}
	}
	shows, rolled := document[api.Detail](p, "show", title), roll(t, p, c)
	if shows.Name != norm.NFC.String(title) || shows.ID != id {
		t.Errorf("the conversation is named %q", shows.Name)
	}
	for i, name := range names {
		name = norm.NFC.String(name)
		member := fmt.Sprintf("m%d", i+1)
		if got := shows.Members[i+1].Name; got != name {
			t.Errorf("show names %q as %q", name, got)
		}
		if got := rolled[id+"/"+member].Name; got != name {
			t.Errorf("%q answers the roll as %q", name, got)
		}
		asked := p.asked(id, name)
		if len(asked) != 1 || asked[0].RuleName != "here" {
			t.Errorf("%q was asked %d times", name, len(asked))
		}
	}
	p.ok("send", title+"/"+names[3], "By a name that is written otherwise.", "--wait")
	if asked := p.asked(id, norm.NFC.String(names[3])); len(asked) != 2 {
		t.Errorf("%q was reached %d times", names[3], len(asked)-1)
	}
	p.refused("text-too-long", 4, "run", "x", "--name", strings.Repeat("n", 4<<10), "--detach")
	p.settle(c, id)
}
