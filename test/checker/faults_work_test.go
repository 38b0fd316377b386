package checker_test

import (
	"slices"

	pb "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

var coordinationFaults = []fault{
	{"coordination", "a message twice", func(h *hand) {
		h.until(39)
		put(h, 39, 1, mail("msg40", "m1", "lead", text))
	}},
	{"coordination", "a message without a call", func(h *hand) {
		h.until(40)
		put(h, 40, -1, mail("msg40", "lead", "user", text))
	}},
	{"coordination", "a call that did nothing", func(h *hand) {
		h.commits[17].Events = slices.Delete(h.commits[17].Events, 1, 2)
		drop[*pb.MessagesConsumed](h, 22)
	}},
	{"coordination", "another id is told", func(h *hand) {
		of[*pb.ToolCallFinished](h, 18).Output = body(`{"message":"msg7"}`)
	}},
	{"coordination", "a task twice", func(h *hand) {
		put(h, 3, 12, &pb.TaskCreated{Task: "t9", Creator: "lead", Status: claimable})
	}},
	{"coordination", "a member made two of", func(h *hand) {
		put(h, 3, 3, &pb.MemberAdded{Member: "m3", Name: "Cid", Role: pb.MemberRole_MEMBER_ROLE_MEMBER, Team: "team1", Ready: true})
		put(h, 40, 3, steers("msg40", "m3"), &pb.MemberShutdown{Member: "m3"})
	}},
	{"coordination", "a failed call did something", func(h *hand) {
		put(h, 28, 1, &pb.TaskUpdated{Task: "t2", By: "lead"})
	}},
	{"coordination", "a reading call did something", func(h *hand) {
		put(h, 3, 15, &pb.TaskUpdated{Task: "t2", By: "lead"})
	}},
	{"coordination", "a change twice", func(h *hand) {
		put(h, 28, 2, &pb.TaskUpdated{Task: "t1", By: "lead"}, &pb.TaskUpdated{Task: "t1", By: "lead"})
	}},
	{"coordination", "a change of another's", func(h *hand) { of[*pb.TaskClaimed](h, 5).By = "m2" }},
	{"coordination", "its outcome is in another commit", func(h *hand) {
		h.until(39)
		c := h.commits[38]
		late := slices.Clone(c.Events[2:])
		c.Events = c.Events[:2]
		c.Events = append(c.Events, event(&pb.RunSuspended{Run: "r15", Member: "m1", Reason: "x"}))
		h.commits = append(h.commits, &pb.Commit{Version: 40, Id: "commit-40", Node: "n1", Epoch: 1, Events: late})
	}},
	{"operator", "words without a command", func(h *hand) {
		h.commits[18].CommandIds, h.commits[18].Subjects = nil, nil
	}},
	{"operator", "two acts of one command", func(h *hand) {
		put(h, 17, -1, &pb.BudgetRaised{Budget: &pb.Budget{Tokens: 1001}})
	}},
	{"operator", "a second message of one command", func(h *hand) {
		put(h, 19, -1, order("msg40", "lead", queue))
		s := of[*pb.RunStarted](h, 23)
		s.Consumed = append(s.Consumed, refs([]string{"msg40"})...)
	}},
	{"operator", "a task without a command", func(h *hand) { h.commits[29].Subjects[0] = "" }},
	{"operator", "a completion without a command", func(h *hand) { h.commits[30].Subjects[0] = "t1" }},
	{"operator", "a member from nowhere", func(h *hand) {
		put(h, 10, -1, &pb.MemberAdded{Member: "m3", Name: "Cid", Role: pb.MemberRole_MEMBER_ROLE_MEMBER, Team: "team1", Ready: true})
		put(h, 40, 3, steers("msg40", "m3"), &pb.MemberShutdown{Member: "m3"})
	}},
	{"operator", "a cancellation without a command", func(h *hand) {
		h.commit(&pb.TaskUpdated{Task: "t1", By: "operator"})
	}},
	{"operator", "a command that made nothing", func(h *hand) {
		h.until(31)
		drop[*pb.TaskCompleted](h, 31)
	}},
	{"files", "a file from nowhere", func(h *hand) {
		put(h, 10, -1, &pb.FileWritten{Member: "m1", Path: "x"})
	}},
	{"files", "another's file", func(h *hand) {
		of[*pb.FileWritten](h, 7).Member = "m2"
	}},
	{"files", "out of the workspace", func(h *hand) { of[*pb.FileWritten](h, 7).Path = "../x" }},
	{"files", "deleted from nowhere", func(h *hand) { h.commit(&pb.FileDeleted{Member: "lead", Path: "x"}) }},
}

var boardFaults = []fault{
	{"board", "an id again", func(h *hand) {
		h.command("t1", &pb.TaskCreated{Task: "t1", Creator: "operator", Status: claimable})
	}},
	{"board", "completed twice", func(h *hand) {
		h.command("t3", &pb.TaskCompleted{Task: "t3", By: "operator"})
	}},
	{"board", "completed by another", func(h *hand) { of[*pb.TaskClaimed](h, 5).Owner = "Ben" }},
	{"board", "completed unclaimed", func(h *hand) { drop[*pb.TaskClaimed](h, 5) }},
	{"board", "not promoted", func(h *hand) { drop[*pb.TaskPromoted](h, 12) }},
	{"board", "promoted too early", func(h *hand) {
		put(h, 4, -1, &pb.TaskPromoted{Task: "t2", Status: claimable})
		drop[*pb.TaskPromoted](h, 12)
	}},
	{"board", "a dependency that is none", func(h *hand) {
		h.command("t4", &pb.TaskCreated{Task: "t4", Creator: "operator", Status: pending, Dependencies: []string{"t9"}}, &pb.TaskBlocked{Task: "t4", Reason: "t9 is missing"})
	}},
	{"board", "a circle", func(h *hand) {
		h.command("", &pb.TaskUpdated{Task: "t1", By: "operator", DependenciesChanged: true, Dependencies: []string{"t2"}})
	}},
	{"board", "of nothing", func(h *hand) { h.command("", &pb.TaskUpdated{Task: "t9", By: "operator"}) }},
	{"board", "fails when closed", func(h *hand) { h.command("t3", &pb.TaskFailed{Task: "t3", By: "operator"}) }},
	{"board", "cancelled when completed", func(h *hand) { h.command("", &pb.TaskCancelled{Task: "t3", By: "operator"}) }},
	{"board", "released when closed", func(h *hand) { h.command("", &pb.TaskReleased{Task: "t3", By: "operator"}) }},
	{"board", "claimed when closed", func(h *hand) { h.command("", &pb.TaskClaimed{Task: "t3", By: "operator"}) }},
	{"board", "a revision left out", func(h *hand) { of[*pb.TaskReopened](h, 28).Revision = 2 }},
	{"board", "opened again while open", func(h *hand) {
		put(h, 28, -2, &pb.TaskReopened{Task: "t1", By: "operator", Revision: 2}, &pb.TaskPromoted{Task: "t1", Status: claimable})
		h.commits[27].CommandIds, h.commits[27].Subjects = []string{"x"}, []string{""}
	}},
	{"board", "promoted to what it is", func(h *hand) { put(h, 13, -1, &pb.TaskPromoted{Task: "t2", Status: claimable}) }},
	{"board", "blocked again for the same reason", func(h *hand) {
		h.command("t4",
			&pb.TaskCreated{Task: "t4", Creator: "operator", Status: pending, Dependencies: []string{"t2"}},
			&pb.TaskBlocked{Task: "t4", Reason: "t2 was cancelled"}, &pb.TaskBlocked{Task: "t4", Reason: "t2 was cancelled"})
	}},
	{"board", "open in a dissolved team", func(h *hand) { drop[*pb.TaskCancelled](h, 40) }},
	{"board", "stale and unfinished", func(h *hand) { put(h, 4, -1, &pb.TaskMarkedStale{Task: "t1"}) }},
}

var waitFaults = []fault{
	{"waits", "for another than was asked", func(h *hand) { of[*pb.WaitStarted](h, 8).Awaited = "lead" }},
	{"waits", "on what was no question", func(h *hand) {
		h.until(8)
		put(h, 8, 3, &pb.WaitStarted{Member: "m2", Message: "msg3", Awaited: "m2"})
	}},
	{"waits", "answered by nobody", func(h *hand) { of[*pb.MessageDelivered](h, 9).ReplyTo = "" }},
	{"waits", "answered and still waiting", func(h *hand) {
		h.until(9)
		drop[*pb.WaitEnded](h, 9)
	}},
	{"waits", "given up", func(h *hand) { of[*pb.WaitEnded](h, 26).Reason = "cancelled" }},
	{"waits", "nobody was shut down", func(h *hand) { of[*pb.WaitEnded](h, 26).Reason = "shutdown" }},
	{"waits", "no such reason", func(h *hand) { of[*pb.WaitEnded](h, 26).Reason = "bored" }},
	{"waits", "ended twice", func(h *hand) {
		put(h, 26, 1, &pb.WaitEnded{Member: "m2", Message: "msg15", Reason: "replied"})
	}},
	{"waits", "asked and goes on", func(h *hand) {
		h.until(8)
		c := h.commits[7]
		c.Events = append(c.Events[:3], event(calls("r3", "m2", 2, 1)))
	}},
	{"waits", "nobody is left to answer", func(h *hand) {
		h.until(38)
		drop[*pb.WaitEnded](h, 38)
	}},
	{"waits", "shut down and waiting", func(h *hand) { drop[*pb.WaitEnded](h, 40) }},
}

var recordFaults = []fault{
	{"called", "called once too often", func(h *hand) { h.ask("lead", "r17", 1) }},
	{"called", "a step that was never begun", func(h *hand) { h.ask("lead", "r17", 2) }},
	{"called", "a run that was never begun", func(h *hand) { h.ask("m1", "r99", 1) }},
	{"called", "no step", func(h *hand) { h.record[0].Step = "first" }},
	{"called", "another member", func(h *hand) { h.record[3].Member = "Ben" }},
	{"called", "a call that the same commit ended", func(h *hand) {
		h.command("", all(
			mail("msg40", "framework", "lead", alert), h.starts("r40", "lead", "msg40"), steers("msg41", "lead"),
			returns("r40", "lead", "msg40"), &pb.RunFinished{Run: "r40", Member: "lead", Reason: interrupted, Code: "interrupted-by-operator"},
		)...)
		h.ask("lead", "r40", 1)
	}},
	{"answered", "nobody asked for that", func(h *hand) { of[*pb.ModelReplied](h, 41).RequestHash = hash(nil) }},
	{"answered", "the server was never asked", func(h *hand) { h.record = h.record[:len(h.record)-1] }},
}
