package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
	"github.com/rollcall-dev/rollcall/internal/model/scripted/demo"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// A story is played again and again while nodes are killed under it; it ends
// the same way every time.
type story struct {
	name      string
	objective string
	// then is what the operator says when the Lead is first asked.
	then string
}

var stories = []story{
	{name: "update", objective: demo.Objective(demo.SendUpdate, demo.NewField)},
	{name: "stale", objective: demo.Objective(demo.StatusOnly, demo.NewField)},
	{name: "shed", objective: "Paint the shed.", then: "Go on, and use the team."},
}

// storiesScript is the demo's, and before it a story with what else can be
// broken off: an interruption, a wait for a reply, a read of another's file.
func storiesScript(t *testing.T) *scripted.Script {
	t.Helper()
	_, profile, ok := strings.Cut(string(demo.YAML()), "\nrules:\n")
	if !ok {
		t.Fatal("the demo's script has no rules")
	}
	return script(t, `rules:
  - {name: never, member: '^Lead$', has: [Paint the shed], lacks: [use the team], hold: never, text: Never said.}
  - name: painters
    member: '^Lead$'
    has: [Paint the shed]
    lacks: ['"name":"team_create","arguments"']
    delay_ms: 100
    tools:
      - {name: team_create, args: {name: painters}}
      - {name: team_member_add, args: {name: Ana, initial_prompt: Buy the paint.}}
      - {name: team_member_add, args: {name: Ben, initial_prompt: Paint.}}
      - {name: task_create, args: {title: paint, description: Buy it., owner: Ana}}
      - {name: task_create, args: {title: shed, description: Paint it., owner: Ben, dependencies: [t1]}}
  - {name: painted, member: '^Lead$', has: [Paint the shed, the shed is \w+], capture: {colour: 'the shed is (\w+)'}, delay_ms: 100, text: 'Done: the shed is {{colour}}.'}
  - {name: painting, member: '^Lead$', has: [Paint the shed], delay_ms: 100, text: They are at it.}
  - name: buy
    member: '^Ana$'
    lacks: ['"name":"file_write","arguments"']
    delay_ms: 150
    tools:
      - {name: task_update, args: {task_id: t1, owner: Ana, status: in_progress}}
      - {name: file_write, args: {path: paint.txt, content: a pot of paint}}
  - name: ask
    member: '^Ana$'
    lacks: ['"name":"send_message","arguments"']
    delay_ms: 150
    tools: [{name: send_message, args: {to: Ben, text: Which colour?, wait_for_reply: true}}]
  - name: bought
    member: '^Ana$'
    has: ['in blue, please']
    lacks: ['"name":"task_complete","arguments"']
    delay_ms: 150
    tools: [{name: task_complete, args: {task_id: t1, result: blue paint is bought, paths: [paint.txt]}}]
  - {name: ana rests, member: '^Ana$', delay_ms: 50, text: That was all.}
  - name: choose
    member: '^Ben$'
    has: ['from=\\"Ana\\"']
    lacks: ['"name":"send_message","arguments"']
    capture: {question: 'id=\\"(msg\d+)\\" from=\\"Ana\\"'}
    delay_ms: 150
    tools: [{name: send_message, args: {to: Ana, text: 'in blue, please', reply_to: '{{question}}'}}]
  - name: begin to paint
    member: '^Ben$'
    has: [blue paint is bought]
    lacks: ['"name":"file_read","arguments"']
    delay_ms: 150
    tools:
      - {name: task_update, args: {task_id: t2, owner: Ben, status: in_progress}}
      - {name: file_read, args: {path: Ana/paint.txt}}
  - name: paint
    member: '^Ben$'
    has: [a pot of paint]
    lacks: ['"name":"task_complete","arguments"']
    delay_ms: 150
    tools:
      - {name: file_write, args: {path: shed.txt, content: a blue shed}}
      - {name: task_complete, args: {task_id: t2, result: painted, paths: [shed.txt]}}
      - {name: send_message, args: {to: lead, text: the shed is blue}}
  - {name: ben rests, member: '^Ben$', delay_ms: 50, text: Ready.}
`+profile)
}

// telling is a story under way.
type telling struct {
	story
	id   string
	done chan error
}

// tell begins a story. It does what an operator does, in a goroutine of its own:
// ask again until it is answered, whoever answers.
func (p *place) tell(ctx context.Context, c *api.Client, s story) *telling {
	one := &telling{story: s, id: api.NewID(), done: make(chan error, 1)}
	go func() {
		_, err := c.Open(ctx, &rollcallv1.OpenConversation{
			Conversation: one.id, Tenant: "main", Name: s.name, Contract: "mailbox", Objective: &rollcallv1.Body{Text: s.objective},
		})
		if err == nil && s.then != "" {
			_, err = p.models.WaitFor(ctx, func(r scripted.Request) bool { return r.Conversation == one.id })
			if err == nil {
				_, err = c.Send(ctx, one.id, &rollcallv1.PostMessage{Body: &rollcallv1.Body{Text: s.then}})
			}
		}
		one.done <- err
	}()
	return one
}

// comesTo is what a story comes to, whatever happened on the way.
func comesTo(t *testing.T, s *domain.State, events []*rollcallv1.Event) string {
	t.Helper()
	var out struct {
		Members, Tasks, Files, Mail []string
		Answer, Status              string
		Exit                        int
	}
	for _, m := range s.Members {
		out.Members = append(out.Members, fmt.Sprintf("%s %s is %s, %d unread, %d waits", m.ID, m.Name, domain.Word(m.Status), len(m.Unread), len(m.Waits)))
		for path, b := range m.Files {
			out.Files = append(out.Files, m.Name+"/"+path+" "+b.SHA256[:8])
		}
	}
	slices.Sort(out.Files)
	for _, k := range s.Tasks {
		out.Tasks = append(out.Tasks, fmt.Sprintf("%s %s %s by %s: %s", k.ID, k.Title, domain.Word(k.Status), k.CompletedBy, k.Result))
	}
	for _, e := range events {
		if m := e.GetMessageDelivered(); m != nil {
			out.Mail = append(out.Mail, fmt.Sprintf("%s to %s, %s: %s", m.GetFrom(), m.GetTo(), domain.Word(m.GetKind()), m.GetBody().GetText()))
		}
	}
	slices.Sort(out.Mail)
	v := s.Verdict()
	out.Answer, out.Status, out.Exit = answer(events), v.Status, v.Exit
	data, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
