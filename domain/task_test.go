package domain_test

import (
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// leading is a team whose Lead works.
func leading(t *testing.T, names ...string) *domaintest.Kit {
	t.Helper()
	k := team(t, names...)
	k.Do(domaintest.Say("", "go on"))
	return k
}

func create(k *domaintest.Kit, title, owner string, needs ...string) {
	k.Helper()
	k.Acts("lead", "task_create", args{"title": title, "description": "d", "owner": owner, "dependencies": append([]string{}, needs...)})
}

func changeTask(c *rollcallv1.ChangeTask) *rollcallv1.Command {
	return &rollcallv1.Command{Actor: "operator", Kind: &rollcallv1.Command_ChangeTask{ChangeTask: c}}
}

func topics(mail []*rollcallv1.MessageDelivered) []string {
	var all []string
	for _, m := range mail {
		all = append(all, m.GetTo()+" "+m.GetTopic()+" "+m.GetTask())
	}
	return all
}

func TestMailboxCompletionPromotes(t *testing.T) {
	t.Run("mailbox-completion-promotes", func(t *testing.T) {
		k := leading(t, "A", "B")
		create(k, "one", "A")
		create(k, "two", "B", "t1")
		create(k, "three", "B", "t1", "t2")
		create(k, "four", "Lead", "t1")
		mustEqual(t, "t2", k.Task("t2").Status, isPending)
		events := k.Events("m1", domaintest.Call("task_complete", args{"task_id": "t1", "result": "the result of one"}))
		mustEqual(t, "t2", k.Task("t2").Status, isClaimable)
		mustEqual(t, "t3", k.Task("t3").Status, isPending)
		mustEqual(t, "t4", k.Task("t4").Status, isClaimable)
		mustEqual(t, "one commit", domaintest.Count(events, "TaskPromoted"), 2)
		var ready *rollcallv1.MessageDelivered
		for _, m := range domaintest.Delivered(events, "m2") {
			ready = m
		}
		mustEqual(t, "kind", ready.GetKind(), rollcallv1.MailKind_MAIL_KIND_TASK_READY)
		mustContain(t, "what B builds on", ready.GetBody().GetText(), "t2", "the result of one")
		mustEqual(t, "B", k.Member("m2").Status, isWorking)
	})
}

func TestMailboxOwnerNotified(t *testing.T) {
	t.Run("mailbox-owner-notified", func(t *testing.T) {
		k := leading(t, "A", "B")
		create(k, "one", "A")
		// The owner completes: its creator is told, the owner is not.
		events := k.Events("m1", domaintest.Call("task_complete", args{"task_id": "t1", "result": "ok"}))
		mustBe(t, "told", topics(domaintest.Delivered(events, "")), []string{"lead task.completed t1"})
		// The Lead cancels what A owns: A is told, the Lead is not.
		create(k, "two", "A")
		events = k.Events("lead", domaintest.Call("task_update", args{"task_id": "t2", "status": "cancelled"}))
		mustBe(t, "told", topics(domaintest.Delivered(events, "")), []string{"m1 task.cancelled t2"})
		// Owner and creator are who caused it: the Lead is told, where nobody else remains.
		k.Acts("m1", "task_create", args{"title": "own", "description": "x", "owner": "A"})
		events = k.Events("m1", domaintest.Call("task_update", args{"task_id": "t3", "owner": "A", "status": "in_progress"}))
		mustEqual(t, "a claim tells nobody", len(domaintest.Delivered(events, "")), 0)
		events = k.Events("m1", domaintest.Call("task_update", args{"task_id": "t3", "status": "failed", "failure_reason": "no key"}))
		mustBe(t, "told", topics(domaintest.Delivered(events, "")), []string{"lead task.failed t3"})
		// The operator's task: the Lead stands in for its creator.
		k.Do(changeTask(&rollcallv1.ChangeTask{Operation: rollcallv1.ChangeTask_OPERATION_ADD, Title: "from outside", Owner: "B"}))
		events = k.Events("m2", domaintest.Call("task_complete", args{"task_id": "t4", "result": "ok"}))
		mustBe(t, "told", topics(domaintest.Delivered(events, "")), []string{"lead task.completed t4"})
		// The Lead's own: nobody.
		create(k, "mine", "Lead")
		events = k.Events("lead", domaintest.Call("task_complete", args{"task_id": "t5", "result": "ok"}))
		mustEqual(t, "told", len(domaintest.Delivered(events, "")), 0)
	})
}

func TestMailboxOwnerAnyString(t *testing.T) {
	t.Run("mailbox-owner-any-string", func(t *testing.T) {
		k := leading(t, "A")
		create(k, "one", "the night shift")
		mustEqual(t, "owner", k.Task("t1").Owner, "the night shift")
		mustEqual(t, "t1", k.Task("t1").Status, isClaimable)
		mustContain(t, "claim by another", k.Fails("lead", "task_complete", args{"task_id": "t1", "result": "x"}), "the night shift")
		// A member that comes later under the name of an owner is told of its task.
		create(k, "two", "Newcomer")
		k.Acts("lead", "team_member_add", args{"name": "Newcomer", "initial_prompt": "hello"})
		mustContain(t, "first mail", strings.Join(texts(k, "m2"), "|"), "hello|", "t2")
	})
}

func TestMailboxUserOwnedTask(t *testing.T) {
	t.Run("mailbox-user-owned-task", func(t *testing.T) {
		k := leading(t, "A")
		create(k, "choose a region", "user")
		create(k, "deploy", "A", "t1")
		k.Ends("lead", "you must choose a region")
		v := k.State.Verdict()
		mustEqual(t, "exit", v.Exit, 6)
		mustEqual(t, "needs", v.NeedsOperator[0], domain.Need{Kind: "task", ID: "t1"})
		mustEqual(t, "status", k.State.Status(), "waiting")
		mustEqual(t, "due", len(domain.Due(k.State)), 0)
		k.Do(changeTask(&rollcallv1.ChangeTask{Operation: rollcallv1.ChangeTask_OPERATION_DONE, Task: "t1", Text: "eu-west"}))
		mustEqual(t, "A", k.Member("m1").Status, isWorking)
		mustContain(t, "what A reads", strings.Join(texts(k, "m1"), "|"), "eu-west")
	})
}

func TestTaskCycles(t *testing.T) {
	k := leading(t, "A")
	create(k, "one", "")
	create(k, "two", "", "t1")
	create(k, "three", "", "t2")
	for _, c := range []struct{ task, needs string }{{"t1", "t1"}, {"t1", "t2"}, {"t1", "t3"}} {
		text := k.Fails("lead", "task_update", args{"task_id": c.task, "dependencies": []string{c.needs}})
		mustContain(t, "refusal", text, "[task-cycle]", c.task+" -> "+c.needs)
	}
	mustContain(t, "refusal", k.Fails("lead", "task_create", args{"title": "x", "description": "x", "dependencies": []string{"t4"}}), "[task-cycle]")
	mustContain(t, "refusal", k.Fails("lead", "task_create", args{"title": "x", "description": "x", "dependencies": []string{"t9"}}), "[dependency-not-found]", "t1, t2, t3")
	k.Acts("lead", "task_update", args{"task_id": "t3", "dependencies": []string{"t1"}})
	mustBe(t, "dependencies", k.Task("t3").Dependencies, []string{"t1"})
	k.Acts("lead", "task_update", args{"task_id": "t2", "dependencies": []string{"t3"}})
}

func TestTaskFailureBlocksAndCancelKeepsEvidence(t *testing.T) {
	k := leading(t, "A")
	create(k, "one", "A")
	create(k, "two", "A", "t1")
	create(k, "three", "A", "t2")
	create(k, "other", "A")
	mustContain(t, "without reason", k.Fails("m1", "task_update", args{"task_id": "t1", "status": "failed"}), "failure_reason")
	k.Acts("m1", "task_update", args{"task_id": "t1", "status": "failed", "failure_reason": "the key is missing"})
	mustEqual(t, "t2", k.Task("t2").Status, isBlocked)
	mustEqual(t, "reason", k.Task("t2").Reason, "t1 failed")
	mustEqual(t, "t3", k.Task("t3").Status, isBlocked)
	mustEqual(t, "reason", k.Task("t3").Reason, "t2 is blocked")
	k.Acts("lead", "task_update", args{"task_id": "t1", "status": "cancelled"})
	mustEqual(t, "t1", k.Task("t1").Status, isCancelled)
	mustEqual(t, "evidence", k.Task("t1").Failure, "the key is missing")
	mustEqual(t, "t2", k.Task("t2").Status, isCancelled)
	mustEqual(t, "t3", k.Task("t3").Status, isCancelled)
	mustEqual(t, "other", k.Task("t4").Status, isClaimable)
}

func TestTaskCancelBlocksDependents(t *testing.T) {
	k := leading(t, "A")
	create(k, "one", "A")
	create(k, "two", "A", "t1")
	k.Acts("lead", "task_update", args{"task_id": "t1", "status": "cancelled"})
	mustEqual(t, "t2", k.Task("t2").Status, isBlocked)
	mustEqual(t, "reason", k.Task("t2").Reason, "t1 was cancelled")
	// Another dependency unblocks it.
	create(k, "instead", "A")
	k.Acts("lead", "task_update", args{"task_id": "t2", "dependencies": []string{"t3"}})
	mustEqual(t, "t2", k.Task("t2").Status, isPending)
	// What blocks can also end: t1 is opened again.
	k.Acts("lead", "task_update", args{"task_id": "t2", "dependencies": []string{"t1"}})
	mustEqual(t, "t2", k.Task("t2").Status, isBlocked)
	k.Acts("lead", "task_update", args{"task_id": "t1", "status": "claimable"})
	mustEqual(t, "t1", k.Task("t1").Status, isClaimable)
	mustEqual(t, "t2", k.Task("t2").Status, isPending)
}

func TestTaskReopen(t *testing.T) {
	k := leading(t, "A")
	create(k, "one", "A")
	create(k, "two", "A", "t1")
	k.Acts("m1", "task_complete", args{"task_id": "t1", "result": "first"})
	mustContain(t, "refusal", k.Fails("lead", "task_update", args{"task_id": "t1", "status": "claimable"}), "[task-in-use]", "t2")
	k.Acts("m1", "task_complete", args{"task_id": "t2", "result": "second"})
	mustContain(t, "refusal", k.Fails("m1", "task_update", args{"task_id": "t1", "status": "claimable"}), "[task-not-yours]")
	k.Acts("lead", "task_update", args{"task_id": "t1", "status": "claimable", "failure_reason": "the field changed"})
	one, two := k.Task("t1"), k.Task("t2")
	mustEqual(t, "t1", one.Status, isClaimable)
	mustEqual(t, "revision", one.Revision, 1)
	mustEqual(t, "t2", two.Status, isCompleted)
	mustEqual(t, "t2 stale", two.Stale, true)
	mustContain(t, "why", two.StaleReason, "t1")
	k.Acts("m1", "task_complete", args{"task_id": "t1", "result": "corrected"})
	mustEqual(t, "nothing stale reruns by itself", two.Stale, true)
}

func TestTaskOwnership(t *testing.T) {
	k := leading(t, "A", "B")
	create(k, "one", "A")
	k.Do(domaintest.Say("m2", "take t1"))
	mustContain(t, "claim of what is assigned to another", k.Fails("m2", "task_update", args{"task_id": "t1", "owner": "B", "status": "in_progress"}), "A", "[task-not-yours]")
	k.Acts("m1", "task_update", args{"task_id": "t1", "status": "in_progress"})
	// The Lead hands it over: it stays in progress under a new claim.
	claim := k.Task("t1").Claim
	events := k.Events("lead", domaintest.Call("task_update", args{"task_id": "t1", "owner": "B"}))
	mustEqual(t, "t1", k.Task("t1").Status, isInProgress)
	mustEqual(t, "owner", k.Task("t1").Owner, "B")
	if k.Task("t1").Claim <= claim {
		t.Fatal("the claim's token did not rise")
	}
	mustBe(t, "told", topics(domaintest.Delivered(events, "")), []string{"m1 task.reassigned t1", "m2 task.ready t1"})
	mustContain(t, "late completion", k.Fails("m1", "task_complete", args{"task_id": "t1", "result": "x"}), "B")
	// The owner gives it back, or hands it on.
	k.Acts("m2", "task_update", args{"task_id": "t1", "status": "claimable"})
	mustEqual(t, "owner", k.Task("t1").Owner, "")
	k.Acts("m1", "task_update", args{"task_id": "t1", "owner": "A", "status": "in_progress"})
	mustContain(t, "status word", k.Fails("m1", "task_update", args{"task_id": "t1", "status": "done"}), "in_progress", "claimable", "failed", "cancelled")
	mustContain(t, "nothing named", k.Fails("m1", "task_update", args{"task_id": "t1"}), "[argument-invalid]")
	mustContain(t, "unknown", k.Fails("m1", "task_get", args{"task_id": "t7"}), "[task-not-found]", "t1")
}

func TestOperatorOnTheBoard(t *testing.T) {
	op := func(o rollcallv1.ChangeTask_Operation, task, owner, text string) *rollcallv1.Command {
		return changeTask(&rollcallv1.ChangeTask{Operation: o, Task: task, Title: text, Text: text, Owner: owner})
	}
	k := team(t, "A")
	result, refusal := k.Try(op(rollcallv1.ChangeTask_OPERATION_ADD, "", "A", "look at it"))
	if refusal != nil || result.Subject != "t1" {
		t.Fatalf("add: %+v %v", result, refusal)
	}
	mustEqual(t, "A", k.Member("m1").Status, isWorking)
	k.Do(op(rollcallv1.ChangeTask_OPERATION_ASSIGN, "t1", "user", ""))
	mustEqual(t, "owner", k.Task("t1").Owner, "user")
	k.Do(op(rollcallv1.ChangeTask_OPERATION_FAIL, "t1", "", "no budget"))
	mustEqual(t, "t1", k.Task("t1").Status, isFailed)
	k.Do(op(rollcallv1.ChangeTask_OPERATION_CANCEL, "t1", "", ""))
	mustEqual(t, "t1", k.Task("t1").Status, isCancelled)
	k.Refused("task-closed", op(rollcallv1.ChangeTask_OPERATION_DONE, "t1", "", "x"))
	k.Refused("task-not-found", op(rollcallv1.ChangeTask_OPERATION_DONE, "t5", "", "x"))
	k.Refused("argument-invalid", op(rollcallv1.ChangeTask_OPERATION_UNSPECIFIED, "t1", "", ""))
	k.Refused("text-empty", op(rollcallv1.ChangeTask_OPERATION_ADD, "", "", " "))
	k.Refused("text-too-long", op(rollcallv1.ChangeTask_OPERATION_ADD, "", "", strings.Repeat("x", 201)))
	solo := domaintest.Open(t, rules(), "none")
	solo.Refused("no-board", op(rollcallv1.ChangeTask_OPERATION_ADD, "", "", "x"))
}

func TestDissolve(t *testing.T) {
	dissolve := &rollcallv1.Command{Actor: "operator", Kind: &rollcallv1.Command_DissolveTeam{DissolveTeam: &rollcallv1.DissolveTeam{}}}
	t.Run("by the operator", func(t *testing.T) {
		k := leading(t, "A", "B")
		create(k, "one", "A")
		create(k, "two", "B", "t1")
		k.Acts("m1", "task_update", args{"task_id": "t1", "status": "failed", "failure_reason": "no"})
		create(k, "three", "B")
		k.Do(dissolve)
		mustEqual(t, "t1", k.Task("t1").Status, isFailed)
		mustEqual(t, "t2", k.Task("t2").Status, isCancelled)
		mustEqual(t, "t3", k.Task("t3").Reason, "dissolved")
		for _, id := range []string{"m1", "m2"} {
			mustEqual(t, id, k.Member(id).Status, isShutdown)
		}
		k.Ends("lead", "over")
		k.Rests("lead")
		mustEqual(t, "exit", k.State.Verdict().Exit, 7)
		k.Refused("team-not-found", &rollcallv1.Command{Kind: dissolve.Kind})
	})
	t.Run("by the Lead", func(t *testing.T) {
		k := leading(t, "A")
		create(k, "one", "A")
		k.Acts("m1", "task_update", args{"task_id": "t1", "status": "failed", "failure_reason": "no"})
		k.Acts("lead", "team_dissolve", args{})
		k.Ends("lead", "it cannot be done")
		mustEqual(t, "exit", k.State.Verdict().Exit, 0)
	})
}
