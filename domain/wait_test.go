package domain_test

import (
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// asking is a team in which m1, A, has asked m2, B, and sleeps on msg5.
func asking(t *testing.T, others ...string) *domaintest.Kit {
	t.Helper()
	k := team(t, append([]string{"A", "B"}, others...)...)
	k.Do(domaintest.Say("m1", "find out"))
	k.Acts("m1", "send_message", args{"to": "B", "text": "which region?", "wait_for_reply": true})
	mustEqual(t, "A", k.Member("m1").Status, isWaiting)
	return k
}

// question is the message that A sleeps on.
func question(k *domaintest.Kit) string {
	k.Helper()
	waits := k.Member("m1").Waits
	if len(waits) != 1 {
		k.Fatalf("A sleeps on %d questions, want 1", len(waits))
	}
	return waits[0].Message
}

func TestWaitStopsAtTheStepBoundary(t *testing.T) {
	k := team(t, "A", "B")
	k.Do(domaintest.Say("m1", "find out"))
	events := k.Events("m1",
		domaintest.Call("send_message", args{"to": "B", "text": "which region?", "wait_for_reply": true}),
		domaintest.Call("task_create", args{"title": "after the question", "description": "x"}),
		domaintest.Call("file_write", args{"path": "a"}))
	mustEqual(t, "the rest of the batch runs", domaintest.Count(events, "TaskCreated"), 1)
	mustEqual(t, "no wait yet", domaintest.Count(events, "WaitStarted"), 0)
	k.Restart() // a crash before the last outcome
	events = k.Do(k.ToolDone("m1", "written"))
	mustEqual(t, "one commit", domaintest.Names(events), "ToolCallFinished WaitStarted RunFinished")
	mustEqual(t, "reason", events[2].GetRunFinished().GetReason(), rollcallv1.FinishReason_FINISH_REASON_WAITING)
	k.Ends("m2", "hm")
	k.Rests("lead")
	k.Rests("lead")
	k.Restart()
	mustEqual(t, "a recorded wait stays asleep", len(domain.Due(k.State)), 0)
}

func TestOnlyAReplyClosesAWait(t *testing.T) {
	k := asking(t)
	q := question(k)
	k.Acts("m2", "send_message", args{"to": "A", "text": "just a word"})
	mustEqual(t, "A", k.Member("m1").Status, isWorking)
	mustEqual(t, "question", question(k), q)
	events := k.Ends("m1", "still asleep")
	mustEqual(t, "A re-enters the wait", k.Member("m1").Status, isWaiting)
	mustEqual(t, "reason", events[len(events)-1].GetRunFinished().GetReason(), rollcallv1.FinishReason_FINISH_REASON_WAITING)
	k.Do(domaintest.Say("m1", "the operator says hello")) // A asked B, not the operator
	mustEqual(t, "question", question(k), q)
	k.Ends("m1", "hello")
	mustContain(t, "hint", k.Acts("m2", "send_message", args{"to": "A", "text": "again without the id"}), q)
	k.Ends("m1", "no answer")
	events = k.Events("m2", domaintest.Call("send_message", args{"to": "A", "text": "eu-west", "reply_to": q}))
	mustEqual(t, "waits ended", domaintest.Count(events, "WaitEnded"), 1)
	mustEqual(t, "waits", len(k.Member("m1").Waits), 0)
	mustEqual(t, "A", k.Member("m1").Status, isWorking)
	k.Ends("m1", "done")
	mustEqual(t, "A", k.Member("m1").Status, isIdle)
}

func TestRepliesThatCross(t *testing.T) {
	k := team(t, "A", "B")
	k.Do(domaintest.Say("m1", "find out"))
	k.Act("m1", domaintest.Call("send_message", args{"to": "B", "text": "one?", "wait_for_reply": true}),
		domaintest.Call("send_message", args{"to": "B", "text": "two?", "wait_for_reply": true}))
	waits := k.Member("m1").Waits
	one, two := waits[0].Message, waits[1].Message
	k.Acts("m2", "send_message", args{"to": "A", "text": "two!", "reply_to": two})
	mustEqual(t, "open question", question(k), one)
	k.Ends("m1", "still one")
	k.Acts("m2", "send_message", args{"to": "A", "text": "one!", "reply_to": one})
	mustEqual(t, "waits", len(k.Member("m1").Waits), 0)
}

func TestReplyDuringCleanupIsNotMissed(t *testing.T) {
	k := team(t, "A", "B")
	k.Do(domaintest.Say("m1", "find out"))
	k.Events("m1", domaintest.Call("send_message", args{"to": "B", "text": "which region?", "wait_for_reply": true}),
		domaintest.Call("file_write", args{"path": "a"}))
	q := k.Member("m1").Run.Asked[0].Message
	k.Acts("m2", "send_message", args{"to": "A", "text": "eu-west", "reply_to": q})
	events := k.Do(k.ToolDone("m1", "written"))
	mustEqual(t, "the run goes on", domaintest.Names(events), "ToolCallFinished MessagesConsumed ModelCallStarted")
}

func TestWaitIsClosedByTheOperator(t *testing.T) {
	k := team(t, "A")
	k.Do(domaintest.Say("m1", "find out"))
	k.Acts("m1", "send_message", args{"to": "user", "text": "which region?", "wait_for_reply": true})
	v := k.State.Verdict()
	mustEqual(t, "exit", v.Exit, 6)
	mustEqual(t, "needs", v.NeedsOperator[0], domain.Need{Kind: "question", ID: question(k)})
	mustEqual(t, "due", len(domain.Due(k.State)), 0)
	events := k.Do(domaintest.Say("m1", "eu-west"))
	mustEqual(t, "events", domaintest.Names(events), "MessageDelivered WaitEnded RunStarted ModelCallStarted")
}

func TestWaitEndsWithTheDelivery(t *testing.T) {
	k := asking(t)
	k.Do(domaintest.Say("m1", "never mind, eu-west"))
	k.Acts("m1", "task_create", args{"title": "x", "description": "x", "owner": "A"})
	k.Acts("m1", "task_complete", args{"task_id": "t1", "result": "ok"})
	events := k.Ends("m1", "done")
	mustEqual(t, "events", domaintest.Names(events), "ModelReplied WaitEnded RunFinished")
	mustEqual(t, "reason", events[2].GetRunFinished().GetReason(), rollcallv1.FinishReason_FINISH_REASON_COMPLETED)
	mustEqual(t, "A", k.Member("m1").Status, isIdle)
}

func TestLeadCannotWait(t *testing.T) {
	k := leading(t, "A")
	mustContain(t, "refusal", k.Fails("lead", "send_message", args{"to": "A", "text": "?", "wait_for_reply": true}), "[wait-refused]")
	mustEqual(t, "Lead", k.Member("lead").Status, isWorking)
}

func TestNobodyLeft(t *testing.T) {
	t.Run("failed", func(t *testing.T) {
		k := asking(t)
		events := k.Do(k.ModelFails("m2", "model-key-refused", false))
		mustBe(t, "told", topics(domaintest.Delivered(events, "")), []string{"m1 nobody-left "})
		mustEqual(t, "A", k.Member("m1").Status, isWorking)
		events = k.Ends("m1", "then I wait")
		mustEqual(t, "A re-enters the wait", k.Member("m1").Status, isWaiting)
		for _, m := range domaintest.Delivered(events, "m1") {
			t.Fatalf("told twice: %v", m)
		}
	})
	t.Run("shut down", func(t *testing.T) {
		k := asking(t)
		k.Do(domaintest.Say("", "remove B"))
		events := k.Events("lead", domaintest.Call("team_member_remove", args{"name": "B"}))
		mustEqual(t, "waits ended", domaintest.Count(events, "WaitEnded"), 1)
		mustEqual(t, "A", k.Member("m1").Status, isWorking)
		mustContain(t, "A reads", strings.Join(texts(k, "m1"), "|"), "B was shut down")
		k.Ends("m1", "without then")
		mustEqual(t, "A", k.Member("m1").Status, isIdle)
	})
	t.Run("dissolved", func(t *testing.T) {
		k := asking(t)
		k.Do(domaintest.Say("", "stop"))
		k.Acts("lead", "team_dissolve", args{})
		mustEqual(t, "A", k.Member("m1").Status, isShutdown)
	})
	t.Run("idle without an answer", func(t *testing.T) {
		k := asking(t)
		events := k.Ends("m2", "I do not know")
		mustBe(t, "told", topics(domaintest.Delivered(events, "")), []string{"lead unanswered "})
		mustEqual(t, "A sleeps on", k.Member("m1").Status, isWaiting)
		mustContain(t, "the Lead reads", texts(k, "lead")[1], "A waits for B", question(k))
		events = k.Ends("lead", "let it")
		mustEqual(t, "told once", len(domaintest.Delivered(events, "")), 0)
		mustEqual(t, "status", k.State.Status(), "waiting")
	})
	t.Run("the Lead itself", func(t *testing.T) {
		k := team(t, "A")
		k.Do(domaintest.Say("m1", "ask"))
		k.Acts("m1", "send_message", args{"to": "Lead", "text": "may I?", "wait_for_reply": true})
		q := question(k)
		k.Ends("lead", "hm")
		mustEqual(t, "the Lead is told", k.Member("lead").Status, isWorking)
		k.Acts("lead", "send_message", args{"to": "A", "text": "yes", "reply_to": q})
		mustEqual(t, "A", k.Member("m1").Status, isWorking)
	})
	t.Run("a circle", func(t *testing.T) {
		k := asking(t)
		k.Acts("m2", "send_message", args{"to": "A", "text": "you tell me", "wait_for_reply": true})
		events := k.Ends("m1", "no, you")
		if len(domaintest.Delivered(events, "lead")) == 0 {
			t.Fatal("the Lead was not told of the circle")
		}
		mustContain(t, "the Lead reads", strings.Join(texts(k, "lead"), "|"), "a circle")
	})
	t.Run("a chain is none", func(t *testing.T) {
		k := asking(t, "C")
		events := k.Events("m2", domaintest.Call("send_message", args{"to": "C", "text": "which?", "wait_for_reply": true}))
		mustEqual(t, "told", len(domaintest.Delivered(events, "lead")), 0)
		// C rests without answering: nobody in the chain can go on.
		events = k.Ends("m3", "no idea")
		if len(domaintest.Delivered(events, "lead")) == 0 {
			t.Fatal("the Lead was not told")
		}
	})
}

// That the Lead was told first does not keep the one who asks asleep when the
// member asked is lost afterwards.
func TestNobodyLeftAfterTheLeadWasTold(t *testing.T) {
	told := func(t *testing.T) *domaintest.Kit {
		k := asking(t)
		if events := k.Ends("m2", "hm"); len(domaintest.Delivered(events, "lead")) == 0 {
			t.Fatal("the Lead was not told")
		}
		return k
	}
	t.Run("removed", func(t *testing.T) {
		k := told(t)
		events := k.Events("lead", domaintest.Call("team_member_remove", args{"name": "B"}))
		mustEqual(t, "waits ended", domaintest.Count(events, "WaitEnded"), 1)
		mustEqual(t, "A", k.Member("m1").Status, isWorking)
		mustContain(t, "A reads", strings.Join(texts(k, "m1"), "|"), "Nobody is left")
	})
	t.Run("failed", func(t *testing.T) {
		k := told(t)
		k.Do(domaintest.Say("m2", "try"))
		k.Do(k.ModelFails("m2", "model-refused", false))
		mustEqual(t, "A", k.Member("m1").Status, isWorking)
		mustContain(t, "A reads", strings.Join(texts(k, "m1"), "|"), "Nobody answers your question")
		k.Ends("m1", "I wait on")
		mustEqual(t, "and sleeps on", k.Member("m1").Status, isWaiting)
	})
}
