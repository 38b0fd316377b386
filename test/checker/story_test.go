package checker_test

import (
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
	"github.com/rollcall-dev/rollcall/test/checker"
)

// story is a long log in which everything is as it should be, and everything
// happens: failures, a lost node in every phase, an interruption, a pause, waits
// of every end, a board that changes its mind, members that go.
func story() *hand {
	h := newHand()
	h.opening()
	h.teamwork()
	h.interruption()
	h.failure()
	h.departure()
	h.approvals()
	h.subagents()
	return h
}

func (h *hand) opening() {
	agent := bound()
	h.agent = agent.GetHash()
	h.ask("lead", "r1", 1)
	h.command(conversation, all( // 1
		&pb.ConversationOpened{Conversation: conversation, Tenant: tenant, Contract: "mailbox", Budget: &pb.Budget{Tokens: 1000}},
		&pb.MemberAdded{Member: "lead", Name: "Lead", Role: pb.MemberRole_MEMBER_ROLE_LEAD, Ready: true},
		mail("msg1", "operator", "lead", words),
		agent,
		h.starts("r1", "lead", "msg1"),
	)...)
	h.commit( // 2
		&pb.ModelCallFailed{Run: "r1", Member: "lead", Step: 1, Attempt: 1, Code: "model-cut", Retry: true},
		calls("r1", "lead", 1, 2),
	)
	first := wants("r1", "lead", 1, "c1 team_create", "c2 team_member_add", "c3 team_member_add", "c4 task_create", "c5 task_create", "c6 task_list")
	first.Attempt = 2
	first.Usage = &pb.Usage{InputTokens: 100, OutputTokens: 20}
	assigned := mail("msg5", "framework", "m2", notice)
	h.reply(first, all( // 3
		&pb.TeamCreated{Team: "team1", Name: "crew"},
		did("r1", "lead", 1, "c1", "team_create", `{"team":"team1"}`),
		&pb.MemberAdded{Member: "m1", Name: "Ana", Role: pb.MemberRole_MEMBER_ROLE_MEMBER, Team: "team1"},
		mail("msg2", "framework", "m1", brief),
		did("r1", "lead", 1, "c2", "team_member_add", `{"member":"m1"}`),
		&pb.MemberAdded{Member: "m2", Name: "Ben", Role: pb.MemberRole_MEMBER_ROLE_MEMBER, Team: "team1"},
		mail("msg3", "framework", "m2", brief),
		did("r1", "lead", 1, "c3", "team_member_add", `{"member":"m2"}`),
		&pb.TaskCreated{Task: "t1", Title: "paint", Owner: "Ana", Creator: "lead", Team: "team1", Status: claimable},
		mail("msg4", "framework", "m1", ready),
		did("r1", "lead", 1, "c4", "task_create", `{"task_id":"t1"}`),
		&pb.TaskCreated{Task: "t2", Title: "shed", Owner: "Ben", Creator: "lead", Team: "team1", Status: pending, Dependencies: []string{"t1"}},
		assigned,
		did("r1", "lead", 1, "c5", "task_create", `{"task_id":"t2"}`),
		did("r1", "lead", 1, "c6", "task_list", `{"tasks":[]}`),
		calls("r1", "lead", 2, 1),
		h.starts("r2", "m1", "msg2", "msg4"),
		h.starts("r3", "m2", "msg3", "msg5"),
	)...)
	h.last("r1", 2) // 4
}

// last is the Lead's last word.
func (h *hand) last(run string, step uint32) {
	h.reply(says(run, "lead", step, "done"), &pb.LeadReplied{Run: run, Text: body("done")}, ends(run, "lead", idle))
}

func (h *hand) teamwork() {
	h.reply(wants("r2", "m1", 1, "d1 task_update", "d2 file_write"), // 5
		&pb.TaskClaimed{Task: "t1", Owner: "Ana", By: "m1"},
		did("r2", "m1", 1, "d1", "task_update", `{"task_id":"t1"}`),
		begins("r2", "m1", 1, "d2", "file_write", true),
	)
	h.ask("m2", "r3", 1)
	h.commit( // 6: the node was lost
		&pb.RunResumed{Run: "r2", Member: "m1", Attempt: 1},
		&pb.RunResumed{Run: "r3", Member: "m2", Attempt: 1},
		calls("r3", "m2", 1, 2),
	)
	h.commit( // 7
		&pb.FileWritten{Member: "m1", Path: "a/paint.txt", Blob: &pb.Blob{}},
		did("r2", "m1", 1, "d2", "file_write", "written"),
		calls("r2", "m1", 2, 1),
	)
	ask := wants("r3", "m2", 1, "e1 send_message")
	ask.Attempt = 2
	h.reply(ask, // 8
		question("msg6", "m2", "m1"),
		did("r3", "m2", 1, "e1", "send_message", `{"message":"msg6"}`),
		&pb.WaitStarted{Member: "m2", Message: "msg6", Awaited: "m1"},
		ends("r3", "m2", waiting),
	)
	answer := mail("msg7", "m1", "m2", text)
	answer.ReplyTo = "msg6"
	h.reply(wants("r2", "m1", 2, "f1 send_message"), all( // 9
		answer,
		&pb.WaitEnded{Member: "m2", Message: "msg6", Reason: "replied"},
		did("r2", "m1", 2, "f1", "send_message", `{"message":"msg7"}`),
		reads("r2", "m1", "msg6"),
		calls("r2", "m1", 3, 1),
		h.starts("r4", "m2", "msg7"),
	)...)
	h.reply(wants("r2", "m1", 3, "g1 deploy"), begins("r2", "m1", 3, "g1", "deploy", false)) // 10
	h.commit(                                                                                // 11: the node was lost again
		&pb.RunResumed{Run: "r2", Member: "m1", Attempt: 1},
		&pb.ToolCallFinished{Run: "r2", Member: "m1", Step: 3, Call: "g1", Name: "deploy", Unknown: true, Error: true},
		calls("r2", "m1", 4, 1),
	)
	h.reply(wants("r2", "m1", 4, "i1 task_complete"), // 12
		&pb.TaskCompleted{Task: "t1", By: "m1"},
		&pb.TaskPromoted{Task: "t2", Status: claimable},
		mail("msg8", "framework", "lead", notice),
		mail("msg9", "framework", "m2", ready),
		did("r2", "m1", 4, "i1", "task_complete", `{"task_id":"t1"}`),
		calls("r2", "m1", 5, 1),
	)
	h.reply(says("r2", "m1", 5, "delivered"), ends("r2", "m1", completed)) // 13
	short := wants("r4", "m2", 1, "j1 task_create")
	short.Finish = "length"
	h.reply(short, // 14
		mail("msg10", "framework", "m2", alert),
		reads("r4", "m2", "msg9", "msg10"),
		calls("r4", "m2", 2, 1),
	)
}

// question is a message whose sender waits for the reply.
func question(id, from, to string) *pb.MessageDelivered {
	q := mail(id, from, to, text)
	q.WaitForReply = true
	return q
}

// steers is control mail.
func steers(id, to string) *pb.MessageDelivered {
	return mail(id, "framework", to, pb.MailKind_MAIL_KIND_CONTROL)
}

// order is the operator's word to a member.
func order(id, to string, mode pb.MailMode) *pb.MessageDelivered {
	o := mail(id, "operator", to, words)
	o.Mode = mode
	return o
}

const (
	interrupt = pb.MailMode_MAIL_MODE_INTERRUPT
	steer     = pb.MailMode_MAIL_MODE_STEER
	queue     = pb.MailMode_MAIL_MODE_QUEUE
)

func (h *hand) interruption() {
	h.command("msg11", all(order("msg11", "lead", interrupt), h.starts("r5", "lead", "msg8", "msg11"))...) // 15
	h.ask("lead", "r5", 1)
	h.command("msg12", all( // 16
		returns("r5", "lead", "msg8", "msg11"),
		ends("r5", "lead", interrupted),
		order("msg12", "lead", interrupt),
		h.starts("r6", "lead", "msg8", "msg11", "msg12"),
	)...)
	h.command("", &pb.ConversationPaused{By: "operator"}) // 17
	h.reply(wants("r6", "lead", 1, "k1 send_message"),    // 18
		mail("msg13", "lead", "m2", text),
		did("r6", "lead", 1, "k1", "send_message", `{"message":"msg13"}`),
		&pb.RunSuspended{Run: "r6", Member: "lead", Reason: "paused"},
	)
	h.command("msg14", order("msg14", "lead", queue)) // 19
	h.command("",                                     // 20
		&pb.ConversationResumed{By: "operator"},
		&pb.RunResumed{Run: "r6", Member: "lead"},
		calls("r6", "lead", 2, 1),
	)
	h.ask("m2", "r4", 2)
	h.commit(&pb.RunSuspended{Run: "r4", Member: "m2", Reason: "the node stops"}) // 21
	h.commit(                                                                     // 22
		&pb.RunResumed{Run: "r4", Member: "m2"},
		reads("r4", "m2", "msg13"),
		calls("r4", "m2", 2, 2),
	)
	h.reply(says("r6", "lead", 2, "done"), all( // 23
		&pb.LeadReplied{Run: "r6", Text: body("done")},
		ends("r6", "lead", idle),
		h.starts("r7", "lead", "msg14"),
	)...)
	h.last("r7", 1) // 24
}

func (h *hand) failure() {
	ask := wants("r4", "m2", 2, "l1 send_message")
	ask.Attempt = 2
	h.reply(ask, // 25
		question("msg15", "m2", "user"),
		did("r4", "m2", 2, "l1", "send_message", `{"message":"msg15"}`),
		&pb.WaitStarted{Member: "m2", Message: "msg15", Awaited: "user"},
		ends("r4", "m2", waiting),
	)
	h.command("msg16", all( // 26
		order("msg16", "m2", steer),
		&pb.WaitEnded{Member: "m2", Message: "msg15", Reason: "replied"},
		h.starts("r8", "m2", "msg16"),
	)...)
	h.ask("m2", "r8", 1)
	h.commit(all( // 27
		&pb.ModelCallFailed{Run: "r8", Member: "m2", Step: 1, Attempt: 1, Code: "model-key-refused"},
		returns("r8", "m2", "msg16"),
		ends("r8", "m2", failed),
		mail("msg17", "framework", "lead", report),
		h.starts("r9", "lead", "msg17"),
	)...)
	refused := did("r9", "lead", 1, "n1", "task_update", "Error: no such task")
	refused.Error = true
	h.reply(wants("r9", "lead", 1, "n1 task_update", "n2 task_update", "n3 task_update"), // 28
		refused,
		&pb.TaskCancelled{Task: "t2", By: "lead"},
		mail("msg18", "framework", "m2", notice),
		did("r9", "lead", 1, "n2", "task_update", `{"task_id":"t2"}`),
		&pb.TaskReopened{Task: "t1", By: "lead", Revision: 1},
		&pb.TaskPromoted{Task: "t1", Status: claimable},
		mail("msg19", "framework", "m1", notice),
		did("r9", "lead", 1, "n3", "task_update", `{"task_id":"t1"}`),
		calls("r9", "lead", 2, 1),
	)
	h.last("r9", 2)      // 29
	h.command("t3", all( // 30
		&pb.TaskCreated{Task: "t3", Title: "roof", Owner: "Ana", Creator: "operator", Team: "team1", Status: claimable},
		mail("msg20", "framework", "m1", ready),
		h.starts("r10", "m1", "msg19", "msg20"),
	)...)
	h.command("t3", &pb.TaskCompleted{Task: "t3", By: "operator"}, mail("msg21", "framework", "m1", notice)) // 31
	byHand := ends("r10", "m1", interrupted)
	byHand.Code = "interrupted-by-operator"
	h.command("", steers("msg30", "m1"), returns("r10", "m1", "msg19", "msg20"), byHand)                             // 32
	h.command("", all(mail("msg22", "framework", "m2", alert), h.starts("r11", "m2", "msg16", "msg18", "msg22"))...) // 33
	h.reply(says("r11", "m2", 1, "nothing to do"), ends("r11", "m2", idle))                                          // 34
}

func (h *hand) departure() {
	h.command("", all(mail("msg23", "framework", "m1", alert), h.starts("r12", "m1", "msg19", "msg20", "msg21", "msg23"))...) // 35
	h.reply(wants("r12", "m1", 1, "o1 send_message"), all(                                                                    // 36
		question("msg24", "m1", "m2"),
		did("r12", "m1", 1, "o1", "send_message", `{"message":"msg24"}`),
		&pb.WaitStarted{Member: "m1", Message: "msg24", Awaited: "m2"},
		ends("r12", "m1", waiting),
		h.starts("r13", "m2", "msg24"),
	)...)
	h.command("msg25", all(order("msg25", "lead", interrupt), h.starts("r14", "lead", "msg25"))...) // 37
	gone := mail("msg26", "framework", "m1", alert)
	gone.About = "msg24"
	h.reply(wants("r14", "lead", 1, "p1 team_member_remove"), all( // 38
		steers("msg31", "m2"),
		returns("r13", "m2", "msg24"),
		ends("r13", "m2", cancelled),
		&pb.MemberShutdown{Member: "m2", Reason: "removed"},
		did("r14", "lead", 1, "p1", "team_member_remove", `{"member":"m2"}`),
		calls("r14", "lead", 2, 1),
		&pb.WaitEnded{Member: "m1", Message: "msg24", Reason: "shutdown"},
		gone,
		h.starts("r15", "m1", "msg26"),
	)...)
	h.reply(wants("r15", "m1", 1, "q1 send_message"), // 39
		question("msg27", "m1", "lead"),
		did("r15", "m1", 1, "q1", "send_message", `{"message":"msg27"}`),
		&pb.WaitStarted{Member: "m1", Message: "msg27", Awaited: "lead"},
		ends("r15", "m1", waiting),
	)
	h.reply(wants("r14", "lead", 2, "s1 team_dissolve"), // 40
		&pb.TeamDissolved{Team: "team1", By: "lead"},
		steers("msg32", "m1"),
		&pb.WaitEnded{Member: "m1", Message: "msg27", Reason: "cancelled"},
		&pb.MemberShutdown{Member: "m1", Reason: "dissolved"},
		&pb.TaskCancelled{Task: "t1", By: "lead"},
		did("r14", "lead", 2, "s1", "team_dissolve", `{"note":"dissolved"}`),
		reads("r14", "lead", "msg27"),
		calls("r14", "lead", 3, 1),
	)
	h.last("r14", 3)                                                                 // 41
	h.command("", &pb.FileWritten{Member: "lead", Path: "in.txt", Blob: &pb.Blob{}}) // 42
	h.command("msg28", all(order("msg28", "lead", interrupt), h.starts("r16", "lead", "msg28"))...)
	dear := says("r16", "lead", 1, "") // 44
	dear.Usage = &pb.Usage{InputTokens: 900}
	h.reply(dear, mail("msg29", "framework", "lead", alert), ends("r16", "lead", outOfBudget))
	h.command("", all(&pb.BudgetRaised{Budget: &pb.Budget{Tokens: 5000}}, h.starts("r17", "lead", "msg29"))...) // 45
	h.commit(&pb.RunSuspended{Run: "r17", Member: "lead", Reason: "no slot"})
	h.commit(&pb.RunResumed{Run: "r17", Member: "lead", Waited: true}) // 47: it waited for its turn
	h.last("r17", 1)
}

// approvals: one is denied, one approved, one decided by the time, one void.
func (h *hand) approvals() {
	asks := func(run, id, call string) *pb.ApprovalRequested {
		return &pb.ApprovalRequested{Approval: id, Member: "lead", Run: run, Step: 1, Call: call, Tool: "publish"}
	}
	decided := func(id, by string, yes bool) *pb.ApprovalDecided {
		return &pb.ApprovalDecided{Approval: id, By: by, Approved: yes}
	}
	refused := did("r18", "lead", 1, "v1", "publish", "denied")
	refused.Error = true
	h.command("msg33", all(order("msg33", "lead", interrupt), h.starts("r18", "lead", "msg33"))...) // 49
	h.reply(wants("r18", "lead", 1, "v1 publish", "v2 publish", "v3 publish"), asks("r18", "a1", "v1"))
	third := asks("r18", "a3", "v3")
	third.Due, third.ApproveOnTimeout = timestamppb.New(time.Unix(100, 0)), true
	begun := func(call string) *pb.ToolCallStarted {
		return &pb.ToolCallStarted{Run: "r18", Member: "lead", Step: 1, Call: call, Name: "publish"}
	}
	h.command("a1", decided("a1", "operator", false), refused, asks("r18", "a2", "v2"))             // 51
	h.command("a2", decided("a2", "operator", true), begun("v2"))                                   // 52
	h.commit(did("r18", "lead", 1, "v2", "publish", "done"), third)                                 // 53
	h.command("", decided("a3", "framework", true), begun("v3"))                                    // 54
	h.commit(did("r18", "lead", 1, "v3", "publish", "done"), calls("r18", "lead", 2, 1))            // 55
	h.last("r18", 2)                                                                                // 56
	h.command("msg34", all(order("msg34", "lead", interrupt), h.starts("r19", "lead", "msg34"))...) // 57
	h.reply(wants("r19", "lead", 1, "w1 publish"), asks("r19", "a4", "w1"))
	h.command("msg35", all( // 59
		&pb.ApprovalVoided{Approval: "a4"}, ends("r19", "lead", interrupted), order("msg35", "lead", interrupt), h.starts("r20", "lead", "msg35"),
	)...)
	h.last("r20", 1) // 60
}

// subagents: one delivers, one beside it ends without, one is cancelled.
func (h *hand) subagents() {
	made := func(id, run, call string) *pb.SubagentStarted {
		return &pb.SubagentStarted{Subagent: id, Name: h.names[id], Member: "lead", Run: run, Step: 1, Call: call}
	}
	gone := func(id string) *pb.MemberShutdown { return &pb.MemberShutdown{Member: id, Reason: "its call is over"} }
	h.command("msg61", all(order("msg61", "lead", interrupt), h.starts("r61", "lead", "msg61"))...) // 61
	h.reply(wants("r61", "lead", 1, "x1 task", "x2 task"), all(                                     // 62
		made("m6", "r61", "x1"), mail("msg62", "framework", "m6", brief),
		made("m7", "r61", "x2"), mail("msg63", "framework", "m7", brief),
		h.starts("r62", "m6", "msg62"), h.starts("r63", "m7", "msg63"),
	)...)
	h.reply(wants("r63", "m7", 1, "y1 complete"), // 63
		did("r63", "m7", 1, "y1", "complete", "the result"),
		ends("r63", "m7", completed),
		did("r61", "lead", 1, "x2", "task", "the result"),
		gone("m7"),
	)
	h.reply(says("r62", "m6", 1, "I think so"), // 64
		ends("r62", "m6", idle),
		did("r61", "lead", 1, "x1", "task", `{"summary":"I think so","undelivered":true}`),
		gone("m6"),
		calls("r61", "lead", 2, 1),
	)
	h.last("r61", 2)                                                                                // 65
	h.command("msg64", all(order("msg64", "lead", interrupt), h.starts("r64", "lead", "msg64"))...) // 66
	h.reply(wants("r64", "lead", 1, "z1 task"), all(                                                // 67
		made("m8", "r64", "z1"), mail("msg65", "framework", "m8", brief), h.starts("r65", "m8", "msg65"),
	)...)
	h.command("msg67", all( // 68
		steers("msg66", "m8"), returns("r65", "m8", "msg65"), ends("r65", "m8", cancelled), gone("m8"), ends("r64", "lead", interrupted),
		order("msg67", "lead", interrupt), h.starts("r66", "lead", "msg67"),
	)...)
	h.last("r66", 1) // 69
}

func TestSoundLog(t *testing.T) {
	h := story()
	l := h.log(t)
	for _, f := range checker.Check(l, h.record) {
		t.Error(f)
	}
	decoded, err := checker.FromCommits(tenant, conversation, h.commits)
	if err != nil || !reflect.DeepEqual(decoded, l) {
		t.Errorf("the log of decoded commits is another: %v", err)
	}
}
