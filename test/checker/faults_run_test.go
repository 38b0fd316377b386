package checker_test

import (
	pb "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

var runFaults = []fault{
	{"one-run", "a second run", func(h *hand) {
		h.until(43)
		h.command("msg40", all(order("msg40", "lead", queue), h.starts("r40", "lead", "msg40"))...)
	}},
	{"one-run", "an id again", func(h *hand) {
		h.until(45)
		of[*pb.RunStarted](h, 45).Run = "r16"
		of[*pb.ModelCallStarted](h, 45).Run = "r16"
	}},
	{"in-open-run", "after its end", func(h *hand) { h.commit(&pb.RunSuspended{Run: "r2", Member: "m1"}) }},
	{"in-open-run", "in another's run", func(h *hand) {
		put(h, 22, -1, &pb.RunSuspended{Run: "r4", Member: "lead"})
	}},
	{"in-open-run", "in no run", func(h *hand) { h.commit(ends("r99", "lead", idle)) }},
	{"may-run", "a run while paused", func(h *hand) {
		h.command("", &pb.ConversationPaused{})
		h.command("msg40", all(order("msg40", "lead", interrupt), h.starts("r40", "lead", "msg40"))...)
	}},
	{"may-run", "a call while paused", func(h *hand) {
		h.until(18)
		c := h.commits[17]
		c.Events[len(c.Events)-1] = event(calls("r6", "lead", 2, 1))
	}},
	{"may-run", "a run out of budget", func(h *hand) {
		drop[*pb.BudgetRaised](h, 45)
		h.commits[44].CommandIds, h.commits[44].Subjects = nil, nil
	}},
	{"may-run", "after a failure, without new mail", func(h *hand) {
		drop[*pb.MessageDelivered](h, 33)
		s := of[*pb.RunStarted](h, 33)
		s.Consumed = s.Consumed[:2]
	}},
	{"may-run", "after an interruption by hand, without new mail", func(h *hand) {
		h.until(32)
		h.commit(h.starts("r40", "m1", "msg19", "msg20", "msg21")...)
	}},
	{"may-run mail", "who was shut down", func(h *hand) {
		h.commit(all(mail("msg40", "framework", "m1", alert), h.starts("r40", "m1", "msg40"))...)
	}},
	{"steps", "a step left out", func(h *hand) {
		of[*pb.ModelCallStarted](h, 40).Step = 4
		of[*pb.ModelReplied](h, 41).Step = 4
		for i := range h.record {
			if h.record[i].Run == "r14" && h.record[i].Step == "3" {
				h.record[i].Step = "4"
			}
		}
	}},
	{"steps", "called again for no reason", func(h *hand) {
		h.until(45)
		h.commit(calls("r17", "lead", 1, 2))
	}},
	{"steps", "called again after the last failure", func(h *hand) { of[*pb.ModelCallFailed](h, 2).Retry = false }},
	{"steps", "another attempt is answered", func(h *hand) {
		of[*pb.ModelReplied](h, 3).Attempt = 1
	}},
	{"steps", "a failure of a call that was answered", func(h *hand) {
		put(h, 41, 1, &pb.ModelCallFailed{Run: "r14", Member: "lead", Step: 3, Attempt: 1})
	}},
	{"steps", "nothing is due", func(h *hand) {
		h.until(20)
		drop[*pb.ModelCallStarted](h, 20)
	}},
	{"resumed", "counted as lost", func(h *hand) { of[*pb.RunResumed](h, 20).Attempt = 1 }},
	{"resumed", "not counted as lost", func(h *hand) { of[*pb.RunResumed](h, 11).Attempt = 0 }},
	{"resumed", "let go twice", func(h *hand) {
		put(h, 21, -1, &pb.RunSuspended{Run: "r4", Member: "m2", Reason: "again"})
	}},
	{"resumed", "waited for nothing", func(h *hand) {
		h.until(45)
		h.commit(&pb.RunResumed{Run: "r17", Member: "lead", Attempt: 1, Waited: true})
	}},
	{"steps", "waited, and begins another call", func(h *hand) {
		h.until(45)
		h.commit(&pb.RunSuspended{Run: "r17", Member: "lead", Reason: "no slot"})
		h.commit(&pb.RunResumed{Run: "r17", Member: "lead", Waited: true}, calls("r17", "lead", 1, 2))
	}},
	{"resumed", "goes on by itself", func(h *hand) { drop[*pb.RunResumed](h, 20) }},
	{"resumed", "paused twice", func(h *hand) {
		h.command("", &pb.ConversationPaused{})
		h.command("", &pb.ConversationPaused{})
	}},
	{"endings", "shut down at work", func(h *hand) {
		h.until(38)
		drop[*pb.RunFinished](h, 38)
		drop[*pb.MessagesReturned](h, 38)
	}},
	{"endings", "completed nothing", func(h *hand) { of[*pb.RunFinished](h, 34).Reason = completed }},
	{"endings", "idle after a delivery", func(h *hand) { of[*pb.RunFinished](h, 13).Reason = idle }},
	{"endings", "waiting for nothing", func(h *hand) { of[*pb.RunFinished](h, 34).Reason = waiting }},
	{"endings", "idle before its call was answered", func(h *hand) {
		h.until(43)
		h.command("", &pb.ConversationPaused{})
		h.commit(returns("r16", "lead", "msg28"), ends("r16", "lead", idle))
	}},
	{"endings", "interrupted by nobody", func(h *hand) {
		h.until(43)
		h.command("", &pb.ConversationPaused{})
		h.commit(returns("r16", "lead", "msg28"), ends("r16", "lead", interrupted))
	}},
	{"endings", "cancelled and alive", func(h *hand) {
		h.until(43)
		h.command("", &pb.ConversationPaused{})
		h.commit(returns("r16", "lead", "msg28"), ends("r16", "lead", cancelled))
	}},
	{"endings", "failed without a word", func(h *hand) { of[*pb.RunFinished](h, 27).Code = "" }},
	{"endings", "no reason", func(h *hand) { of[*pb.RunFinished](h, 34).Reason = 0 }},
	{"endings", "silent to the operator", func(h *hand) { drop[*pb.LeadReplied](h, 41) }},
	{"endings", "two last words", func(h *hand) {
		put(h, 41, 1, &pb.LeadReplied{Run: "r14", Text: body("done")})
	}},
	{"endings", "other words", func(h *hand) { of[*pb.LeadReplied](h, 41).Text = body("undone") }},
	{"endings", "words in the middle", func(h *hand) {
		h.until(40)
		put(h, 40, -2, &pb.LeadReplied{Run: "r14"})
	}},
}

var callFaults = []fault{
	{"calls", "an id again", func(h *hand) {
		of[*pb.ModelReplied](h, 10).Calls[0].Id = "f1"
		of[*pb.ToolCallStarted](h, 10).Call = "f1"
		h.until(10)
	}},
	{"calls", "an outcome twice", func(h *hand) {
		put(h, 12, -2, did("r2", "m1", 4, "i1", "task_complete", "{}"))
	}},
	{"calls", "out of order", func(h *hand) {
		c := of[*pb.ModelReplied](h, 28).Calls
		c[0], c[1] = c[1], c[0]
	}},
	{"calls", "nobody asked", func(h *hand) {
		put(h, 41, 1, did("r14", "lead", 3, "z1", "task_list", "{}"))
	}},
	{"calls", "after a cut reply", func(h *hand) {
		put(h, 14, 1, did("r4", "m2", 1, "j1", "task_list", "{}"))
	}},
	{"calls", "begun again", func(h *hand) {
		put(h, 6, 1, begins("r2", "m1", 1, "d2", "file_write", true))
	}},
	{"calls", "a step goes on without an outcome", func(h *hand) {
		r := of[*pb.ModelReplied](h, 41)
		r.Calls = []*pb.ToolCall{{Id: "z1", Name: "task_list"}}
		h.until(41)
		h.commits[40].Events = append(h.commits[40].Events[:1:1], event(calls("r14", "lead", 4, 1)))
	}},
	{"calls", "an outcome that a crash hid", func(h *hand) {
		of[*pb.ToolCallFinished](h, 11).Unknown = false
	}},
	{"calls", "unknown without a crash", func(h *hand) {
		drop[*pb.RunResumed](h, 11)
	}},
	{"calls", "unknown though it can be repeated", func(h *hand) { of[*pb.ToolCallFinished](h, 7).Unknown = true }},
	{"calls", "of another step", func(h *hand) { of[*pb.ToolCallFinished](h, 7).Step = 2 }},
	{"bound", "not what its hash says", func(h *hand) { of[*pb.AgentBound](h, 1).Instructions = "Do as you like." }},
	{"bound", "bound again", func(h *hand) { put(h, 45, -1, of[*pb.AgentBound](h, 1)) }},
	{"bound", "pinned to nothing", func(h *hand) {
		of[*pb.RunStarted](h, 45).AgentHash = "beef"
	}},
	{"bound", "a tool that is none", func(h *hand) {
		of[*pb.ToolCallStarted](h, 10).Name = "rm"
	}},
	{"bound", "a coordination tool is begun", func(h *hand) { of[*pb.ToolCallStarted](h, 10).Name = "task_list" }},
	{"bound calls", "declared otherwise", func(h *hand) { of[*pb.ToolCallStarted](h, 10).Idempotent = true }},
	{"bound", "an outcome of what was never begun", func(h *hand) {
		h.until(5)
		h.commits[4].Events = h.commits[4].Events[:3]
		put(h, 5, -1, did("r2", "m1", 1, "d2", "file_write", "x"), calls("r2", "m1", 2, 1))
	}},
}
