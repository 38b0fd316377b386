package checker_test

import (
	pb "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

var subagentFaults = []fault{
	{"subagents", "another outcome than was delivered", func(h *hand) {
		h.commits[62].Events[3] = event(did("r61", "lead", 1, "x2", "task", "another result"))
	}},
	{"subagents", "a delivery that is an error", func(h *hand) {
		h.commits[62].Events[3].GetToolCallFinished().Error = true
	}},
	{"subagents", "last words as a delivery", func(h *hand) {
		h.commits[63].Events[2] = event(did("r61", "lead", 1, "x1", "task", `{"summary":"I think so"}`))
	}},
	{"subagents", "success of one that failed", func(h *hand) {
		h.until(64)
		f := h.commits[63].Events[1].GetRunFinished()
		f.Reason, f.Code = failed, "model-cut"
	}},
	{"subagents", "gone while its call waits", func(h *hand) {
		h.until(62)
		h.command("msg70", steers("msg70", "m7"), returns("r63", "m7", "msg63"), ends("r63", "m7", cancelled), &pb.MemberShutdown{Member: "m7"})
	}},
	{"subagents", "made for a call of another tool", func(h *hand) {
		h.until(67)
		of[*pb.ModelReplied](h, 67).Calls[0].Name = "task_list"
	}},
	{"subagents", "stays when its call is over", func(h *hand) {
		h.until(63)
		drop[*pb.MemberShutdown](h, 63)
	}},
}
