package checker_test

import (
	pb "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

var approvalFaults = []fault{
	{"approvals", "not asked for", func(h *hand) {
		h.until(58)
		h.commits[57].Events[1] = event(&pb.ToolCallStarted{Run: "r19", Member: "lead", Step: 1, Call: "w1", Name: "publish"})
	}},
	{"approvals", "begun after a denial", func(h *hand) {
		h.until(52)
		of[*pb.ApprovalDecided](h, 52).Approved = false
	}},
	{"approvals bound", "success after a denial", func(h *hand) {
		h.until(51)
		of[*pb.ToolCallFinished](h, 51).Error = false
	}},
	{"approvals", "an id again", func(h *hand) {
		h.until(58)
		of[*pb.ApprovalRequested](h, 58).Approval = "a1"
	}},
	{"approvals", "of a call that needs none", func(h *hand) {
		h.until(58)
		of[*pb.ModelReplied](h, 58).Calls[0].Name = "deploy"
		of[*pb.ApprovalRequested](h, 58).Tool = "deploy"
	}},
	{"approvals", "of another call", func(h *hand) {
		h.until(50)
		of[*pb.ApprovalRequested](h, 50).Call = "v2"
	}},
	{"approvals", "decided twice", func(h *hand) {
		h.until(52)
		h.command("a1", &pb.ApprovalDecided{Approval: "a1", By: "operator", Approved: true})
	}},
	{"approvals", "decided by a member", func(h *hand) {
		h.until(52)
		of[*pb.ApprovalDecided](h, 52).By = "lead"
	}},
	{"approvals", "decided without a command", func(h *hand) {
		h.until(52)
		h.commits[51].CommandIds, h.commits[51].Subjects = nil, nil
	}},
	{"approvals", "by the time, otherwise than by default", func(h *hand) {
		h.until(53)
		of[*pb.ApprovalRequested](h, 53).ApproveOnTimeout = false
		h.command("", &pb.ApprovalDecided{Approval: "a3", By: "framework", Approved: true},
			&pb.ToolCallStarted{Run: "r18", Member: "lead", Step: 1, Call: "v3", Name: "publish"})
	}},
	{"approvals", "by a time that there is not", func(h *hand) {
		of[*pb.ApprovalRequested](h, 53).Due = nil
	}},
	{"approvals", "outlives its run", func(h *hand) { drop[*pb.ApprovalVoided](h, 59) }},
	{"approvals", "void while its run goes on", func(h *hand) {
		h.until(58)
		h.command("", &pb.ApprovalVoided{Approval: "a4"})
	}},
	{"approvals", "void after it was decided", func(h *hand) {
		put(h, 59, 0, &pb.ApprovalVoided{Approval: "a3"})
	}},
}
