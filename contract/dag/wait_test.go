package dag_test

import (
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// ask is a question that its sender waits on.
func ask(to string) *rollcallv1.ToolCall {
	return domaintest.Call("team_send_message", args{"to": to, "text": "which region?", "wait_for_reply": true})
}

// answer is the Lead's or a member's reply to a member's question.
func answer(k *domaintest.Kit, by, to, question string) []*rollcallv1.Event {
	k.Helper()
	return k.Events(by, domaintest.Call("team_send_message", args{"to": to, "text": "eu-west", "reply_to": question}))
}

func question(t *testing.T, events []*rollcallv1.Event) string {
	t.Helper()
	for _, m := range domaintest.Delivered(events, "") {
		if m.GetWaitForReply() {
			return m.GetMessage()
		}
	}
	t.Fatal("no question was sent")
	return ""
}

func finished(t *testing.T, events []*rollcallv1.Event) *rollcallv1.RunFinished {
	t.Helper()
	for _, e := range events {
		if f := e.GetRunFinished(); f != nil {
			return f
		}
	}
	t.Fatalf("no run ended: %s", domaintest.Names(events))
	return nil
}

func TestWait(t *testing.T) {
	t.Run("dag-wait-stops-at-step-boundary", func(t *testing.T) {
		k := launched(t, member("A"))
		// The calls after it are made, then the run stops, all in one commit.
		events := k.Events("m1", ask("Lead"), domaintest.Call("team_status", args{}))
		if n := len(domaintest.Finished(events)); n != 2 {
			t.Fatalf("%d outcomes", n)
		}
		if f := finished(t, events); f.GetReason() != rollcallv1.FinishReason_FINISH_REASON_WAITING {
			t.Fatalf("the run ended %v", f)
		}
		isStatus(t, k, waiting, "m1")
		isTask(t, k, "t1 in_progress")
	})
	t.Run("dag-wait-batch-one-commit", func(t *testing.T) {
		k := launched(t, member("A"))
		k.Do(k.Reply("m1", "", ask("Lead"), domaintest.Call("file_write", args{}))) // no such tool here: an error, decided at once
		n := calls(k, "m1")
		k.Restart()
		for _, w := range domain.Due(k.State) {
			if w.Member == "m1" {
				t.Fatalf("the waiter is owed %+v", w)
			}
		}
		if calls(k, "m1") != n || k.Member("m1").Run != nil {
			t.Fatal("the waiter was called again")
		}
	})
	t.Run("dag-wait-only-reply-closes", func(t *testing.T) {
		k := launched(t, member("A"), member("B"))
		q := question(t, k.Events("m1", ask("Lead")))
		k.Ends("lead", "I see")
		// Another word wakes the waiter, which ends without delivery and waits on.
		k.Do(domaintest.Say("m1", "how are you?"))
		isStatus(t, k, working, "m1")
		if f := finished(t, k.Ends("m1", "still waiting")); f.GetReason() != rollcallv1.FinishReason_FINISH_REASON_WAITING {
			t.Fatalf("it ended %v", f.GetReason())
		}
		isStatus(t, k, waiting, "m1")
		if w := k.Member("m1").Waits; len(w) != 1 || w[0].Message != q {
			t.Fatalf("it waits on %v", w)
		}
		k.Do(domaintest.Say("", "it is eu-west"))
		k.Acts("lead", "team_send_message", args{"to": "A", "text": "eu-west", "reply_to": q})
		k.Ends("lead", "told")
		isStatus(t, k, working, "m1")
		if len(k.Member("m1").Waits) != 0 {
			t.Fatal("the reply did not end the wait")
		}
		deliver(k, "m1")
		isTask(t, k, "t1 completed, t2 in_progress")
	})
	t.Run("dag-reply-during-cleanup-not-missed", func(t *testing.T) {
		// The reply comes while the asker's run is still busy with an outside tool.
		rules := &domain.Rules{Contracts: opened(t).Rules.Contracts, Tools: []*rollcallv1.ToolDefinition{{Name: "slow", Schema: `{"type":"object"}`}}}
		k := domaintest.Open(t, rules, "dag")
		k.Do(domaintest.Say("", "go"))
		k.Acts("lead", "team_create", args{"goal": "g", "members": []args{member("A")}})
		k.Ends("lead", "under way")
		q := question(t, k.Events("m1", ask("Lead"), domaintest.Call("slow", args{})))
		k.Do(domaintest.Say("", "eu-west"))
		k.Acts("lead", "team_send_message", args{"to": "A", "text": "eu-west", "reply_to": q})
		events := k.Do(k.ToolDone("m1", "done"))
		if domaintest.Count(events, "WaitStarted") != 0 {
			t.Fatalf("it waits for what it has: %s", domaintest.Names(events))
		}
		contains(t, "the next step", reads(k, "m1"), "eu-west")
		isStatus(t, k, working, "m1")
	})
	t.Run("dag-missing-decision-does-not-wake-the-waiter", func(t *testing.T) {
		k := launched(t, member("A"))
		k.Events("m1", ask("Lead"))
		n := calls(k, "m1")
		k.Ends("lead", "Operator, which region?")
		for k.Member("lead").Run != nil { // it is told that A waits, and cannot help it
			k.Ends("lead", "I asked")
		}
		isStatus(t, k, waiting, "m1")
		if calls(k, "m1") != n {
			t.Fatal("the waiter was called")
		}
		if v := k.State.Verdict(); v.Exit != 7 {
			t.Fatalf("the verdict is %+v", v)
		}
	})
	t.Run("a question to the operator waits for him", func(t *testing.T) {
		k := launched(t, member("A"))
		q := question(t, k.Events("m1", ask("user")))
		v := k.State.Verdict()
		if v.Exit != 6 || len(v.NeedsOperator) != 1 || v.NeedsOperator[0].ID != q {
			t.Fatalf("the verdict is %+v", v)
		}
		if k.Member("lead").Run != nil {
			t.Fatal("the Lead was called for it")
		}
		k.Do(domaintest.Say("m1", "eu-west"))
		deliver(k, "m1")
		isTask(t, k, "t1 completed")
	})
	t.Run("dag-nobody-left", func(t *testing.T) {
		k := launched(t, member("A"), member("B"), member("C"))
		k.Events("m1", ask("B"))
		isStatus(t, k, waiting, "m1")
		lost(k, "m2")
		isStatus(t, k, working, "m1")
		contains(t, "why A wakes", reads(k, "m1"), "B failed")
		// It waits for C, which is cancelled.
		k.Events("m1", ask("C"))
		k.Acts("lead", "team_replan", args{"operations": []args{{"op": "cancel", "name": "C"}}})
		isStatus(t, k, working, "m1")
		contains(t, "why A wakes", reads(k, "m1"), "C was shut down")
	})
	t.Run("complete and wait in one reply", func(t *testing.T) {
		k := launched(t, member("A"))
		done := k.Act("m1", ask("Lead"), domaintest.Call("complete", args{"summary": "x"}))
		if done[0].GetError() || !done[1].GetError() || !strings.Contains(done[1].GetOutput().GetText(), "[wait-open]") {
			t.Fatalf("%v", done)
		}
		isStatus(t, k, waiting, "m1")
		isTask(t, k, "t1 in_progress")
		k = launched(t, member("A"))
		done = k.Act("m1", domaintest.Call("complete", args{"summary": "x"}), ask("Lead"))
		if done[0].GetError() || !done[1].GetError() || !strings.Contains(done[1].GetOutput().GetText(), "[wait-refused]") {
			t.Fatalf("%v", done)
		}
		isTask(t, k, "t1 completed")
	})
}

func TestWaking(t *testing.T) {
	t.Run("dag-idle-woken-after-sender-run", func(t *testing.T) {
		k := launched(t, member("A"), member("B"))
		k.Ends("m2", "nothing yet")
		k.Acts("m1", "team_send_message", args{"to": "B", "text": "use v2"})
		isStatus(t, k, idle, "m2")
		k.Ends("m1", "later")
		isStatus(t, k, working, "m2")
		contains(t, "what B reads", reads(k, "m2"), "use v2")
	})
	t.Run("dag-active-reads-next-step", func(t *testing.T) {
		k := launched(t, member("A"), member("B"))
		k.Acts("m1", "team_send_message", args{"to": "B", "text": "use v2"})
		k.Acts("m2", "team_status", args{})
		contains(t, "what B reads", reads(k, "m2"), "use v2")
		n := calls(k, "m2")
		k.Ends("m1", "later")
		if calls(k, "m2") != n {
			t.Fatal("what was read wakes again")
		}
	})
	t.Run("mail of others wakes meanwhile, and brings it all", func(t *testing.T) {
		k := launched(t, member("A"), member("B"))
		k.Ends("m2", "nothing yet")
		k.Acts("m1", "team_send_message", args{"to": "B", "text": "use v2"})
		k.Do(domaintest.Say("m2", "hurry"))
		contains(t, "what B reads", reads(k, "m2"), "use v2", "hurry")
	})
}

func TestComplete(t *testing.T) {
	t.Run("dag-complete-missing-path-blocks", func(t *testing.T) {
		k := launched(t, member("A"), member("B", "A"))
		k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_WriteFiles{WriteFiles: &rollcallv1.WriteFiles{Member: "m1", Files: []*rollcallv1.FileChange{domaintest.File("a.md", "aa")}}}})
		text := k.Fails("m1", "complete", args{"summary": "x", "paths": []string{"a.md", "b.md"}})
		contains(t, "the refusal", text, "[file-not-found]", "b.md", "a.md")
		for _, bad := range []string{"../a.md", "/etc/passwd", "", "a.md/"} {
			k.Fails("m1", "complete", args{"summary": "x", "paths": []string{bad}})
		}
		isTask(t, k, "t1 in_progress, t2 pending")
		isStatus(t, k, unborn, "m2")
		k.Acts("m1", "complete", args{"summary": "x", "paths": []string{"a.md"}})
		contains(t, "what B reads", reads(k, "m2"), "A/a.md")
	})
	t.Run("dag-complete-empty-paths-ok", func(t *testing.T) {
		k := launched(t, member("A"))
		k.Acts("m1", "complete", args{"summary": "x", "paths": []string{}})
		isTask(t, k, "t1 completed")
	})
	t.Run("an empty summary, and twice", func(t *testing.T) {
		k := launched(t, member("A"))
		contains(t, "empty", k.Fails("m1", "complete", args{"summary": " "}), "[text-empty]")
		done := k.Act("m1", domaintest.Call("complete", args{"summary": "x"}), domaintest.Call("complete", args{"summary": "y"}))
		if done[0].GetError() || !done[1].GetError() {
			t.Fatalf("%v", done)
		}
		if got := k.Task("t1").Result; got != "x" {
			t.Fatalf("the result is %q", got)
		}
		k.Do(domaintest.Say("m1", "one more thing"))
		contains(t, "later", k.Fails("m1", "complete", args{"summary": "z"}), "[task-closed]")
	})
	t.Run("dag-ended-without-complete", func(t *testing.T) {
		k := launched(t, member("A"), member("B", "A"))
		events := k.Ends("m1", "I could not find the file")
		isTask(t, k, "t1 in_progress, t2 pending")
		told := reports(events)
		if len(told) != 1 {
			t.Fatalf("%d reports", len(told))
		}
		contains(t, "the report", told[0], "A ended its turn without completing it", "I could not find the file")
		k.Ends("lead", "so be it")
		if k.Member("lead").Run != nil {
			t.Fatal("the Lead is told again")
		}
		t.Run("dag-lead-idle-with-open-tasks-ends-7", func(t *testing.T) {
			if v := k.State.Verdict(); v.Exit != 7 || v.Status != "failed" {
				t.Fatalf("the verdict is %+v", v)
			}
		})
		k.Do(domaintest.Say("m1", "it is in Lead/x"))
		deliver(k, "m1")
		isStatus(t, k, working, "m2")
	})
}
