package domain_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// leavings are the ways in which a member's turn ends that it did not choose.
var leavings = map[string]func(*domaintest.Kit){
	"interrupted by hand": func(k *domaintest.Kit) { k.Do(interrupt("m1")) },
	"failed":              func(k *domaintest.Kit) { k.Do(k.ModelFails("m1", "model-key-refused", false)) },
	"silent":              func(k *domaintest.Kit) { k.Do(k.Reply("m1", "")); k.Do(k.Reply("m1", "")) },
	"lost": func(k *domaintest.Kit) {
		for k.Member("m1").Run != nil {
			k.Restart()
			k.Do(resumeRun(k, "m1"))
		}
	},
	"out of budget": func(k *domaintest.Kit) {
		for k.Member("m1").Run != nil {
			k.Events("m1", domaintest.Call("task_list", args{}))
		}
	},
	"removed": func(k *domaintest.Kit) {
		k.Do(domaintest.Say("", "go"))
		k.Acts("lead", "team_member_remove", args{"name": "A"})
	},
}

// Elsewhere the tasks that a member had made were never given out when the
// member left in the middle of its turn, and what it held nobody could take.
func TestB12TheHolderLeaves(t *testing.T) {
	for name, leave := range leavings {
		t.Run(name, func(t *testing.T) {
			k := team(t, "A", "B")
			k.Do(domaintest.Say("m1", "plan it"))
			k.Acts("m1", "task_create", args{"title": "first", "description": "x", "owner": "B"})
			k.Acts("m1", "task_create", args{"title": "second", "description": "x", "owner": "B", "dependencies": []string{"t1"}})
			k.Acts("m1", "task_create", args{"title": "mine", "description": "x", "owner": "A"})
			k.Acts("m1", "task_update", args{"task_id": "t3", "status": "in_progress"})
			k.Acts("m1", "task_create", args{"title": "after mine", "description": "x", "owner": "B", "dependencies": []string{"t3"}})
			leave(k)
			k.Restart()
			mustEqual(t, "A has an open run", k.Member("m1").Run != nil, false)

			// What it made goes on: its owner was woken by it, and what depends
			// on it is promoted and told.
			mustEqual(t, "t1", k.Task("t1").Status, isClaimable)
			mustContain(t, "what B reads", strings.Join(texts(k, "m2"), "|"), "Task t1")
			k.Acts("m2", "task_complete", args{"task_id": "t1", "result": "done"})
			mustEqual(t, "t2", k.Task("t2").Status, isClaimable)
			mustEqual(t, "is told", strings.Contains(strings.Join(texts(k, "m2"), "|"), "Task t2"), true)
			k.Acts("m2", "task_complete", args{"task_id": "t2", "result": "done"})

			// What it held stays with it, unless it is gone for good.
			if held := k.Task("t3"); name == "removed" && (held.Owner != "" || held.Status != isClaimable) || name != "removed" && held.Owner != "A" {
				t.Fatalf("t3 is %v, owner %q", held.Status, held.Owner)
			}
			// It can be taken by the Lead, and then be completed.
			k.Rests("lead")
			k.Do(domaintest.Say("", "give it to B"))
			k.Acts("lead", "task_update", args{"task_id": "t3", "owner": "B"})
			mustEqual(t, "owner of t3", k.Task("t3").Owner, "B")
			k.Acts("m2", "task_complete", args{"task_id": "t3", "result": "done"})
			mustEqual(t, "t4", k.Task("t4").Status, isClaimable)
			k.Acts("m2", "task_complete", args{"task_id": "t4", "result": "done"})
			mustEqual(t, "open tasks", len(k.State.OpenTasks()), 0)
		})
	}
	t.Run("the operator's hand", func(t *testing.T) {
		for name, leave := range leavings {
			for op, want := range map[rollcallv1.ChangeTask_Operation]rollcallv1.TaskStatus{
				rollcallv1.ChangeTask_OPERATION_DONE:   rollcallv1.TaskStatus_TASK_STATUS_COMPLETED,
				rollcallv1.ChangeTask_OPERATION_FAIL:   rollcallv1.TaskStatus_TASK_STATUS_FAILED,
				rollcallv1.ChangeTask_OPERATION_CANCEL: rollcallv1.TaskStatus_TASK_STATUS_CANCELLED,
			} {
				k := team(t, "A", "B")
				k.Do(domaintest.Say("m1", "plan it"))
				k.Acts("m1", "task_create", args{"title": "mine", "description": "x", "owner": "A"})
				k.Acts("m1", "task_update", args{"task_id": "t1", "status": "in_progress"})
				leave(k)
				k.Do(changeTask(&rollcallv1.ChangeTask{Operation: op, Task: "t1", Text: "by hand"}))
				mustEqual(t, name+", "+op.String(), k.Task("t1").Status, want)
			}
		}
	})
	t.Run("dissolved", func(t *testing.T) {
		k := team(t, "A", "B")
		k.Do(domaintest.Say("m1", "plan it"))
		k.Acts("m1", "task_create", args{"title": "mine", "description": "x", "owner": "A"})
		k.Acts("m1", "task_update", args{"task_id": "t1", "status": "in_progress"})
		k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_DissolveTeam{DissolveTeam: &rollcallv1.DissolveTeam{}}})
		mustEqual(t, "t1", k.Task("t1").Status, rollcallv1.TaskStatus_TASK_STATUS_CANCELLED)
	})
}

// Elsewhere a member printed its report instead of delivering it, and nobody
// heard of it. Here its words are kept, the task stays its own, and the Lead is
// told of it once.
func TestB31EndedWithoutCompleting(t *testing.T) {
	k := leading(t, "A")
	create(k, "survey", "A")
	k.Rests("lead")
	k.Acts("m1", "task_update", args{"task_id": "t1", "status": "in_progress"})
	const report = "I looked at all of it: the dike is sound, but for the north gate."
	events := k.Ends("m1", report)
	var kept, ended bool
	for _, e := range events {
		kept = kept || e.GetModelReplied().GetText().GetText() == report
		if f := e.GetRunFinished(); f.GetMember() == "m1" {
			mustBe(t, "undelivered", f.GetUndelivered(), []string{"t1"})
			mustEqual(t, "reason", f.GetReason(), rollcallv1.FinishReason_FINISH_REASON_IDLE)
			ended = true
		}
	}
	mustEqual(t, "the words are kept and the end says what was not delivered", kept && ended, true)
	mustEqual(t, "t1", k.Task("t1").Status, isInProgress)
	mustEqual(t, "owner", k.Task("t1").Owner, "A")
	reports := domaintest.Delivered(events, "lead")
	if len(reports) != 1 || reports[0].GetKind() != rollcallv1.MailKind_MAIL_KIND_TEAM_REPORT {
		t.Fatalf("the Lead is told %v", reports)
	}
	mustContain(t, "report", reports[0].GetBody().GetText(), "t1", "survey", "A ended its turn without completing it")

	k.Restart()
	again := k.Ends("lead", "so be it")
	again = append(again, k.Do(domaintest.Alert("m1", "what of it?"))...)
	again = append(again, k.Ends("m1", report)...)
	for _, m := range domaintest.Delivered(again, "lead") {
		t.Fatalf("the Lead is told again: %v", m)
	}
	v := k.State.Verdict()
	mustEqual(t, "exit", v.Exit, 7)
	mustContain(t, "why", v.Why, "t1")

	t.Run("other ends are told apart", func(t *testing.T) {
		for name, want := range map[string]string{
			"interrupted by hand": "A was interrupted", "out of budget": "A used up its budget",
			"failed": "A failed (model-key-refused", "silent": "A failed (reply-empty",
		} {
			k := leading(t, "A")
			create(k, "survey", "A")
			k.Rests("lead")
			k.Acts("m1", "task_update", args{"task_id": "t1", "status": "in_progress"})
			from := len(k.All())
			leavings[name](k)
			var told []string
			for _, m := range domaintest.Delivered(k.All()[from:], "lead") {
				told = append(told, m.GetBody().GetText())
			}
			mustEqual(t, name+": reports", len(told), 1)
			mustContain(t, name, told[0], "t1", want)
			mustEqual(t, name+" is called a quiet end", strings.Contains(told[0], "without completing"), false)
		}
	})
}

// Elsewhere an id was given again after the newest of its kind was deleted and
// the node restarted, and the new task overwrote the old one.
func TestB33IdsAreNeverReused(t *testing.T) {
	restarts := map[string]func(*domaintest.Kit){
		"none": func(*domaintest.Kit) {},
		"fold": func(k *domaintest.Kit) { k.Restart() },
		"snapshot": func(k *domaintest.Kit) {
			data, err := k.State.Marshal()
			if err == nil {
				k.State, err = domain.Unmarshal(data)
			}
			if err != nil {
				k.Fatalf("snapshot: %v", err)
			}
		},
	}
	for name, restart := range restarts {
		t.Run(name, func(t *testing.T) {
			k := open(t)
			for round := range 3 {
				k.Do(domaintest.Say("", "a team"))
				k.Acts("lead", "team_create", args{"name": fmt.Sprint("crew ", round)})
				for i := range 2 {
					k.Acts("lead", "team_member_add", args{"name": fmt.Sprint("member ", round, i), "initial_prompt": "go"})
				}
				newest := func() string { return k.State.Tasks[len(k.State.Tasks)-1].ID }
				for _, end := range []string{"cancelled", "failed", "completed"} {
					k.Acts("lead", "task_create", args{"title": end, "description": "x"})
					if end == "completed" {
						k.Acts("lead", "task_complete", args{"task_id": newest(), "result": "ok"})
					} else {
						k.Acts("lead", "task_update", args{"task_id": newest(), "status": end, "failure_reason": "x"})
					}
					restart(k)
				}
				k.Do(domaintest.Say("", "once more")) // the run and its mail are over
				restart(k)
				last := k.State.Members[len(k.State.Members)-1]
				k.Acts("lead", "team_member_remove", args{"name": last.Name})
				restart(k)
				k.Acts("lead", "team_member_add", args{"name": fmt.Sprint("another ", round), "initial_prompt": "go"})
				k.Acts("lead", "task_create", args{"title": "left open", "description": "x"})
				k.Acts("lead", "team_dissolve", args{})
				restart(k)
				k.Rests("lead")
			}
			seen := map[string]bool{}
			for _, e := range k.All() {
				id := strings.Join([]string{
					e.GetTaskCreated().GetTask(), e.GetMemberAdded().GetMember(), e.GetTeamCreated().GetTeam(), e.GetRunStarted().GetRun(), e.GetMessageDelivered().GetMessage(),
				}, "")
				if seen[id] && id != "" {
					t.Fatalf("%s is given twice", id)
				}
				seen[id] = true
			}
			delete(seen, "")
			for _, want := range []string{"team3", "m9", "t12", "r9", "msg9"} {
				if !seen[want] {
					t.Fatalf("the test made only %v", slices.Sorted(maps.Keys(seen)))
				}
			}
		})
	}
}

// Elsewhere an answer without text and without a call ended the work as if it
// had succeeded. Here the model is asked once more; then the turn has failed.
func TestB47EmptyReplies(t *testing.T) {
	blank := map[string]func(*rollcallv1.RecordReply){
		"nothing":             func(*rollcallv1.RecordReply) {},
		"whitespace":          func(r *rollcallv1.RecordReply) { r.Text = domaintest.Text(" \n\t\r\u00a0\u2003\u3000") },
		"thoughts only":       func(r *rollcallv1.RecordReply) { r.Reasoning = domaintest.Text("I should say that all is done.") },
		"promised calls only": func(r *rollcallv1.RecordReply) { r.Finish = "tool_calls" },
		"no finish":           func(r *rollcallv1.RecordReply) { r.Finish = "" },
		"a word of a finish":  func(r *rollcallv1.RecordReply) { r.Finish = "end_turn" },
	}
	for name, make := range blank {
		t.Run(name, func(t *testing.T) {
			for _, who := range []string{"lead", "m1"} {
				k := leading(t, "A")
				create(k, "one", "A")
				k.Acts("m1", "task_update", args{"task_id": "t1", "status": "in_progress"})
				empty := func() []*rollcallv1.Event {
					cmd := k.Reply(who, "")
					make(cmd.GetRecordReply())
					return k.Do(cmd)
				}
				// Once: it is told and asked again, in the same run, and may go on.
				run := k.Member(who).Run.ID
				events := empty()
				mustEqual(t, "ends", domaintest.Count(events, "RunFinished")+domaintest.Count(events, "LeadReplied"), 0)
				mustContain(t, "it reads", texts(k, who)[len(texts(k, who))-1], "neither text nor a tool call")
				k.Acts(who, "task_list", args{})
				mustEqual(t, "run", k.Member(who).Run.ID, run)
				// Twice in a row: the run has failed, and does not count as done.
				empty()
				events = empty()
				var end *rollcallv1.RunFinished
				for _, e := range events {
					if e.GetRunFinished().GetMember() == who {
						end = e.GetRunFinished()
					}
				}
				mustEqual(t, "reason", end.GetReason(), rollcallv1.FinishReason_FINISH_REASON_FAILED)
				mustEqual(t, "code", end.GetCode(), "reply-empty")
				mustEqual(t, "answers of the Lead", domaintest.Count(events, "LeadReplied"), 0)
				mustEqual(t, "t1", k.Task("t1").Status, isInProgress)
				k.Rests("lead")
				k.Rests("m1")
				k.Rests("lead")
				if v := k.State.Verdict(); v.Exit == 0 {
					t.Fatalf("the conversation is %s", v.Status)
				}
				// A third time, after it was asked to try again: it counts anew.
				k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_RetryMember{RetryMember: &rollcallv1.RetryMember{Member: who}}})
				empty()
				mustEqual(t, "after a retry", k.Member(who).Status, isWorking)
			}
		})
	}
}
