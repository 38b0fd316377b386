package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
)

const interruptScript = `rules:
  # Interrupted while it thinks, with a Scout's report unread.
  - name: send the scout
    member: '^Lead$'
    has: [Case interrupt]
    lacks: ['"name":"team_create","arguments"']
    tools:
      - {name: team_create, args: {name: scouts}}
      - {name: team_member_add, args: {name: Scout, initial_prompt: Look at the ford.}}
  - {name: think, member: '^Lead$', has: [Case interrupt], lacks: [not that way], hold: thinking, text: Never said.}
  - {name: turn back, member: '^Lead$', has: [not that way], text: We turn back.}
  - name: report
    member: '^Scout$'
    lacks: ['"name":"send_message","arguments"']
    hold: ford
    tools: [{name: send_message, args: {to: Lead, text: The ford is deep.}}]
  - name: scout's step
    member: '^Scout$'
    lacks: ['"name":"file_list","arguments"']
    hold: scouting
    tools: [{name: file_list, args: {}}]
  - {name: scout ends, member: '^Scout$', text: At the ford.}

  # Steered at the next step.
  - name: before steering
    member: '^Lead$'
    has: [Case steer]
    lacks: ['"name":"task_list","arguments"']
    hold: steering
    tools: [{name: task_list, args: {}}, {name: file_list, args: {}}]
  - {name: steered, member: '^Lead$', has: [Case steer, take the left road], text: Left it is.}

  # Queued for the turn after this one.
  - name: before queueing
    member: '^Lead$'
    has: [Case queue]
    lacks: ['"name":"task_list","arguments"']
    hold: queueing
    tools: [{name: task_list, args: {}}]
  - {name: first turn ends, member: '^Lead$', has: [Case queue], lacks: [then the bridge], text: First thing done.}
  - {name: queued, member: '^Lead$', has: [Case queue, then the bridge], text: Bridge done.}

  # Interrupted by hand.
  - {name: before the hand, member: '^Lead$', has: [Case hand], lacks: [asks you to try again], hold: by hand, text: Never said.}
  - {name: after the hand, member: '^Lead$', has: [Case hand], text: Done after all.}
`

// TestInterruption: the operator's words meet an open run in three ways.
func TestInterruption(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, interruptScript))
	p.start()
	c := p.client()
	interrupt, steer, queue := p.detach("interrupt", "Case interrupt: cross."), p.detach("steer", "Case steer: walk."), p.detach("queue", "Case queue: build.")

	// mailbox-user-message-interrupts: the call is aborted, and the next turn
	// reads all that is unread, in order.
	t.Run("mailbox-user-message-interrupts", func(t *testing.T) {
		p := p.on(t)
		thinking := p.held("thinking")
		p.held("ford")
		p.models.Release("ford")
		p.until(c, interrupt, "the report lies unread", func(s *domain.State) bool { return len(s.Lead().Unread) == 1 })
		scouting := p.held("scouting")
		p.ok("send", "interrupt", "No, not that way.")
		p.served(interrupt, "turn back")
		p.poll("the client of the aborted call is gone", func() bool { return p.models.Requests()[thinking.N-1].Ended })
		if r := p.models.Requests()[thinking.N-1]; !r.Gone || r.Step != "2" {
			t.Errorf("step %s, which the operator interrupted: %+v", r.Step, r.Status)
		}
		if p.models.Requests()[scouting.N-1].Ended {
			t.Error("the Scout was stopped, too")
		}
		// The Scout is no Lead: the operator's words steer it.
		p.ok("send", "interrupt/Scout", "Wait there.")
		p.models.Release("scouting")
		p.models.Release("thinking")
		p.until(c, interrupt, "all rest", quiet)

		facts := p.facts(c, interrupt)
		runs := runsOf(facts, "lead")
		if len(runs) != 2 || ended(facts, runs[0].GetRun()) != "interrupted" {
			t.Fatalf("the Lead's runs: %v", runs)
		}
		var unread []string
		for _, m := range delivered(facts, "lead") {
			if !slices.Contains(ids(runs[0].GetConsumed()), m.GetMessage()) {
				unread = append(unread, m.GetMessage())
			}
		}
		if got := ids(runs[1].GetConsumed()); !slices.Equal(got, unread) || len(got) != 2 {
			t.Errorf("the next turn reads %v, unread were %v", got, unread)
		}
		back := newest(t, p.served(interrupt, "turn back"))
		if back.outside != "No, not that way." || len(back.mail) != 1 || back.mail[0].text != "The ford is deep." || len(back.notices) != 1 {
			t.Errorf("the Lead reads %+v", back)
		}
		end := p.served(interrupt, "scout ends")
		if end.Run != scouting.Run || newest(t, end).outside != "Wait there." || p.models.Requests()[scouting.N-1].Gone {
			t.Errorf("the Scout reads %+v in run %s", newest(t, end), end.Run)
		}
	})

	t.Run("steer", func(t *testing.T) {
		p := p.on(t)
		before := p.held("steering")
		p.ok("send", "steer", "Now take the left road.", "--steer")
		p.models.Release("steering")
		p.until(c, steer, "all rest", quiet)
		after := p.served(steer, "steered")
		if p.models.Requests()[before.N-1].Gone || after.Run != before.Run || after.Step != "2" {
			t.Errorf("run %s, step %s follows run %s", after.Run, after.Step, before.Run)
		}
		// What came in while the tools ran stands behind all their results.
		var roles []string
		for _, m := range read(t, after) {
			roles = append(roles, m.role)
		}
		if got := strings.Join(roles, " "); got != "system user assistant tool tool user" || newest(t, after).outside != "Now take the left road." {
			t.Errorf("step 2 is %s", got)
		}
	})

	t.Run("queue", func(t *testing.T) {
		p := p.on(t)
		before := p.held("queueing")
		p.ok("send", "queue", "And then the bridge.", "--queue")
		p.models.Release("queueing")
		p.until(c, queue, "all rest", quiet)
		if r := p.served(queue, "first turn ends"); p.models.Requests()[before.N-1].Gone || r.Run != before.Run || times(t, r, "then the bridge") != 0 {
			t.Errorf("the turn that was open ended as run %s, step %s", r.Run, r.Step)
		}
		if r := p.served(queue, "queued"); r.Run == before.Run || r.Step != "1" {
			t.Errorf("the queued words are read in run %s, step %s", r.Run, r.Step)
		}
		if runs := runsOf(p.facts(c, queue), "lead"); len(runs) != 2 {
			t.Errorf("there were %d turns", len(runs))
		}
	})

	// By hand: what was read and not answered is unread again, and rests until
	// the operator says so.
	var hand string
	t.Run("mailbox-mail-returned", func(t *testing.T) {
		p := p.on(t)
		run := p.begin("run", "Case hand: think.", "--name", "hand", "--contract", "mailbox", "--json")
		open := p.held("by hand")
		hand = open.Conversation
		p.ok("interrupt", hand)
		if end := run.wait().ended(t); end.Status != "waiting" || end.Exit != 6 {
			t.Errorf("run ended with %+v", end)
		}
		unread := document[api.MailAnswer](p, "mail", "hand/lead", "--unread")
		if len(unread.Messages) != 1 || unread.Messages[0].Text.Text != "Case hand: think." {
			t.Errorf("unread is %+v", unread.Messages)
		}
		p.ok("retry", "hand")
		p.until(c, hand, "the Lead rests", quiet)
		after := p.served(hand, "after the hand")
		if got := answer(p.events(c, hand)); got != "Done after all." || times(t, after, "Case hand: think.") != 1 {
			t.Errorf("tried again it came to %q", got)
		}
		if !p.models.Requests()[open.N-1].Gone {
			t.Error("the interrupted call went on")
		}
	})
	p.settle(c, interrupt, steer, queue, hand)
}

// TestPause: a paused conversation stops at the end of its step, and stays there
// over kill -9, without a call, until it is resumed.
func TestPause(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, `rules:
  - {name: step 1, lacks: ['"name":"task_list","arguments"'], hold: pausing, tools: [{name: task_list, args: {}}]}
  - {name: step 2, text: I go on.}
`))
	p.start()
	c := p.client()
	id := p.detach("pause", "Count the tasks.")
	first := p.held("pausing")
	p.ok("pause", "pause")
	p.models.Release("pausing")
	p.until(c, id, "the step ends", quiet)
	p.ok("send", "pause", "Faster!", "--queue") // kept, and wakes nobody
	p.kill()
	came := p.door.count.Load()
	p.start()
	s := p.state(c, id)
	if !s.Paused || s.Status() != "paused" || s.Lead().Run == nil || s.Lead().Run.ID != first.Run || p.door.count.Load() != came {
		t.Errorf("after the restart it is %s, with %d connections to the model server", s.Status(), p.door.count.Load()-came)
	}
	p.ok("resume", "pause")
	p.until(c, id, "it rests", func(s *domain.State) bool { return quiet(s) && len(s.Lead().Unread) == 0 })
	asked := p.asked(id, "")
	if len(asked) != 3 || asked[1].Run != first.Run || asked[1].Step != "2" || asked[2].Run == first.Run {
		t.Errorf("%d calls", len(asked))
	}
	p.settle(c, id)
}
