package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// traceScript is the long collaboration of a Lead and one Worker. The Worker
// waits where the Lead must rest first.
const traceScript = `rules:
  - name: begin
    member: '^Lead$'
    lacks: ['"name":"team_create","arguments"']
    tools:
      - {name: team_create, args: {name: river watch}}
      - {name: task_create, args: {title: gauge, description: Read the gauge., owner: Worker}}
      - {name: team_member_add, args: {name: Worker, initial_prompt: 'Read the gauge each round and tell Lead what it says.'}}
  - name: under way
    member: '^Lead$'
    lacks: ['Round 1:']
    text: The Worker has begun.
  - name: report round 1
    member: '^Lead$'
    lacks: ['New direction:']
    capture: {level: 'Round 1: the level is (\d+ m)'}
    text: 'The river stands at {{level}}.'
  - name: redirect
    member: '^Lead$'
    lacks: ['"name":"send_message","arguments"']
    capture: {focus: 'New direction: (\w+)'}
    tools: [{name: send_message, args: {to: Worker, text: 'Direction adjustment: measure the {{focus}} too.'}}]
  - name: redirected
    member: '^Lead$'
    lacks: ['Round 2:']
    text: The Worker turns to it.
  - name: report round 2
    member: '^Lead$'
    capture: {found: 'Round 2: ([^\\"<]+)'}
    text: 'The second round says: {{found}}'

  - name: claim
    member: '^Worker$'
    lacks: ['"name":"task_update","arguments"']
    tools:
      - {name: task_update, args: {task_id: t1, owner: Worker, status: in_progress}}
      - {name: file_write, args: {path: rounds/1.txt, content: 'level 3 m'}}
  - name: deliver
    hold: lead rests
    member: '^Worker$'
    lacks: ['"name":"task_complete","arguments"']
    tools: [{name: task_complete, args: {task_id: t1, result: The gauge is read., paths: [rounds/1.txt]}}]
  - name: tell
    member: '^Worker$'
    lacks: ['"name":"send_message","arguments"']
    tools: [{name: send_message, args: {to: lead, text: 'Round 1: the level is 3 m.'}}]
  - name: rest 1
    member: '^Worker$'
    lacks: ['Direction adjustment:']
    text: Round 1 is done.
  - name: look back
    hold: lead rests again
    member: '^Worker$'
    lacks: ['"name":"file_read","arguments"']
    tools: [{name: file_read, args: {path: rounds/1.txt}}]
  - name: apply
    member: '^Worker$'
    lacks: ['rounds/2.txt']
    capture: {focus: 'measure the (\w+) too', before: '"role":"tool","content":"(?:[^"\\]|\\.)*(level \d+ m)'}
    tools:
      - {name: file_write, args: {path: rounds/2.txt, content: '{{before}} and the {{focus}}'}}
      - {name: send_message, args: {to: Lead, text: 'Round 2: {{before}} as before, and the {{focus}} is 7 degrees.'}}
  - name: rest 2
    member: '^Worker$'
    text: Round 2 is done.
`

// mailbox-trace: the long collaboration of the source document, turn by turn,
// with an operator who goes away and comes back.
func TestMailboxTrace(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, traceScript))
	p.start()
	id := p.detach("river", "Watch the river for a year.")

	// The Lead adds a Worker with its prompt and ends its turn. Nobody is here
	// when the Worker works: only the model server looks on.
	p.served(id, "under way")
	c := p.client()
	p.until(c, id, "the Lead rests", idle("Lead"))
	if asked := p.asked(id, "Lead"); len(asked) != 2 {
		t.Fatalf("the Lead was called %d times in its first turn", len(asked))
	}
	p.held("lead rests")
	p.models.Release("lead rests")
	p.until(c, id, "round 1 is reported", quiet)

	// The Worker's completion wakes nobody; its text wakes the Lead, once, and
	// both are read in one frame.
	facts := p.facts(c, id)
	lead := runsOf(facts, "lead")
	if len(lead) != 2 || len(lead[1].GetConsumed()) != 2 {
		t.Fatalf("the Lead's turns: %v", lead)
	}
	woken := newest(t, p.served(id, "report round 1"))
	if kinds := slices.Sorted(slices.Values(woken.kinds())); fmt.Sprint(kinds) != "[task_notification text]" || woken.outside != "" {
		t.Errorf("the Lead is woken by %+v", woken)
	}
	for _, l := range woken.mail {
		if l.head["kind"] == "text" && (l.head["from"] != "Worker" || l.text != "Round 1: the level is 3 m.") {
			t.Errorf("the text is %+v", l)
		}
		if l.head["kind"] == "task_notification" && (l.head["from"] != "framework" || l.head["task"] != "t1") {
			t.Errorf("the notification is %+v", l)
		}
	}
	if s := p.state(c, id); s.Named("Worker").Status != rollcallv1.MemberStatus_MEMBER_STATUS_IDLE {
		t.Errorf("the Worker is %s", domain.Word(s.Named("Worker").Status))
	}

	// The operator was away, and the node that did the work is gone: the words
	// are in the log.
	p.kill()
	p.start()
	if shows := document[api.Detail](p, "show", "river"); shows.Answer == nil || shows.Answer.Text.Text != "The river stands at 3 m." {
		t.Errorf("the operator comes back and finds %+v", shows.Answer)
	}
	if log := p.ok("log", "river"); !strings.Contains(log, "The river stands at 3 m.") {
		t.Errorf("the log says %s", log)
	}

	// A new direction goes by the Lead to the Worker, who goes on from its own
	// transcript.
	p.ok("send", "river", "New direction: temperature")
	p.held("lead rests again")
	p.until(c, id, "the Lead rests", idle("Lead"))
	p.models.Release("lead rests again")
	p.until(c, id, "round 2 is reported", quiet)
	if said := newest(t, p.served(id, "redirect")); said.outside != "New direction: temperature" || len(said.mail) > 0 {
		t.Errorf("the Lead reads %+v", said)
	}
	again := p.served(id, "look back")
	if said := newest(t, again); len(said.mail) != 1 || said.mail[0].head["kind"] != "text" || said.mail[0].head["from"] != "Lead" {
		t.Errorf("the Worker is woken by %+v", said)
	}
	for _, memory := range []string{"Read the gauge each round", "Round 1 is done.", "The gauge is read."} {
		if !strings.Contains(again.Messages, memory) {
			t.Errorf("the Worker does not remember %q", memory)
		}
	}
	if got := p.ok("files", "river/Worker", "get", "rounds/2.txt"); got != "level 3 m and the temperature" {
		t.Errorf("the Worker wrote %q", got)
	}
	if got := answer(p.events(c, id)); got != "The second round says: level 3 m as before, and the temperature is 7 degrees." {
		t.Errorf("the operator reads %q", got)
	}
	calls := map[string]int{}
	for _, r := range p.asked(id, "") {
		calls[r.Member]++
	}
	if calls["Lead"] != 6 || calls["Worker"] != 7 {
		t.Errorf("%v calls, want 6 of the Lead and 7 of the Worker", calls)
	}
	resting(t, p.state(c, id))
	p.settle(c, id)
}
