package e2e_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const waitScript = `rules:
  # Two questions at once, answered in the other order.
  - name: two who talk
    member: '^Lead$'
    has: [Case cross]
    lacks: ['"name":"team_create","arguments"']
    tools:
      - {name: team_create, args: {name: talkers}}
      - {name: team_member_add, args: {name: Bea, initial_prompt: Answer what you are asked.}}
      - {name: team_member_add, args: {name: Abe, initial_prompt: Ask Bea twice.}}
  - {name: lead rests, member: '^Lead$', text: They talk.}
  - {name: bea is ready, member: '^Bea$', lacks: ['from=\\"Abe\\"'], text: Ready.}
  - name: ask twice
    member: '^Abe$'
    lacks: ['"name":"send_message","arguments"']
    hold: bea rests
    tools:
      - {name: send_message, args: {to: Bea, text: Question one?, wait_for_reply: true}}
      - {name: send_message, args: {to: Bea, text: Question two?, wait_for_reply: true}}
      - {name: file_write, args: {path: after.txt, content: The rest of the batch is run.}}
  - name: answer two
    member: '^Bea$'
    lacks: ['Answer two']
    capture: {two: 'id=\\"(msg\d+)\\" from=\\"Abe\\"[^>]*>Question two'}
    tools: [{name: send_message, args: {to: Abe, text: Answer two., reply_to: '{{two}}'}}]
  - name: answer one
    member: '^Bea$'
    lacks: ['Answer one']
    hold: one is open
    capture: {one: 'id=\\"(msg\d+)\\" from=\\"Abe\\"[^>]*>Question one'}
    tools: [{name: send_message, args: {to: Abe, text: Answer one., reply_to: '{{one}}'}}]
  - {name: answered, member: '^Bea$', text: Both are answered.}
  - {name: half, member: '^Abe$', lacks: [Answer one], text: I know two.}
  - {name: whole, member: '^Abe$', text: I know both.}
`

// TestTwoWaits: of two questions each is closed by its own answer, whichever
// comes first; a wait sleeps through kill -9, and costs no call.
func TestTwoWaits(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, waitScript))
	p.start()
	c := p.client()
	id := p.detach("cross", "Case cross: talk.")
	p.held("bea rests")
	p.until(c, id, "Bea rests", func(s *domain.State) bool { return idle("Bea")(s) && idle("Lead")(s) })
	p.models.Release("bea rests")
	p.held("one is open")
	p.served(id, "half")
	s := p.until(c, id, "Abe sleeps on", func(s *domain.State) bool { return s.Named("Abe").Run == nil && len(s.Named("Abe").Unread) == 0 })
	asked := delivered(p.facts(c, id), "m1")
	one, two := asked[1].GetMessage(), asked[2].GetMessage()
	if abe := s.Named("Abe"); domain.Word(abe.Status) != "waiting" || len(abe.Waits) != 1 || abe.Waits[0].Message != one {
		t.Errorf("Abe is %s on %+v", domain.Word(abe.Status), abe.Waits)
	}
	if got := p.ok("files", id+"/Abe", "get", "after.txt"); got != "The rest of the batch is run." {
		t.Errorf("the call behind the questions wrote %q", got)
	}

	calls := len(p.asked(id, "Abe"))
	p.kill()
	p.start()
	p.models.Release("one is open")
	s = p.until(c, id, "all rest", quiet)
	resting(t, s)
	var ends []string
	for _, e := range only(p.facts(c, id), (*rollcallv1.Event).GetWaitEnded) {
		ends = append(ends, e.GetMessage()+" "+e.GetReason())
	}
	// The first answer may come before the batch, and with it the wait, is done.
	if got := strings.Join(ends, ", "); got != two+" replied, "+one+" replied" && got != one+" replied" {
		t.Errorf("the waits ended as %s", got)
	}
	more := p.asked(id, "Abe")[calls:]
	if len(more) != 1 || more[0].RuleName != "whole" || times(t, more[0], "Answer two.") != 1 {
		t.Errorf("%d calls of Abe after the restart", len(more))
	}
	p.settle(c, id)
}

// TestBacklog: a thousand messages that came in while a model was thinking are
// one turn, bounded and told what is left out, and what is left out can be
// read; nothing is read again after a restart.
func TestBacklog(t *testing.T) {
	t.Parallel()
	const backlog = 1000
	p := newPlace(t, script(t, `rules:
  - {name: think, lacks: [number 1000], hold: thinking, text: Let me think.}
  - {name: read on, lacks: ['"name":"mail_read","arguments"'], tools: [{name: mail_read, args: {after: msg400}}]}
  - {name: read all, capture: {secret: 'number 4(\d\d)\b'}, text: 'It says {{secret}}.'}
`))
	p.start()
	c := p.client()
	id := p.detach("backlog", "Think.")
	p.held("thinking")
	nc := p.nats()
	for i := range backlog {
		m := inbox(id, "lead", fmt.Sprintf(`{"kind":"framework_alert","text":"number %d"}`, i+1), "Content-Type", "application/json")
		if err := nc.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	p.until(c, id, "all is in the mailbox", func(s *domain.State) bool { return len(s.Lead().Unread) == backlog })
	p.models.Release("thinking")
	p.until(c, id, "all is read", quiet)
	asked := p.asked(id, "Lead")
	if len(asked) != 3 {
		t.Fatalf("%d calls", len(asked))
	}
	last := newest(t, asked[1])
	shown := len(last.mail)
	if shown == 0 || shown == backlog || len(last.notices) != 1 || !strings.HasPrefix(last.notices[0], fmt.Sprintf("%d earlier messages are not shown: %d from framework", backlog-shown, backlog-shown)) {
		t.Errorf("%d messages are shown, and %q", shown, last.notices)
	}
	if last.mail[shown-1].text != fmt.Sprintf("number %d", backlog) {
		t.Errorf("the newest shown is %q", last.mail[shown-1].text)
	}
	// The first message is the objective, msg401 the 400th alert: no frame
	// showed it, and what the Lead says of it can only come from the tool.
	if times(t, asked[1], "number 400<") != 0 {
		t.Error("the frame shows what it leaves out")
	}
	events := p.events(c, id)
	if got := answer(events); !regexp.MustCompile(`^It says \d\d\.$`).MatchString(got) {
		t.Errorf("the Lead says %q", got)
	}
	if read := outcomes(p.facts(c, id), "mail_read"); len(read) != 1 || !strings.Contains(read[0].GetOutput().GetText(), ">number 400</message>") || !strings.Contains(read[0].GetOutput().GetText(), "go on with after=") {
		t.Errorf("mail_read came to %v", read)
	}
	p.settle(c, id)
}
