package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const boardScript = `rules:
  # A board without a team.
  - name: odd jobs
    member: '^Lead$'
    has: [Case alone]
    lacks: ['"name":"task_create","arguments"']
    tools:
      - {name: task_create, args: {title: shop, description: Buy bread., owner: Lead}}
      - {name: task_create, args: {title: bake, description: Bake it., owner: Olga from next door, dependencies: [t1]}}
      - {name: send_message, args: {to: Olga, text: Can you bake?}}
      - {name: send_message, args: {to: user, text: I go shopping.}}
      - {name: task_update, args: {task_id: t1, owner: Lead, status: in_progress}}
      - {name: task_complete, args: {task_id: t1, result: Bread is bought.}}
  - name: look
    member: '^Lead$'
    has: [Case alone]
    lacks: ['"name":"task_list","arguments"']
    tools: [{name: task_list, args: {}}, {name: task_get, args: {task_id: t2}}]
  - name: take over
    member: '^Lead$'
    has: [Case alone]
    lacks: ['"name":"task_update","arguments":"(?:[^"\\]|\\.)*\\"t2\\"']
    tools:
      - {name: task_update, args: {task_id: t2, owner: Lead, status: in_progress}}
      - {name: task_complete, args: {task_id: t2, result: Baked after all.}}
  - {name: done alone, member: '^Lead$', has: [Case alone], text: Both jobs are done.}

  # A task that only the operator can do.
  - name: ask for a signature
    member: '^Lead$'
    has: [Case sign]
    lacks: ['"name":"task_create","arguments"']
    tools:
      - {name: task_create, args: {title: sign the lease, description: It lies on your desk., owner: user}}
      - {name: task_create, args: {title: move in, description: Carry the boxes., owner: Lead, dependencies: [t1]}}
  - {name: wait for it, member: '^Lead$', has: [Case sign], lacks: ['kind=\\"task_ready\\"'], text: Please sign the lease.}
  - name: move in
    member: '^Lead$'
    has: [Case sign]
    lacks: ['"name":"task_complete","arguments"']
    capture: {signed: 'sign the lease\\": ([^\\<]+)'}
    tools:
      - {name: task_update, args: {task_id: t2, owner: Lead, status: in_progress}}
      - {name: task_complete, args: {task_id: t2, result: 'We live there, as {{signed}}.'}}
  - {name: moved, member: '^Lead$', has: [Case sign], text: We have moved.}

  # The operator's hand on the board.
  - {name: hello, member: '^Lead$', has: [Case hand], text: Do as you like.}
`

// TestBoard: tasks need no team, and may belong to anybody.
func TestBoard(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, boardScript))
	p.start()
	c := p.client()
	alone := p.begin("run", "Case alone: bread for tomorrow.", "--name", "alone", "--contract", "mailbox", "--json")
	sign := p.begin("run", "Case sign: find me a flat.", "--name", "sign", "--contract", "mailbox", "--json")
	hand := p.detach("hand", "Case hand: nothing special.")
	var opened []string

	t.Run("mailbox-task-without-team", func(t *testing.T) {
		p := p.on(t)
		end := alone.wait().ended(t)
		opened = append(opened, end.Conversation)
		if end.Status != "done" || end.Exit != 0 || end.Answer != "Both jobs are done." {
			t.Errorf("it ended with %+v", end)
		}
		s, facts := p.state(c, end.Conversation), p.facts(c, end.Conversation)
		if len(s.Teams) > 0 || len(s.Members) != 1 || len(s.Tasks) != 2 || s.Tasks[0].Team != "" || s.Tasks[1].Team != "" {
			t.Errorf("%d teams, %d members, tasks %+v", len(s.Teams), len(s.Members), s.Tasks)
		}
		if created := only(facts, (*rollcallv1.Event).GetTaskCreated); created[1].GetOwner() != "Olga from next door" {
			t.Errorf("the owner is %q", created[1].GetOwner())
		}
		if versionOf(t, facts, "t1 is completed", completed("t1")) != versionOf(t, facts, "t2 can start", promoted("t2")) {
			t.Error("completion and promotion are two commits")
		}
		said := outcomes(facts, "send_message")
		if len(said) != 2 || !said[0].GetError() || !strings.Contains(said[0].GetOutput().GetText(), "choose one of: user)") || said[1].GetError() {
			t.Errorf("without a team only the operator can be written to: %v", said)
		}
		if mail := document[api.MailAnswer](p, "mail", "alone/user"); len(mail.Messages) != 1 || mail.Messages[0].Text.Text != "I go shopping." {
			t.Errorf("the operator's mail is %+v", mail.Messages)
		}
	})

	t.Run("mailbox-user-owned-task", func(t *testing.T) {
		p := p.on(t)
		end := sign.wait().ended(t)
		id := end.Conversation
		opened = append(opened, id)
		if end.Status != "waiting" || end.Exit != 6 {
			t.Errorf("it ended with %+v", end)
		}
		list := document[api.ListAnswer](p, "ls")
		for _, l := range list.Conversations {
			if l.ID == id && (len(l.NeedsOperator) != 1 || l.NeedsOperator[0].Kind != "task" || l.NeedsOperator[0].ID != "t1" || l.Status != "waiting") {
				t.Errorf("ls says %+v", l)
			}
		}
		p.ok("task", "sign", "done", "t1", "signed on Monday")
		p.until(c, id, "the Lead has gone on", func(s *domain.State) bool { return quiet(s) && len(s.OpenTasks()) == 0 })
		ready := newest(t, p.served(id, "move in"))
		if kinds := ready.kinds(); !slices.Contains(kinds, "task_ready") || ready.outside != "" {
			t.Errorf("the Lead is woken by %+v", ready)
		}
		s := p.state(c, id)
		if v := api.VerdictOf(s); v.Exit != 0 || s.Task("t2").Result != "We live there, as signed on Monday." || s.Task("t1").CompletedBy != domain.Operator {
			t.Errorf("it ended with %+v and %+v", v, s.Task("t2"))
		}
		if facts := p.facts(c, id); versionOf(t, facts, "t1 is completed", completed("t1")) != versionOf(t, facts, "t2 can start", promoted("t2")) {
			t.Error("completion and promotion are two commits")
		}
	})

	t.Run("the operator's hand", func(t *testing.T) {
		p := p.on(t)
		opened = append(opened, hand)
		p.until(c, hand, "the Lead rests", quiet)
		p.ok("task", "hand", "add", "water the plants", "--owner", "user")
		p.ok("task", "hand", "add", "enjoy them", "--after", "t1", "--owner", "user")
		p.refused("usage", 2, "task", "hand", "fail", "t1")
		p.refused("task-not-found", 3, "task", "hand", "done", "t9")
		p.refused("dependency-not-found", 3, "task", "hand", "add", "x", "--after", "t7")
		p.ok("task", "hand", "done", "t1", "watered")
		p.refused("task-closed", 4, "task", "hand", "done", "t1", "again")
		p.ok("task", "hand", "assign", "t2", "operator")
		p.ok("task", "hand", "fail", "t2", "they withered")
		p.ok("task", "hand", "cancel", "t2", "no more plants")
		p.until(c, hand, "the Lead rests", quiet)
		board := document[struct {
			List []struct{ ID, Status, Reason string }
		}](p, "task", "hand", "ls")
		if len(board.List) != 2 || board.List[0].Status != "completed" || board.List[1].Status != "cancelled" {
			t.Errorf("the board is %+v", board)
		}
	})
	p.settle(c, opened...)
}
