package actors_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// opening a conversation with members that know their briefs.
func withMembers(objective string, names ...string) *rollcallv1.Command {
	cmd := openCommand(objective)
	for _, name := range names {
		cmd.GetOpenConversation().Members = append(cmd.GetOpenConversation().Members, &rollcallv1.MemberSpec{Name: name, Brief: "be " + name})
	}
	return cmd
}

func pauseCommand() *rollcallv1.Command {
	return &rollcallv1.Command{Kind: &rollcallv1.Command_PauseConversation{PauseConversation: &rollcallv1.PauseConversation{}}}
}

func resumeCommand() *rollcallv1.Command {
	return &rollcallv1.Command{Kind: &rollcallv1.Command_ResumeConversation{ResumeConversation: &rollcallv1.ResumeConversation{}}}
}

func interruptCommand(member string) *rollcallv1.Command {
	return &rollcallv1.Command{Kind: &rollcallv1.Command_InterruptMember{InterruptMember: &rollcallv1.InterruptMember{Member: member}}}
}

func retryCommand(member string) *rollcallv1.Command {
	return &rollcallv1.Command{Kind: &rollcallv1.Command_RetryMember{RetryMember: &rollcallv1.RetryMember{Member: member}}}
}

func dissolveCommand() *rollcallv1.Command {
	return &rollcallv1.Command{Kind: &rollcallv1.Command_DissolveTeam{DissolveTeam: &rollcallv1.DissolveTeam{}}}
}

func alertCommand(to, text string) *rollcallv1.Command {
	cmd := post(to, text, 0)
	cmd.GetPostMessage().Kind = rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT
	return cmd
}

func addTask(owner, title string, needs ...string) *rollcallv1.Command {
	return &rollcallv1.Command{Kind: &rollcallv1.Command_ChangeTask{ChangeTask: &rollcallv1.ChangeTask{
		Operation: rollcallv1.ChangeTask_OPERATION_ADD, Title: title, Owner: owner, Dependencies: needs,
	}}}
}

// crew of the wake table: a Lead that passes on what it is told, a Worker whose
// turns can be held or fail, and Other, who is asked and does not answer.
type crewBrain struct {
	work, tell, stop chan struct{}
	failing          bool
}

func newCrewBrain() *crewBrain {
	return &crewBrain{work: make(chan struct{}), tell: make(chan struct{}), stop: make(chan struct{})}
}

func (c *crewBrain) until(ctx context.Context, gate chan struct{}) error {
	select {
	case <-gate:
	case <-c.stop:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func (c *crewBrain) think(ctx context.Context, from model.Caller, r request) (model.Reply, error) {
	switch from.Member {
	case "Lead":
		switch {
		case r.has("hire Worker") && r.called("team_create") == 0:
			err := c.until(ctx, c.tell)
			return calls(call("team_create", `{"name":"crew"}`), call("team_member_add", `{"name":"Worker","initial_prompt":"be Worker"}`),
				call("send_message", `{"to":"Worker","text":"the mark"}`)), err
		case r.has("tell Worker") && r.called("send_message") == 0:
			err := c.until(ctx, c.tell)
			return calls(call("send_message", `{"to":"Worker","text":"the mark"}`)), err
		}
	case "Worker":
		switch {
		case r.has("ask Other") && r.called("send_message") == 0:
			return calls(call("send_message", `{"to":"Other","text":"which?","wait_for_reply":true}`)), nil
		case r.has("be at work"):
			if err := c.until(ctx, c.work); err != nil {
				return model.Reply{}, err
			}
		}
		if c.failing {
			return model.Reply{}, &model.Error{Code: "model-key-refused", What: "401"}
		}
	case "Other":
		if r.has("which?") {
			return say("hm"), c.until(ctx, make(chan struct{}))
		}
	}
	return say("ok"), nil
}

// status of the wake table: how Worker comes to be in it, and whether mail that
// wakes starts a run at once.
type status struct {
	name  string
	bring func(w *world, c *crewBrain)
	// starts at once; later: a run starts when after has happened; refused: mail
	// is not taken at all.
	starts, later, refused bool
	after                  func(w *world, c *crewBrain)
}

var statuses = []status{
	{name: "idle", starts: true},
	{name: "waiting", starts: true, bring: func(w *world, _ *crewBrain) {
		w.do(post("m1", "ask Other", 0))
		w.until("Worker waits", func(s *domain.State) bool { return len(s.Member("m1").Waits) == 1 && w.brain.count("Other") == 2 })
	}},
	{name: "working", later: true, bring: func(w *world, _ *crewBrain) {
		w.do(post("m1", "be at work", 0))
		w.until("Worker works", func(*domain.State) bool { return w.brain.count("Worker") == 2 })
	}, after: func(_ *world, c *crewBrain) { close(c.work) }},
	{name: "failed", starts: true, bring: func(w *world, c *crewBrain) {
		c.failing = true
		w.do(post("m1", "try", 0))
		w.until("Worker failed", func(s *domain.State) bool { return s.Member("m1").Held })
		c.failing = false
	}},
	{name: "interrupted", starts: true, bring: func(w *world, _ *crewBrain) {
		w.do(post("m1", "be at work", 0))
		w.until("Worker works", func(*domain.State) bool { return w.brain.count("Worker") == 2 })
		w.do(interruptCommand("m1"))
	}, after: func(_ *world, c *crewBrain) { close(c.work) }},
	{
		name: "paused", later: true, bring: func(w *world, _ *crewBrain) { w.do(pauseCommand()) },
		after: func(w *world, _ *crewBrain) { w.do(resumeCommand()) },
	},
	{name: "spawning", later: true, after: func(w *world, _ *crewBrain) { w.do(resumeCommand()) }},
	{name: "shutdown", refused: true, bring: func(w *world, _ *crewBrain) { w.do(dissolveCommand()) }},
}

// kind of the wake table: how such mail comes to Worker, and whether it wakes.
type kind struct {
	name  string
	kind  rollcallv1.MailKind
	wakes bool
	send  []*rollcallv1.Command
}

func kinds() []kind {
	const user, um = rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, "user_message"
	return []kind{
		{"text", rollcallv1.MailKind_MAIL_KIND_TEXT, true, nil}, // the Lead's
		{um, user, true, []*rollcallv1.Command{post("m1", "the mark", 0)}},
		{um + " that interrupts", user, true, []*rollcallv1.Command{post("m1", "the mark", rollcallv1.MailMode_MAIL_MODE_INTERRUPT)}},
		{um + " that queues", user, true, []*rollcallv1.Command{post("m1", "the mark", rollcallv1.MailMode_MAIL_MODE_QUEUE)}},
		{"framework_alert", rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT, true, []*rollcallv1.Command{alertCommand("m1", "the mark")}},
		{"task_ready", rollcallv1.MailKind_MAIL_KIND_TASK_READY, true, []*rollcallv1.Command{addTask("Worker", "the mark")}},
		{"task_notification", rollcallv1.MailKind_MAIL_KIND_TASK_NOTIFICATION, false, []*rollcallv1.Command{addTask("user", "first"), addTask("Worker", "the mark", "t1")}},
	}
}

// Elsewhere a reply was logged and woke nobody: its kind was missing from a
// list. Every kind of mail meets a member in every state, and comes to exactly
// the model calls that the rule says: one, or none until something else wakes
// the member, who then reads it.
func TestB06EveryKindToARunOrNone(t *testing.T) {
	for _, st := range statuses {
		for _, k := range kinds() {
			t.Run(k.name+"/"+st.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { meet(t, st, k) })
			})
		}
	}
}

func meet(t *testing.T, st status, k kind) {
	c := newCrewBrain()
	w := newWorld(t, c.think)
	n, _ := w.node()
	defer w.close(n)
	defer close(c.stop)
	spawning := st.name == "spawning"
	if spawning {
		w.open("hire Worker")
		w.until("the Lead thinks", func(*domain.State) bool { return w.brain.count("Lead") == 1 })
		w.do(pauseCommand())
	} else {
		w.do(withMembers("go", "Worker", "Other"))
		w.quiet()
	}
	if k.send == nil && !spawning {
		w.do(post("lead", "tell Worker", 0))
		w.until("the Lead thinks", func(*domain.State) bool { return w.brain.count("Lead") == 2 })
	}
	if st.bring != nil {
		st.bring(w, c)
	}
	if k.send == nil || spawning {
		close(c.tell)
	}
	if spawning {
		w.until("Worker is there", func(s *domain.State) bool { return len(s.Members) == 2 && s.Lead().Run.Phase == domain.Parked })
	}
	before := w.brain.count("Worker")
	if spawning && before != 0 {
		t.Fatal("Worker began while the conversation was paused")
	}
	for _, cmd := range k.send {
		a := w.heard(w.ask(cmd))
		if no := a.GetRefusal() != nil; no != (st.refused && cmd == k.send[len(k.send)-1]) {
			t.Fatalf("it was answered %v", a)
		}
	}
	rest := func() {
		t.Helper()
		<-time.After(2 * time.Minute) // whatever starts has started
		synctest.Wait()
	}
	rest()
	interrupts := st.name == "working" && k.name == "user_message that interrupts"
	want := 0
	if st.starts && k.wakes || interrupts {
		want = 1
	}
	if got := w.brain.count("Worker") - before; got != want {
		t.Fatalf("%d calls of Worker, want %d\n%s", got, want, w.story())
	}
	if st.refused {
		if unread := len(w.state().Member("m1").Unread); unread > 0 {
			t.Fatalf("%d messages lie with a member that was shut down", unread)
		}
		return
	}
	if st.after != nil {
		st.after(w, c)
		rest()
	}
	if (st.later || st.starts) && k.wakes || spawning {
		want = 1 // with the brief, if it was spawning
	}
	if got := w.brain.count("Worker") - before; got != want {
		t.Fatalf("%d calls of Worker in the end, want %d\n%s", got, want, w.story())
	}
	if !k.wakes && !spawning {
		lies := slices.ContainsFunc(w.state().Member("m1").Unread, func(m *domain.Mail) bool { return m.Kind == k.kind })
		if !lies {
			t.Fatalf("it is not unread\n%s", w.story())
		}
		w.do(alertCommand("m1", "wake up"))
		rest()
	}
	shown(t, w, k.kind)
	justified(t, w.events(), len(w.brain.record()))
}

// lastOf is the last request of a member.
func lastOf(w *world, member string) (body string) {
	for _, a := range w.brain.record() {
		if a.from.Member == member {
			body = a.body
		}
	}
	return body
}

// shown checks that the last request of Worker shows the mark, which came once
// and as mail of that kind.
func shown(t *testing.T, w *world, kind rollcallv1.MailKind) {
	t.Helper()
	if last := lastOf(w, "Worker"); !strings.Contains(last, "the mark") {
		t.Errorf("the last request of Worker does not show the mail:\n%s", last)
	}
	if n := count(w.events(), (*rollcallv1.Event).GetMessageDelivered, func(m *rollcallv1.MessageDelivered) bool {
		return m.GetTo() == "m1" && m.GetKind() == kind && strings.Contains(m.GetBody().GetText(), "the mark")
	}); n != 1 {
		t.Errorf("%d such messages were delivered\n%s", n, w.story())
	}
}

// Elsewhere a member that was to wait for a peer used up its patience before the
// peer had said a word. Whatever a member of ours waits for, it makes no call
// until that comes, and one when it comes: an owner that joins ten minutes later,
// an answer of somebody who works that long, and the same over a restart.
func TestB05WaitForOneWhoComesLate(t *testing.T) {
	hire := `{"name":"Bea","initial_prompt":"be Bea"}`
	lead := func(r request) (model.Reply, bool) {
		if r.has("hire Bea") && r.called("team_member_add") == 0 {
			return calls(call("team_member_add", hire)), true
		}
		return say("ok"), r.has("go")
	}
	for _, restart := range []bool{false, true} {
		late := func(name, words string, think func(model.Caller, request) (model.Reply, error)) {
			t.Run(fmt.Sprint(name, ", restart ", restart), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, func(_ context.Context, from model.Caller, r request) (model.Reply, error) {
						if from.Member == "Lead" {
							if reply, ok := lead(r); ok {
								return reply, nil
							}
						}
						return think(from, r)
					})
					n, _ := w.node()
					defer func() { w.close(n) }()
					w.do(withMembers("go", "Abe"))
					s := w.until("Abe waits", func(s *domain.State) bool { return s.Member("m1").Run == nil && w.brain.count("Abe") > 0 })
					calls := w.brain.count("Abe")
					<-time.After(10 * time.Minute)
					if restart {
						w.close(n)
						n, _ = w.node()
					}
					<-time.After(time.Minute)
					if got := w.brain.count("Abe"); got != calls || s.Member("m1").Run != nil {
						t.Fatalf("%d calls while Abe waits\n%s", got-calls, w.story())
					}
					w.do(post("lead", "hire Bea", 0))
					<-time.After(10 * time.Minute)
					if got := w.brain.count("Abe") - calls; got != 1 {
						t.Fatalf("%d calls of Abe for one word of Bea\n%s", got, w.story())
					}
					if last := lastOf(w, "Abe"); !strings.Contains(last, words) {
						t.Errorf("Abe was not shown %q:\n%s", words, last)
					}
					w.quiet()
				})
			})
		}
		late("the peer is not there when it is written to", "here I am", func(from model.Caller, r request) (model.Reply, error) {
			switch {
			case from.Member == "Abe" && r.called("send_message") == 0:
				return calls(call("send_message", `{"to":"Bea","text":"which?","wait_for_reply":true}`)), nil
			case from.Member == "Abe" && !r.has("[member-not-found]"):
				return model.Reply{}, &model.Error{Code: "model-failed", What: "Abe was not told that Bea is not there"}
			case from.Member == "Bea" && r.called("send_message") == 0:
				return calls(call("send_message", `{"to":"Abe","text":"here I am"}`)), nil
			}
			return say("ok"), nil
		})
		late("the task that mine needs has an owner who is not there", "the first is done", func(from model.Caller, r request) (model.Reply, error) {
			switch {
			case from.Member == "Abe" && r.called("task_create") == 0:
				return calls(call("task_create", `{"title":"first","description":"x","owner":"Bea"}`),
					call("task_create", `{"title":"then","description":"x","owner":"Abe","dependencies":["t1"]}`)), nil
			case from.Member == "Bea" && r.called("task_complete") == 0:
				return calls(call("task_complete", `{"task_id":"t1","result":"the first is done"}`)), nil
			}
			return say("ok"), nil
		})
		late("the operator is asked and a peer speaks", "I know: blue", func(from model.Caller, r request) (model.Reply, error) {
			switch {
			case from.Member == "Abe" && r.called("send_message") == 0:
				return calls(call("send_message", `{"to":"user","text":"which?","wait_for_reply":true}`)), nil
			case from.Member == "Bea" && r.called("send_message") == 0:
				return calls(call("send_message", `{"to":"Abe","text":"I know: blue"}`)), nil
			}
			return say("ok"), nil
		})
	}
}
