package domain_test

import (
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func TestMailboxUserMessageInterrupts(t *testing.T) {
	t.Run("mailbox-user-message-interrupts", func(t *testing.T) {
		k := team(t, "Worker")
		k.Do(domaintest.Say("", "one"))
		k.Do(domaintest.Say("m1", "tell the Lead"))
		k.Acts("m1", "send_message", args{"to": "Lead", "text": "two"})
		before := k.Member("lead").Run.ID
		events := k.Do(domaintest.Say("", "three"))
		mustEqual(t, "events", domaintest.Names(events), "MessagesReturned RunFinished MessageDelivered RunStarted ModelCallStarted")
		mustEqual(t, "reason", events[1].GetRunFinished().GetReason(), rollcallv1.FinishReason_FINISH_REASON_INTERRUPTED)
		mustBe(t, "next run", texts(k, "lead"), []string{"do it", "one", "two", "three"})
		if k.Member("lead").Run.ID == before {
			t.Fatal("the run goes on")
		}
		mustEqual(t, "Worker", k.Member("m1").Status, isWorking) // others go on
	})
	t.Run("steer", func(t *testing.T) {
		k := team(t, "Worker")
		k.Do(domaintest.Say("", "one"))
		run := k.Member("lead").Run.ID
		k.Do(domaintest.SayMode("", "two", rollcallv1.MailMode_MAIL_MODE_STEER))
		mustEqual(t, "run", k.Member("lead").Run.ID, run)
		events := k.Do(k.Reply("lead", "", domaintest.Call("task_list", args{})))
		mustEqual(t, "events", domaintest.Names(events), "ModelReplied ToolCallFinished MessagesConsumed ModelCallStarted")
	})
	t.Run("steer is how a member is met", func(t *testing.T) {
		k := team(t, "Worker")
		k.Do(domaintest.Say("m1", "one"))
		run := k.Member("m1").Run.ID
		k.Do(domaintest.Say("m1", "two"))
		mustEqual(t, "run", k.Member("m1").Run.ID, run)
	})
	t.Run("queue", func(t *testing.T) {
		k := team(t, "Worker")
		k.Do(domaintest.Say("", "one"))
		k.Do(domaintest.SayMode("", "two", rollcallv1.MailMode_MAIL_MODE_QUEUE))
		k.Act("lead", domaintest.Call("task_list", args{}))
		mustEqual(t, "unread", len(k.Member("lead").Unread), 1)
		events := k.Ends("lead", "done with one")
		mustEqual(t, "events", domaintest.Names(events), "ModelReplied LeadReplied RunFinished RunStarted ModelCallStarted")
	})
	t.Run("late outcomes are refused", func(t *testing.T) {
		k := team(t, "Worker")
		k.Do(domaintest.Say("", "one"))
		late := k.Reply("lead", "too late")
		k.Do(domaintest.Say("", "two"))
		k.Refused("stale-outcome", late)
	})
}

// A message in the gap before the end of a run is never missed: it is decided
// before the end, with it in one batch in either order, or after it.
func TestMailboxRecheck(t *testing.T) {
	t.Run("mailbox-recheck", func(t *testing.T) {
		arrive := map[string]func(k *domaintest.Kit, end *rollcallv1.Command){
			"before":         func(k *domaintest.Kit, end *rollcallv1.Command) { k.Do(domaintest.Say("m1", "gap")); k.Do(end) },
			"in one, before": func(k *domaintest.Kit, end *rollcallv1.Command) { k.Do(domaintest.Say("m1", "gap"), end) },
			"in one, after":  func(k *domaintest.Kit, end *rollcallv1.Command) { k.Do(end, domaintest.Say("m1", "gap")) },
			"after":          func(k *domaintest.Kit, end *rollcallv1.Command) { k.Do(end); k.Do(domaintest.Say("m1", "gap")) },
		}
		for when, do := range arrive {
			t.Run(when, func(t *testing.T) {
				k := team(t, "Worker")
				k.Do(domaintest.Say("m1", "work"))
				old := k.Member("m1").Run.ID
				do(k, k.Reply("m1", "done"))
				m := k.Member("m1")
				if m.Run == nil || m.Run.ID == old {
					t.Fatal("the message started no run")
				}
				mustEqual(t, "unread", len(m.Unread), 0)
				mustBe(t, "mail of the new run", texts(k, "m1")[2:], []string{"gap"})
			})
		}
		t.Run("a notification starts none", func(t *testing.T) {
			k := team(t, "Worker")
			k.Do(domaintest.Say("", "make t1"), domaintest.Say("m1", "work"))
			k.Acts("lead", "task_create", args{"title": "a", "description": "x", "owner": "user"})
			k.Acts("lead", "task_create", args{"title": "b", "description": "x", "owner": "Worker", "dependencies": []string{"t1"}})
			k.Ends("m1", "done")
			mustEqual(t, "Worker", k.Member("m1").Status, isIdle)
			mustEqual(t, "unread", len(k.Member("m1").Unread), 1)
		})
	})
}

func TestMailboxOneRunAMember(t *testing.T) {
	t.Run("mailbox-one-run-a-member", func(t *testing.T) {
		k := team(t, "Worker")
		events := k.Do(domaintest.Say("m1", "a"), domaintest.Say("m1", "b"), domaintest.Alert("m1", "c"))
		mustEqual(t, "runs", domaintest.Count(events, "RunStarted"), 1)
		mustEqual(t, "left for the next step", len(k.Member("m1").Unread), 2)
		k.Do(domaintest.Say("m1", "d"))
		events = k.Events("m1", domaintest.Call("task_list", args{}))
		mustBe(t, "read at the next step", consumed(events, "m1"), []string{"msg4", "msg5", "msg6"})
	})
}

func TestMailboxConsumedKept(t *testing.T) {
	t.Run("mailbox-consumed-kept", func(t *testing.T) {
		k := team(t, "Worker")
		k.Do(domaintest.Say("m1", "remember the number 17"))
		k.Ends("m1", "noted")
		k.Restart()
		k.Do(domaintest.Say("m1", "which number?"))
		mustBe(t, "mail in the context", texts(k, "m1"), []string{"you are Worker", "remember the number 17", "which number?"})
	})
}

func TestMailboxLeadIsAMember(t *testing.T) {
	t.Run("mailbox-lead-is-a-member", func(t *testing.T) {
		k := open(t)
		lead := k.State.Lead()
		mustEqual(t, "id", lead.ID, "lead")
		mustEqual(t, "name", lead.Name, "Lead")
		mustEqual(t, "first of all", k.State.Members[0], lead)
		mustEqual(t, "status", lead.Status, isIdle)
		k.Do(domaintest.Say("", "hello"))
		mustEqual(t, "status", lead.Status, isWorking)
		k.Ends("lead", "hello to you")
		mustEqual(t, "status", lead.Status, isIdle)
		mustEqual(t, "answer", k.Event(k.State.Answer.Ref()).GetLeadReplied().GetText().GetText(), "hello to you")
		k.Do(domaintest.Say("", "make a task"))
		k.Acts("lead", "task_create", args{"title": "check", "description": "x", "owner": "lead"})
		mustEqual(t, "owner", k.Task("t1").Owner, "Lead")
		k.Acts("lead", "task_complete", args{"task_id": "t1", "result": "ok"})
		mustContain(t, "refusal", k.Fails("lead", "team_member_remove", args{"name": "Lead"}), "[lead-stays]")
	})
}

func TestMailboxTaskWithoutTeam(t *testing.T) {
	t.Run("mailbox-task-without-team", func(t *testing.T) {
		k := open(t)
		k.Do(domaintest.Say("", "two odd jobs"))
		k.Acts("lead", "task_create", args{"title": "one", "description": "x"})
		k.Acts("lead", "task_create", args{"title": "two", "description": "x", "dependencies": []string{"t1"}})
		mustEqual(t, "team of t1", k.Task("t1").Team, "")
		k.Acts("lead", "task_complete", args{"task_id": "t1", "result": "ok"})
		mustEqual(t, "t2", k.Task("t2").Status, isClaimable)
		mustContain(t, "send_message to user", k.Acts("lead", "send_message", args{"to": "user", "text": "half way"}), `"to":"user"`)
		mustContain(t, "recipients", k.Fails("lead", "send_message", args{"to": "Backend", "text": "x"}), "choose one of: user")
	})
}

func TestMailboxOneActiveTeam(t *testing.T) {
	t.Run("mailbox-one-active-team-a-conversation", func(t *testing.T) {
		k := team(t, "Worker")
		k.Do(domaintest.Say("", "another team"))
		mustContain(t, "refusal", k.Fails("lead", "team_create", args{"name": "second"}), "crew", "[team-exists]")
		k.Acts("lead", "team_dissolve", args{})
		mustContain(t, "name", k.Acts("lead", "team_create", args{"name": "second"}), "team2")
		mustContain(t, "names are never used again", k.Fails("lead", "team_member_add", args{"name": "Worker", "initial_prompt": "x"}), "[name-taken]")
		k.Acts("lead", "team_member_add", args{"name": "Worker 2", "initial_prompt": "x"})
	})
}

func TestMailboxShutdownIsTerminal(t *testing.T) {
	t.Run("mailbox-shutdown-is-terminal", func(t *testing.T) {
		k := team(t, "Worker", "Other")
		k.Do(domaintest.Say("m1", "work"))
		k.Acts("m1", "task_create", args{"title": "mine", "description": "x", "owner": "Worker"})
		k.Acts("m1", "task_update", args{"task_id": "t1", "owner": "Worker", "status": "in_progress"})
		late := k.Reply("m1", "too late")
		k.Do(domaintest.Say("", "stop Worker"))
		events := k.Events("lead", domaintest.Call("team_member_remove", args{"name": "Worker"}))
		mustContain(t, "events", domaintest.Names(events), "RunFinished MemberShutdown TaskReleased")
		mustEqual(t, "Worker", k.Member("m1").Status, isShutdown)
		mustEqual(t, "owner of t1", k.Task("t1").Owner, "")
		mustEqual(t, "t1", k.Task("t1").Status, isClaimable)
		k.Refused("stale-outcome", late)
		k.Refused("member-shut-down", domaintest.Say("m1", "hello"))
		k.Refused("member-shut-down", &rollcallv1.Command{Kind: &rollcallv1.Command_RetryMember{RetryMember: &rollcallv1.RetryMember{Member: "m1"}}})
		mustContain(t, "owner", k.Fails("lead", "task_update", args{"task_id": "t1", "owner": "Worker"}), "[member-shut-down]")
	})
}

func TestMailboxMailReturned(t *testing.T) {
	failures := map[string]func(k *domaintest.Kit) *rollcallv1.Command{
		"failed":      func(k *domaintest.Kit) *rollcallv1.Command { return k.ModelFails("m1", "model-key-refused", false) },
		"interrupted": func(*domaintest.Kit) *rollcallv1.Command { return interrupt("m1") },
	}
	t.Run("mailbox-mail-returned", func(t *testing.T) {
		for how, end := range failures {
			t.Run(how, func(t *testing.T) {
				k := team(t, "Worker")
				k.Do(domaintest.Say("m1", "one"), domaintest.Say("m1", "two"))
				k.Act("m1", domaintest.Call("task_list", args{})) // answers one, reads two
				k.Do(domaintest.Say("m1", "three"))
				events := k.Do(end(k))
				mustEqual(t, "returned", domaintest.Count(events, "MessagesReturned"), 1)
				mustEqual(t, "unread", len(k.Member("m1").Unread), 2)
				mustEqual(t, "Worker", k.Member("m1").Status, isIdle)
				k.Rests("lead")
				k.Restart()
				mustEqual(t, "a held member is not due", len(domain.Due(k.State)), 0)
				k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_RetryMember{RetryMember: &rollcallv1.RetryMember{Member: "m1"}}})
				got := strings.Join(texts(k, "m1"), "|")
				if !strings.HasPrefix(got, "you are Worker|one|two|three|The operator asks you to try again.") {
					t.Fatalf("mail after retry: %q", got)
				}
			})
		}
		t.Run("new mail ends the hold", func(t *testing.T) {
			k := team(t, "Worker")
			k.Do(domaintest.Say("m1", "one"))
			k.Do(interrupt("m1"))
			k.Do(domaintest.Say("m1", "two"))
			mustBe(t, "mail", texts(k, "m1"), []string{"you are Worker", "one", "two"})
		})
	})
}

func interrupt(member string) *rollcallv1.Command {
	return &rollcallv1.Command{Kind: &rollcallv1.Command_InterruptMember{InterruptMember: &rollcallv1.InterruptMember{Member: member}}}
}
