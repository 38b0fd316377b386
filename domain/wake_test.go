package domain_test

import (
	"testing"

	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const (
	isSpawning = rollcallv1.MemberStatus_MEMBER_STATUS_SPAWNING
	isWorking  = rollcallv1.MemberStatus_MEMBER_STATUS_WORKING
	isIdle     = rollcallv1.MemberStatus_MEMBER_STATUS_IDLE
	isWaiting  = rollcallv1.MemberStatus_MEMBER_STATUS_WAITING
	isShutdown = rollcallv1.MemberStatus_MEMBER_STATUS_SHUTDOWN
)

// inStatus is a conversation in which m1, Worker, has the status.
func inStatus(t *testing.T, status rollcallv1.MemberStatus) *domaintest.Kit {
	t.Helper()
	if status == isSpawning {
		k, _ := whileSpawning(t)
		return k
	}
	k := team(t, "Worker", "Other")
	switch status {
	case isWorking:
		k.Do(domaintest.Say("m1", "work"))
	case isWaiting:
		k.Do(domaintest.Say("m1", "work"))
		k.Acts("m1", "send_message", args{"to": "Other", "text": "which region?", "wait_for_reply": true})
		k.Ends("m2", "hm") // has read it and rests: the Lead is told
		k.Ends("lead", "let us see")
	case isShutdown:
		k.Do(domaintest.Say("", "stop Worker"))
		k.Acts("lead", "team_member_remove", args{"name": "Worker"})
		k.Ends("lead", "done")
	}
	return k
}

// whileSpawning declares m1, Worker, while nothing may start, and lets the Lead
// make more calls in the same breath.
func whileSpawning(t *testing.T, calls ...*rollcallv1.ToolCall) (*domaintest.Kit, []*rollcallv1.Event) {
	t.Helper()
	k := open(t)
	k.Do(domaintest.Say("", "do it"))
	k.Do(pause())
	return k, k.Do(k.Reply("lead", "", append([]*rollcallv1.ToolCall{
		domaintest.Call("team_create", args{"name": "crew"}), domaintest.Call("team_member_add", args{"name": "Worker", "initial_prompt": "go"}),
	}, calls...)...))
}

func pause() *rollcallv1.Command {
	return &rollcallv1.Command{Kind: &rollcallv1.Command_PauseConversation{PauseConversation: &rollcallv1.PauseConversation{}}}
}

func resume() *rollcallv1.Command {
	return &rollcallv1.Command{Kind: &rollcallv1.Command_ResumeConversation{ResumeConversation: &rollcallv1.ResumeConversation{}}}
}

// bring delivers a message of the kind to m1, who is in the status, by the way
// that makes such mail.
func bring(t *testing.T, k *domaintest.Kit, kind rollcallv1.MailKind, status rollcallv1.MemberStatus) (*domaintest.Kit, []*rollcallv1.Event) {
	t.Helper()
	lead := func(calls ...*rollcallv1.ToolCall) (*domaintest.Kit, []*rollcallv1.Event) {
		if status == isSpawning {
			return whileSpawning(t, calls...)
		}
		k.Do(domaintest.Say("", "go on"))
		return k, k.Do(k.Reply("lead", "", calls...))
	}
	switch kind {
	case rollcallv1.MailKind_MAIL_KIND_TEXT:
		return lead(domaintest.Call("send_message", args{"to": "Worker", "text": "hello"}))
	case rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE:
		return k, k.Do(domaintest.Say("m1", "hello"))
	case rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT:
		return k, k.Do(domaintest.Alert("m1", "hello"))
	case rollcallv1.MailKind_MAIL_KIND_TASK_READY:
		return lead(domaintest.Call("task_create", args{"title": "hello", "description": "x", "owner": "Worker"}))
	case rollcallv1.MailKind_MAIL_KIND_TASK_NOTIFICATION:
		return lead(domaintest.Call("task_create", args{"title": "before", "description": "x", "owner": "user"}),
			domaintest.Call("task_create", args{"title": "hello", "description": "x", "owner": "Worker", "dependencies": []string{"t1"}}))
	}
	t.Fatalf("no way to bring %v", kind)
	return nil, nil
}

func TestWakeTable(t *testing.T) {
	kinds := map[rollcallv1.MailKind]bool{
		rollcallv1.MailKind_MAIL_KIND_TEXT:              true,
		rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE:      true,
		rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT:   true,
		rollcallv1.MailKind_MAIL_KIND_TASK_READY:        true,
		rollcallv1.MailKind_MAIL_KIND_TASK_NOTIFICATION: false,
	}
	for kind, wakes := range kinds {
		for _, status := range []rollcallv1.MemberStatus{isSpawning, isWorking, isIdle, isWaiting} {
			t.Run(kind.String()+"/"+status.String(), func(t *testing.T) {
				k := inStatus(t, status)
				mustEqual(t, "status before", k.Member("m1").Status, status)
				before := unread(k.Member("m1"))
				k, events := bring(t, k, kind, status)
				m := k.Member("m1")
				mail := domaintest.Delivered(events, "m1")
				if status == isSpawning && len(mail) == 2 { // the brief came in the same breath
					mail = mail[1:]
				}
				if len(mail) != 1 || mail[0].GetKind() != kind {
					t.Fatalf("delivered %v, want one %v", mail, kind)
				}
				started := len(consumed(events, "m1")) > 0
				mustEqual(t, "a run started", started, wakes && (status == isIdle || status == isWaiting))
				if started {
					mustBe(t, "consumed", consumed(events, "m1"), append(before, mail[0].GetMessage()))
					return
				}
				mustBe(t, "unread", unread(m), append(before, mail[0].GetMessage()))
				mustEqual(t, "status after", m.Status, status)
			})
		}
	}
}

func TestSpawningReadsItsMailWithTheBrief(t *testing.T) {
	k := inStatus(t, isSpawning)
	k.Do(domaintest.Alert("m1", "hello"))
	events := k.Do(resume())
	if got := consumed(events, "m1"); len(got) != 2 {
		t.Fatalf("first run reads %v, want the brief and the alert", got)
	}
	mustEqual(t, "first text", texts(k, "m1")[0], "go")
}

func TestMailboxNotificationDoesNotWake(t *testing.T) {
	t.Run("mailbox-notification-does-not-wake", func(t *testing.T) {
		k := team(t, "Worker")
		k.Do(domaintest.Say("m1", "make a task of your own and finish it"))
		k.Acts("m1", "task_create", args{"title": "note", "description": "x", "owner": "Worker"})
		events := k.Act("m1", domaintest.Call("task_complete", args{"task_id": "t1", "result": "done"}))
		mustEqual(t, "error", events[0].GetError(), false)
		lead := k.Member("lead")
		mustEqual(t, "Lead", lead.Status, isIdle)
		mustEqual(t, "unread of the Lead", len(lead.Unread), 1)
		k.Ends("m1", "done")
		mustEqual(t, "Lead after all is done", lead.Status, isIdle)
		// Read when next awake.
		k.Do(domaintest.Say("", "how is it?"))
		mustEqual(t, "unread of the Lead", len(lead.Unread), 0)
		mustContain(t, "what the Lead reads", texts(k, "lead")[len(texts(k, "lead"))-2], "t1", "completed", "done")
	})
}

func TestMailboxTextWakes(t *testing.T) {
	t.Run("mailbox-text-wakes", func(t *testing.T) {
		k := team(t, "Worker")
		k.Do(domaintest.Say("m1", "report"))
		events := k.Do(k.Reply("m1", "", domaintest.Call("send_message", args{"to": "LEAD", "text": "the API is up"})))
		mustEqual(t, "runs of the Lead", len(consumed(events, "lead")), 1)
		mustEqual(t, "Lead", k.Member("lead").Status, isWorking)
		mustBe(t, "last mail", texts(k, "lead")[len(texts(k, "lead"))-1:], []string{"the API is up"})
	})
}

func TestMailToTheDeadIsRefused(t *testing.T) {
	k := inStatus(t, isShutdown)
	r := k.Refused("member-shut-down", domaintest.Say("m1", "hello"))
	mustContain(t, "try", r.Try, "lead (Lead)", "m2 (Other)")
	k.Refused("member-not-found", domaintest.Say("m9", "hello"))
	k.Do(domaintest.Say("", "write to them"))
	mustContain(t, "error", k.Fails("lead", "send_message", args{"to": "Worker", "text": "x"}), "Other", "user", "[member-shut-down]")
	mustContain(t, "error", k.Fails("lead", "send_message", args{"to": "Nobody", "text": "x"}), "Other", "user", "[member-not-found]")
}

func TestMailboxLeadAlias(t *testing.T) {
	t.Run("mailbox-lead-alias", func(t *testing.T) {
		for _, alias := range []string{"lead", "Lead", "LEAD", "  lEaD "} {
			k := team(t, "Worker")
			k.Do(domaintest.Say("m1", "report"))
			mustContain(t, "output", k.Acts("m1", "send_message", args{"to": alias, "text": "x"}), `"to":"Lead"`)
		}
	})
}
