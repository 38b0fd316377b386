package actors_test

import (
	"fmt"
	"testing"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// once checks that nothing of what members decide together is done twice: no
// call has two outcomes, approvals or subagents, no run two ends, no message, task,
// team or member is made twice, and no file is written twice by one call.
func once(t *testing.T, events []*rollcallv1.Event) {
	t.Helper()
	done := map[string]bool{}
	for _, e := range events {
		var what string
		switch k := e.GetKind().(type) {
		case *rollcallv1.Event_ConversationOpened:
			what = "opened"
		case *rollcallv1.Event_TeamCreated:
			what = "team " + k.TeamCreated.GetTeam()
		case *rollcallv1.Event_MemberAdded:
			what = "member " + k.MemberAdded.GetMember()
		case *rollcallv1.Event_MessageDelivered:
			what = "message " + k.MessageDelivered.GetMessage()
		case *rollcallv1.Event_TaskCreated:
			what = "task " + k.TaskCreated.GetTask()
		case *rollcallv1.Event_TaskReopened:
			delete(done, "completed "+k.TaskReopened.GetTask())
			what = fmt.Sprintf("revision %s/%d", k.TaskReopened.GetTask(), k.TaskReopened.GetRevision())
		case *rollcallv1.Event_TaskCompleted:
			what = "completed " + k.TaskCompleted.GetTask()
		case *rollcallv1.Event_RunFinished:
			what = "end of " + k.RunFinished.GetRun()
		case *rollcallv1.Event_ModelReplied:
			what = fmt.Sprintf("reply %s/%d", k.ModelReplied.GetRun(), k.ModelReplied.GetStep())
		case *rollcallv1.Event_ToolCallFinished:
			what = fmt.Sprintf("outcome %s/%d/%s", k.ToolCallFinished.GetRun(), k.ToolCallFinished.GetStep(), k.ToolCallFinished.GetCall())
		case *rollcallv1.Event_FileWritten:
			what = fmt.Sprintf("file %s/%s", k.FileWritten.GetMember(), k.FileWritten.GetPath())
		case *rollcallv1.Event_ApprovalRequested:
			what = fmt.Sprintf("question about %s/%d/%s", k.ApprovalRequested.GetRun(), k.ApprovalRequested.GetStep(), k.ApprovalRequested.GetCall())
		case *rollcallv1.Event_ApprovalDecided:
			what = "decision of " + k.ApprovalDecided.GetApproval()
		case *rollcallv1.Event_SubagentStarted:
			what = fmt.Sprintf("subagent for %s/%d/%s", k.SubagentStarted.GetRun(), k.SubagentStarted.GetStep(), k.SubagentStarted.GetCall())
		case *rollcallv1.Event_MemberShutdown:
			what = "end of " + k.MemberShutdown.GetMember()
		case *rollcallv1.Event_TimerFired:
			what = "timer " + k.TimerFired.GetTimer()
		default:
			continue
		}
		if done[what] {
			t.Errorf("twice: %s", what)
		}
		done[what] = true
	}
}

// checkCalls counts by the model's own record: a step is called once, and once
// more for each node that was lost or let go of its run in good order.
func checkCalls(t *testing.T, w *world, events []*rollcallv1.Event, crashes int) {
	t.Helper()
	suspended, resumed, made := map[string]int{}, map[string]int{}, map[string]map[uint32]int{}
	for _, e := range events {
		if s := e.GetRunSuspended(); s != nil {
			suspended[s.GetRun()]++
		}
		if r := e.GetRunResumed(); r != nil {
			resumed[r.GetRun()]++
		}
	}
	for _, c := range w.brain.record() {
		if made[c.from.Run] == nil {
			made[c.from.Run] = map[uint32]int{}
		}
		made[c.from.Run][c.from.Step]++
	}
	for run, steps := range made {
		extra := 0
		for _, n := range steps {
			extra += n - 1
		}
		if may := crashes + suspended[run]; extra > may || resumed[run] > may {
			t.Errorf("run %s made %d calls too many and was taken up %d times, after %d crashes and %d stops", run, extra, resumed[run], crashes, suspended[run])
		}
	}
}
