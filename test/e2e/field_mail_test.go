package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// bodies are ten numbered texts that a careless hand would change.
var bodies = []string{
	"body 1: plain",
	"body 2: two lines\nand a third after a blank one\n\n  indented, and a line with a trailing space \nto its end",
	"body 3: <team-mailbox> & </team-mailbox> \"quoted\" 'single' &amp; &lt; \\n \\u0041 %s $HOME",
	"body 4: Zoë, Zoe\u0308, 调研, 👩‍👩‍👧, \u202eright to left\u202c, no\u200bspace, \ufeffmark",
	"body 5: {\"to\":\"Ben\",\"text\":\"no call of mine\"}",
	"body 6: ```json\n[1, 2, 3]\n```\n| a | b |\n|---|---|",
	"body 7: Human: do it\nAssistant: done\nsystem: never",
	"body 8: " + strings.Repeat("long and longer, ", 900) + "to its end.",
	"body 9: \ttabs\tand a line that ends in a backslash \\",
	"  body 10: indented, the last one, and a space behind ",
}

// sends are calls of send_message, as a script has them.
func sends(t *testing.T, texts []string, to ...string) string {
	t.Helper()
	var b strings.Builder
	for _, text := range texts {
		for _, name := range to {
			args, err := json.Marshal(map[string]string{"to": name, "text": text})
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "      - {name: send_message, args: %s}\n", args)
		}
	}
	return b.String()
}

func fieldMailScript(t *testing.T) string {
	return `rules:
  # Bodies, while the Lead is in the middle of its turn.
  - name: pen friends
    member: '^Lead$'
    has: [Case bodies]
    lacks: ['"name":"team_create","arguments"']
    tools:
      - {name: team_create, args: {name: friends}}
      - {name: team_member_add, args: {name: Ana, initial_prompt: Write to Ben.}}
      - {name: team_member_add, args: {name: Ben, initial_prompt: Write to Ana.}}
  - {name: busy, member: '^Lead$', has: [Case bodies], lacks: ['"name":"task_list","arguments"'], hold: letters, tools: [{name: task_list, args: {}}]}
  - {name: has read, member: '^Lead$', has: [Case bodies], text: I have read it all.}
  - name: ana writes
    member: '^Ana$'
    lacks: ['"name":"send_message","arguments"']
    tools:
` + sends(t, bodies[:5], "Ben", "Lead") + `
  - name: ben writes
    member: '^Ben$'
    has: ['body 5']
    lacks: ['"name":"send_message","arguments"']
    tools:
` + sends(t, bodies[5:], "Ana", "Lead") + `
  - {name: ana has read, member: '^Ana$', text: Ana rests.}
  - {name: ben has read, member: '^Ben$', text: Ben rests.}

  # A turn of thirty rounds.
  - name: a walker
    member: '^Lead$'
    has: [Case rounds]
    lacks: ['"name":"team_create","arguments"']
    tools:
      - {name: team_create, args: {name: walkers}}
      - {name: team_member_add, args: {name: Walker, initial_prompt: Walk thirty rounds.}}
  - {name: pass it on, member: '^Lead$', has: [Case rounds, Tell the Walker], lacks: ['"name":"send_message","arguments"'], tools: [{name: send_message, args: {to: Walker, text: 'mark: from the Lead'}}]}
  - {name: lead of walkers, member: '^Lead$', has: [Case rounds], text: It walks.}
  - {name: round 3, member: '^Walker$', has: ['(?s)("name":"task_list","arguments".*){2}'], lacks: ['(?s)("name":"task_list","arguments".*){3}'], hold: round 3, tools: [{name: task_list, args: {}}]}
  - {name: a round, member: '^Walker$', lacks: ['(?s)("name":"task_list","arguments".*){30}'], tools: [{name: task_list, args: {}}]}
  - {name: the end, member: '^Walker$', lacks: [too late for it], hold: the end, text: Thirty rounds are done.}
  - {name: after the end, member: '^Walker$', text: I heard that too.}

  # Names at the doors.
  - name: a desk
    member: '^Lead$'
    has: [Case doors]
    lacks: ['"name":"team_create","arguments"']
    tools:
      - {name: team_create, args: {name: desk}}
      - {name: team_member_add, args: {name: Gone, initial_prompt: Leave.}}
      - {name: team_member_add, args: {name: Nora, initial_prompt: Stay.}}
      - {name: team_member_remove, args: {name: Gone}}
  - {name: rest, text: I rest.}
`
}

// TestFieldMail: what is written is what is read, at the next round at the
// latest, and what is written to nobody is refused.
func TestFieldMail(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, fieldMailScript(t)))
	// The Walker's thirty rounds are alike, which the guard would take for a loop.
	p.env = append(p.env, "ROLLCALL_CONFIG="+p.file("rounds.yaml", "limits: {identical_calls: off}\n"))
	p.start()
	c := p.client()
	letters, rounds, doors := p.detach("letters", "Case bodies: correspond."), p.detach("rounds", "Case rounds: walk."), p.detach("doors", "Case doors: sit.")

	// Elsewhere a peer's message arrived as a notice without its body, and mail to
	// the Lead was dropped.
	t.Run("b02-bodies-byte-by-byte", func(t *testing.T) {
		p := p.on(t)
		p.held("letters")
		p.until(c, letters, "both have written and read", func(s *domain.State) bool {
			return len(s.Members) == 3 && idle("Ana")(s) && idle("Ben")(s) && len(s.Lead().Unread) == len(bodies) && len(s.Named("Ana").Unread) == 0
		})
		p.models.Release("letters")
		p.until(c, letters, "all rest", quiet)
		for reader, want := range map[string][]string{"Ana": bodies[5:], "Ben": bodies[:5], "Lead": bodies} {
			var got []string
			for _, r := range p.asked(letters, reader) {
				got = nil // each request shows all that came before
				for _, turn := range turnsOf(t, r) {
					for _, l := range turn.mail {
						if l.head["kind"] == "text" {
							got = append(got, l.text)
						}
					}
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s reads\n%q\nwritten was\n%q", reader, got, want)
			}
		}
		mail := got(c.Mail(p.ctx(), api.MailRequest{ReadRequest: api.ReadRequest{Conversation: letters, Member: "lead"}})).must(t)
		var listed []string
		for _, m := range mail.Messages {
			if m.Kind == "text" {
				listed = append(listed, got(c.Text(p.ctx(), letters, m.Text)).must(t))
			}
		}
		if !slices.Equal(listed, bodies) {
			t.Errorf("listed are\n%q", listed)
		}
	})

	// Elsewhere mail lay behind a long turn for an hour, and the last was lost.
	t.Run("b03-mail-in-the-next-round", func(t *testing.T) {
		p := p.on(t)
		third := p.held("round 3")
		p.ok("send", rounds+"/Walker", "mark: from the operator")
		nc := p.nats()
		p.publish(nc, inbox(rounds, "m1", `{"kind":"framework_alert","text":"mark: from outside"}`, "Content-Type", "application/json"))
		for _, task := range []*rollcallv1.ChangeTask{{Title: "mark: ready", Owner: "Walker"}, {Title: "mine", Owner: "user"}, {Title: "mark: assigned", Owner: "Walker", Dependencies: []string{"t2"}}} {
			task.Operation = rollcallv1.ChangeTask_OPERATION_ADD
			got(c.ChangeTask(p.ctx(), rounds, task)).must(t)
		}
		p.ok("send", rounds, "Tell the Walker.")
		p.until(c, rounds, "the Lead has told it", func(s *domain.State) bool { return len(s.Named("Walker").Unread) == 5 && s.Lead().Run == nil })
		p.models.Release("round 3")
		p.held("the end")
		fourth := p.asked(rounds, "Walker")[3]
		if fourth.Run != third.Run || fourth.Step != "4" || third.Step != "3" {
			t.Fatalf("step %s of %s follows step %s of %s", fourth.Step, fourth.Run, third.Step, third.Run)
		}
		for _, mark := range []string{"mark: from the operator", "mark: from outside", "mark: ready", "mark: assigned", "mark: from the Lead"} {
			if times(t, third, mark) != 0 || times(t, fourth, mark) == 0 {
				t.Errorf("%q stands %d times in round 3 and %d times in round 4", mark, times(t, third, mark), times(t, fourth, mark))
			}
		}
		facts := p.facts(c, rounds)
		read := versionOf(t, facts, "it reads", func(e *rollcallv1.Event) bool { return e.GetMessagesConsumed().GetMember() == "m1" })
		called := versionOf(t, facts, "round 4", func(e *rollcallv1.Event) bool {
			return e.GetModelCallStarted().GetMember() == "m1" && e.GetModelCallStarted().GetStep() == 4
		})
		if read != called || len(only(facts, (*rollcallv1.Event).GetMessagesConsumed)) != 1 {
			t.Errorf("read in version %d, round 4 begins in version %d", read, called)
		}
		// What comes while the last round is thought over is a turn of its own.
		p.ok("send", rounds+"/Walker", "too late for it")
		p.models.Release("the end")
		after := p.served(rounds, "after the end")
		p.until(c, rounds, "all rest", quiet)
		if n := len(p.asked(rounds, "Walker")); n != 32 || after.Run == third.Run || newest(t, after).outside != "too late for it" {
			t.Errorf("%d calls; the last reads %+v", n, newest(t, after))
		}
	})

	// Elsewhere a message to a name that nobody has succeeded.
	t.Run("b01-unknown-recipient", func(t *testing.T) {
		p := p.on(t)
		before := p.until(c, doors, "the desk is open", func(s *domain.State) bool { return quiet(s) && len(s.Members) == 3 && idle("Nora")(s) })
		for _, args := range [][]string{{"send", doors + "/Norah", "Hello!"}, {"interrupt", doors + "/Ｎｏｒａ"}, {"mail", doors + "/user2"}} {
			if why := p.refused("member-not-found", 3, args...); !strings.Contains(why.Why+why.Try, "Nora") {
				t.Errorf("%q is refused without the names: %+v", args, why)
			}
		}
		for _, name := range []string{"Norah", "ora", "Nоra", "Ｎｏｒａ", "No ra", "Nora\u200b", "N\u200bora", "desk", "team1", "user", "operator", "framework", "m7", "m01", "*", ">"} {
			_, err := c.Send(p.ctx(), doors, &rollcallv1.PostMessage{To: name, Body: &rollcallv1.Body{Text: "Hello!"}})
			if r := api.AsRefusal(err); err == nil || r.Code != "member-not-found" || !strings.Contains(r.Why+r.Try, "Nora") {
				t.Errorf("a word to %q came to %v", name, err)
			}
		}
		for _, name := range []string{"Gone", "m1"} {
			_, err := c.Send(p.ctx(), doors, &rollcallv1.PostMessage{To: name, Body: &rollcallv1.Body{Text: "Hello!"}})
			if r := api.AsRefusal(err); err == nil || r.Code != "member-shut-down" || !strings.Contains(r.Try, "Nora") {
				t.Errorf("a word to %s came to %v", name, err)
			}
		}
		nc := p.nats()
		sub := got(nc.SubscribeSync(nats.NewInbox())).must(t)
		outside := []string{"Nora", "nora", "m7", "m1", "M2", "m02", "user", "desk", "Ｎｏｒａ"}
		for _, to := range outside {
			p.publish(nc, inbox(doors, to, "Hello!", "Rollcall-Reply", sub.Subject))
			r := p.answered(sub).GetRefusal()
			named := strings.Contains(r.GetTry(), "Nora") || !domain.ValidToken(to) && strings.Contains(r.GetTry(), "short id, such as lead or m1")
			if r.GetCode() != "member-not-found" && r.GetCode() != "member-shut-down" || !named {
				t.Errorf("a message to .%s is answered %v", to, r)
			}
			p.publish(nc, inbox(doors, to, "Hello, "+to, "Nats-Msg-Id", "nobody-"+to)) // nobody waits for its answer
		}
		p.poll("they are kept as dead letters", func() bool { return len(p.dead(nc)) == len(outside) })
		doctor := got(c.Doctor(p.ctx())).must(t)
		if i := slices.IndexFunc(doctor.Checks, func(c api.Check) bool { return c.Name == "dead letters" }); i < 0 || doctor.Checks[i].Level == api.OK {
			t.Errorf("doctor says %+v", doctor.Checks)
		}
		if after := p.state(c, doors); after.Hash() != before.Hash() {
			t.Errorf("version %d came to be", after.Version)
		}
		got(c.Send(p.ctx(), doors, &rollcallv1.PostMessage{To: "Nora", Body: &rollcallv1.Body{Text: "It is you."}})).must(t)
		p.until(c, doors, "Nora reads it", func(s *domain.State) bool { return quiet(s) && len(p.asked(doors, "Nora")) == 2 })
	})
	p.settle(c, letters, rounds, doors)
}
