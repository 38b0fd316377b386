package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// rollScript makes teams: "big" ones of 16 resting and 2 asking members,
// "small" ones of 15 and 1.
func rollScript() string {
	team := func(rest, ask int) string {
		var b strings.Builder
		b.WriteString("      - {name: team_create, args: {name: crew}}\n")
		for i := range rest {
			fmt.Fprintf(&b, "      - {name: team_member_add, args: {name: Rest%d, initial_prompt: 'Stand by.'}}\n", i+1)
		}
		for i := range ask {
			fmt.Fprintf(&b, "      - {name: team_member_add, args: {name: Ask%d, initial_prompt: 'Ask for the region of {{place}}.'}}\n", i+1)
		}
		return b.String()
	}
	return `rules:
  - member: '^Lead$'
    has: ['Make a big team']
    lacks: ['"name":"team_create","arguments"']
    capture: {place: 'team for (\w+)'}
    tools:
` + team(16, 2) + `
  - member: '^Lead$'
    has: ['Make a small team']
    lacks: ['"name":"team_create","arguments"']
    capture: {place: 'team for (\w+)'}
    tools:
` + team(15, 1) + `
  - {member: '^Lead$', text: 'The team stands by.'}
  - {member: '^Rest', text: 'Standing by.'}
  - member: '^Ask'
    lacks: ['"name":"send_message","arguments"']
    capture: {place: 'region of (\w+)'}
    tools:
      - {name: send_message, args: {to: user, text: 'Which region for {{place}}?', wait_for_reply: true}}
  - member: '^Ask'
    has: ['Region: \w+']
    capture: {place: 'Which region for (\w+)', region: 'Region: (\w+)'}
    text: '{{place}} is in {{region}}.'
`
}

// restart-roll-no-call: 1,000 idle and 100 waiting members in 60 conversations
// survive kill -9. All 1,100 answer the roll from their actors with the states
// they had, and the model server has seen no connection. Then one message to
// each waiter starts exactly 100 runs, each with its right context.
func TestRestartRollNoCall(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, rollScript()))
	p.start()
	c := p.client()
	ids := make([]string, 60)
	for i := range ids {
		size := "big"
		if i >= 40 {
			size = "small"
		}
		ids[i] = p.open(c, fmt.Sprintf("crew %d", i), fmt.Sprintf("Make a %s team for Town%d.", size, i))
	}
	for _, id := range ids {
		p.until(c, id, "the crew stands by", func(s *domain.State) bool { return quiet(s) && len(s.Members) > 10 })
	}
	before := roll(t, p, c)
	counts := map[string]int{}
	for _, m := range before {
		counts[m.Status]++
	}
	if len(before) != 1100 || counts["idle"] != 1000 || counts["waiting"] != 100 {
		t.Fatalf("%d members answer: %v", len(before), counts)
	}

	p.kill()
	came, asked := p.door.count.Load(), len(p.models.Requests())
	p.start()
	c = p.client()
	after := roll(t, p, c)
	for key, m := range before {
		if got := after[key]; got.StateHash != m.StateHash || got.Status != m.Status || got.Version != m.Version {
			t.Errorf("%s was %+v and is %+v", key, m, got)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d members answer after the restart, %d before", len(after), len(before))
	}
	if n := p.door.count.Load() - came; n != 0 {
		t.Errorf("%d connections to the model server by restarting and calling the roll", n)
	}

	for i, id := range ids {
		for _, m := range after {
			if m.Conversation != id || m.Status != "waiting" {
				continue
			}
			_, err := c.Send(p.ctx(), id, &rollcallv1.PostMessage{
				To: m.ID, Kind: rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, Body: &rollcallv1.Body{Text: fmt.Sprintf("Region: R%d", i)},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, id := range ids {
		p.until(c, id, "the waiters are done", func(s *domain.State) bool { return quiet(s) && s.Status() == "idle" })
	}
	requests := p.models.Requests()[asked:]
	if len(requests) != 100 {
		t.Errorf("%d model calls for 100 messages", len(requests))
	}
	for _, r := range requests {
		var i int
		for n, id := range ids {
			if id == r.Conversation {
				i = n
			}
		}
		if want := fmt.Sprintf("Region: R%d", i); !strings.Contains(string(r.Body), want) || !strings.Contains(string(r.Body), fmt.Sprintf("Which region for Town%d?", i)) {
			t.Errorf("%s of crew %d was not shown its question and %q", r.Member, i, want)
		}
	}
	p.settle(c, ids...)
}

func roll(t *testing.T, p *place, c *api.Client) map[string]api.MemberRoll {
	t.Helper()
	answer, err := c.Roll(p.ctx(), api.ReadRequest{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]api.MemberRoll{}
	for _, m := range answer.Members {
		out[m.Conversation+"/"+m.ID] = m
	}
	return out
}
