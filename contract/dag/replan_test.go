package dag_test

import (
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// replan lets the Lead, who works or is woken for it, change the plan.
func replan(t *testing.T, k *domaintest.Kit, atomic bool, operations ...args) replanned {
	t.Helper()
	if k.Member("lead").Run == nil {
		k.Do(domaintest.Say("", "change it"))
	}
	var out replanned
	output(t, k.Acts("lead", "team_replan", args{"operations": operations, "atomic": atomic}), &out)
	return out
}

func add(name string, needs ...string) args {
	return args{"op": "add", "name": name, "brief": "do the part of " + name, "depends_on": append([]string{}, needs...)}
}

func revise(name string) args {
	return args{"op": "revise", "name": name, "brief": "the figures changed"}
}

func cancel(name string) args { return args{"op": "cancel", "name": name, "reason": "not needed"} }

func TestRevise(t *testing.T) {
	t.Run("a delivered task is done again by the same member", func(t *testing.T) {
		k := launched(t, member("A"), member("B", "A"), member("C"))
		delivers(k, "m1", "m2")
		out := replan(t, k, false, revise("A"))
		if o := out.Outcomes[0]; !o.Done || o.Stale != "B" {
			t.Fatalf("%+v", o)
		}
		isTask(t, k, "t1 claimable, t2 completed stale, t3 in_progress")
		isStatus(t, k, idle, "m1")
		k.Ends("lead", "under way")
		isStatus(t, k, working, "m1")
		contains(t, "what A reads", reads(k, "m1"), "the figures changed")
		deliver(k, "m1")
		isTask(t, k, "t1 completed, t2 completed stale, t3 in_progress")
		if got := k.Task("t1").Revision; got != 1 {
			t.Fatalf("revision %d", got)
		}
		t.Run("dag-stale-never-reruns-itself", func(t *testing.T) {
			deliver(k, "m3")
			for k.Member("lead").Run != nil {
				k.Ends("lead", "fine")
			}
			isTask(t, k, "t1 completed, t2 completed stale, t3 completed")
			if n := calls(k, "m2"); n != 1 {
				t.Fatalf("B was called %d times", n)
			}
		})
		// The Lead revises what is stale, and then it is fresh.
		replan(t, k, false, revise("B"))
		k.Ends("lead", "under way")
		contains(t, "what B reads", reads(k, "m2"), "the figures changed", "the result of m1")
		deliver(k, "m2")
		isTask(t, k, "t1 completed, t2 completed, t3 completed")
	})
	t.Run("dag-revise-needs-delivered-or-cancelled", func(t *testing.T) {
		k := launched(t, member("A"), member("B", "A"), member("C", "B"))
		delivers(k, "m1", "m2") // C works, and depends on A through B
		out := replan(t, k, false, revise("A"))
		contains(t, "the refusal", out.Outcomes[0].Error, "[task-in-use]", "t3", "C")
		isTask(t, k, "t1 completed, t2 completed, t3 in_progress")
		out = replan(t, k, false, cancel("C"), revise("A"))
		if !out.Outcomes[0].Done || !out.Outcomes[1].Done {
			t.Fatalf("%+v", out.Outcomes)
		}
		isTask(t, k, "t1 claimable, t2 completed stale, t3 cancelled")
	})
	t.Run("who works is written to, not revised", func(t *testing.T) {
		k := launched(t, member("A"))
		contains(t, "the refusal", replan(t, k, false, revise("A")).Outcomes[0].Error, "[member-working]")
	})
	t.Run("who has not begun gets the new brief beside the old", func(t *testing.T) {
		k := launched(t, member("A"), member("B", "A"))
		replan(t, k, false, args{"op": "revise", "name": "B", "brief": "in French"})
		k.Ends("lead", "ok")
		isStatus(t, k, unborn, "m2")
		deliver(k, "m1")
		contains(t, "what B reads", reads(k, "m2"), "do the part of B", "in French")
	})
	t.Run("new edges", func(t *testing.T) {
		k := launched(t, member("A"), member("B"), member("C"))
		deliver(k, "m1")
		replan(t, k, false, args{"op": "revise", "name": "A", "brief": "after B", "depends_on": []string{"B"}})
		isTask(t, k, "t1 pending, t2 in_progress, t3 in_progress")
		k.Ends("lead", "ok")
		isStatus(t, k, idle, "m1")
		k.Do(domaintest.Say("m1", "are you there?")) // a word wakes it, its assignment does not begin
		contains(t, "too early", k.Fails("m1", "complete", args{"summary": "x"}), "[task-not-claimable]", "t2")
		k.Ends("m1", "waiting for B")
		deliver(k, "m2")
		isStatus(t, k, working, "m1")
		isTask(t, k, "t1 in_progress, t2 completed, t3 in_progress")
	})
	t.Run("who left its task open begins anew", func(t *testing.T) {
		k := launched(t, member("A"))
		k.Ends("m1", "I give up")
		replan(t, k, false, revise("A"))
		k.Ends("lead", "ok")
		isStatus(t, k, working, "m1")
		isTask(t, k, "t1 in_progress")
	})
}

func TestFailure(t *testing.T) {
	t.Run("dag-failed-keeps-downstream-blocked", func(t *testing.T) {
		k := launched(t, member("A"), member("B", "A"), member("C", "B"), member("D"))
		told := reports(lost(k, "m1"))
		isTask(t, k, "t1 failed, t2 blocked, t3 blocked, t4 in_progress")
		if len(told) != 1 {
			t.Fatalf("%d reports", len(told))
		}
		contains(t, "the report", told[0], "A failed", "model-key-refused", "t2", "others go on")
		isStatus(t, k, working, "lead", "m4")
		// Writing to it makes it try again, and frees what waits.
		k.Acts("lead", "team_send_message", args{"to": "A", "text": "the key is there now"})
		k.Ends("lead", "ok")
		isTask(t, k, "t1 in_progress, t2 pending, t3 pending, t4 in_progress")
		deliver(k, "m1")
		isTask(t, k, "t1 completed, t2 in_progress, t3 pending, t4 in_progress")
		contains(t, "evidence", k.Task("t1").Failure, "model-key-refused")
	})
	t.Run("dag-cancel-failed-keeps-evidence", func(t *testing.T) {
		k := launched(t, member("A"), member("B", "A"), member("C", "B"), member("D"))
		deliver(k, "m4")
		lost(k, "m1")
		out := replan(t, k, false, cancel("A"))
		if o := out.Outcomes[0]; !o.Done || o.AlsoCancelled != "B, C" {
			t.Fatalf("%+v", o)
		}
		isTask(t, k, "t1 cancelled, t2 cancelled, t3 cancelled, t4 completed")
		contains(t, "evidence", k.Task("t1").Failure, "model-key-refused")
		isStatus(t, k, gone, "m1", "m2", "m3")
		contains(t, "mail to it", k.Fails("lead", "team_send_message", args{"to": "A", "text": "x"}), "[member-shut-down]")
		for _, m := range out.Members {
			if m.Name == "A" && (m.Task != "cancelled" || !strings.Contains(m.Failure, "model-key-refused")) {
				t.Fatalf("%+v", m)
			}
		}
		t.Run("dag-replacement-needs-explicit-edges", func(t *testing.T) {
			out := replan(t, k, false, add("A"), add("A2"), add("B2", "A"), add("B3", "A2"))
			contains(t, "the old name", out.Outcomes[0].Error, "[name-taken]")
			contains(t, "the old edge", out.Outcomes[2].Error, "[dependency-cancelled]")
			if !out.Outcomes[1].Done || !out.Outcomes[3].Done {
				t.Fatalf("%+v", out.Outcomes)
			}
			k.Ends("lead", "ok")
			isTask(t, k, "t1 cancelled, t2 cancelled, t3 cancelled, t4 completed, t5 in_progress, t6 pending")
		})
	})
	t.Run("a branch that works is stopped", func(t *testing.T) {
		k := launched(t, member("A"), member("B", "A"), member("C"))
		deliver(k, "m1")
		out := replan(t, k, false, cancel("B"), cancel("A"), cancel("Z"))
		contains(t, "delivered", out.Outcomes[1].Error, "[task-closed]")
		contains(t, "unknown", out.Outcomes[2].Error, "[member-not-found]", "A")
		isTask(t, k, "t1 completed, t2 cancelled, t3 in_progress")
		isStatus(t, k, gone, "m2")
	})
}

func TestReplan(t *testing.T) {
	t.Run("dag-add-depends-on-delivered", func(t *testing.T) {
		k := launched(t, member("A"), member("X"))
		deliver(k, "m1")
		replan(t, k, false, add("B", "A"))
		isStatus(t, k, unborn, "m3")
		k.Ends("lead", "ok")
		isStatus(t, k, working, "m3")
		contains(t, "what B reads", reads(k, "m3"), "do the part of B", "the result of m1")
	})
	t.Run("dag-replan-partial-failure-reported", func(t *testing.T) {
		k := launched(t, member("A"))
		out := replan(t, k, false, add("B"), add("B"), revise("nobody"), add("C", "B"))
		var done []bool
		for _, o := range out.Outcomes {
			done = append(done, o.Done)
		}
		if len(done) != 4 || !done[0] || done[1] || done[2] || !done[3] {
			t.Fatalf("%+v", out.Outcomes)
		}
		isTask(t, k, "t1 in_progress, t2 claimable, t3 pending")
	})
	t.Run("dag-replan-atomic", func(t *testing.T) {
		k := launched(t, member("A"))
		k.Do(domaintest.Say("", "change it"))
		events := k.Events("lead", domaintest.Call("team_replan", args{"atomic": true, "operations": []args{add("B"), add("C", "B"), revise("nobody"), add("D")}}))
		var out replanned
		output(t, domaintest.Finished(events)[0].GetOutput().GetText(), &out)
		if len(out.Outcomes) != 3 || out.Outcomes[0].Done || out.Outcomes[1].Done || out.Outcomes[2].Error == "" || out.Note == "" {
			t.Fatalf("%+v", out)
		}
		if n := domaintest.Count(events, "MemberAdded") + domaintest.Count(events, "TaskCreated"); n != 0 {
			t.Fatalf("it did %d things", n)
		}
		out = replan(t, k, true, add("B"), add("C", "B"))
		if !out.Outcomes[0].Done || !out.Outcomes[1].Done {
			t.Fatalf("%+v", out)
		}
		isTask(t, k, "t1 in_progress, t2 claimable, t3 pending")
	})
	t.Run("dag-replan-result-carries-status", func(t *testing.T) {
		k := launched(t, member("A"), member("B", "A"))
		out := replan(t, k, false, add("B"))
		if out.Team != "active" || len(out.Members) != 2 || out.Members[1].DependsOn[0] != "A" || out.Members[1].Task != "pending" {
			t.Fatalf("%+v", out)
		}
		// The status is not what team_status gives once.
		k.Acts("lead", "team_status", args{})
	})
	t.Run("two replans that are a circle together", func(t *testing.T) {
		k := launched(t, member("A"), member("B"), member("X"))
		delivers(k, "m1", "m2")
		k.Do(domaintest.Say("", "change it"))
		done := k.Act("lead",
			domaintest.Call("team_replan", args{"operations": []args{{"op": "revise", "name": "A", "brief": "x", "depends_on": []string{"B"}}}}),
			domaintest.Call("team_replan", args{"operations": []args{{"op": "revise", "name": "B", "brief": "x", "depends_on": []string{"A"}}}}))
		var out replanned
		output(t, done[1].GetOutput().GetText(), &out)
		contains(t, "the second", out.Outcomes[0].Error, "[task-")
		isTask(t, k, "t1 claimable, t2 completed, t3 in_progress")
	})
	t.Run("without a team, and without operations", func(t *testing.T) {
		k := opened(t)
		contains(t, "no team", k.Fails("lead", "team_replan", args{"operations": []args{add("A")}}), "[team-not-found]")
		k.Acts("lead", "team_create", args{"goal": "g", "members": []args{member("A")}})
		contains(t, "nothing to do", k.Fails("lead", "team_replan", args{"operations": []args{}}), "[argument-invalid]")
		contains(t, "no such operation", k.Fails("lead", "team_replan", args{"operations": []args{{"op": "dance", "name": "A"}}}), "[argument-invalid]", "revise")
	})
}

func TestDissolve(t *testing.T) {
	t.Run("dag-dissolve-cancels-open-tasks", func(t *testing.T) {
		k := launched(t, member("A"), member("B", "A"), member("C"))
		deliver(k, "m3")
		k.Do(domaintest.Say("", "stop"))
		t.Run("dag-dissolve-stops-runs", func(t *testing.T) {
			events := k.Events("lead", domaintest.Call("team_dissolve", args{}))
			if f := finished(t, events); f.GetMember() != "m1" || f.GetReason() != rollcallv1.FinishReason_FINISH_REASON_CANCELLED {
				t.Fatalf("%v", f)
			}
		})
		isTask(t, k, "t1 cancelled, t2 cancelled, t3 completed")
		isStatus(t, k, gone, "m1", "m2", "m3")
		k.Ends("lead", "stopped")
		if v := k.State.Verdict(); v.Exit != 0 {
			t.Fatalf("the verdict is %+v", v)
		}
	})
	t.Run("the operator ends a task in any state", func(t *testing.T) {
		change := func(op rollcallv1.ChangeTask_Operation, task, text string) *rollcallv1.Command {
			return &rollcallv1.Command{Actor: "operator", Kind: &rollcallv1.Command_ChangeTask{ChangeTask: &rollcallv1.ChangeTask{Operation: op, Task: task, Text: text}}}
		}
		const done, fail, off = rollcallv1.ChangeTask_OPERATION_DONE, rollcallv1.ChangeTask_OPERATION_FAIL, rollcallv1.ChangeTask_OPERATION_CANCEL
		k := launched(t, member("A"), member("B", "A"), member("C"), member("D", "C"), member("E"), member("F", "E"))
		k.Do(change(done, "t1", "it is 42"))
		isStatus(t, k, idle, "m1")
		contains(t, "what B reads", reads(k, "m2"), "it is 42")
		k.Do(change(fail, "t3", "no longer possible"))
		isStatus(t, k, idle, "m3")
		isTask(t, k, "t1 completed, t2 in_progress, t3 failed, t4 blocked, t5 in_progress, t6 pending")
		k.Do(change(off, "t3", ""))
		k.Do(change(off, "t6", ""))
		k.Do(change(off, "t5", ""))
		isTask(t, k, "t1 completed, t2 in_progress, t3 cancelled, t4 cancelled, t5 cancelled, t6 cancelled")
		k.Refused("task-closed", change(off, "t5", ""))
		k.Refused("task-closed", change(done, "t1", "x"))
		k.Refused("assignments-fixed", &rollcallv1.Command{Actor: "operator", Kind: &rollcallv1.Command_ChangeTask{ChangeTask: &rollcallv1.ChangeTask{Operation: rollcallv1.ChangeTask_OPERATION_ADD, Title: "x"}}})
	})
}
