package checker_test

import (
	"slices"

	pb "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

var commitFaults = []fault{
	{"commit-id", "an id again", func(h *hand) { h.commits[4].Id = h.commits[2].GetId() }},
	{"commit-id", "no id", func(h *hand) { h.commits[4].Id = "" }},
	{"epoch", "a lower epoch after a higher one", func(h *hand) { h.commits[4].Epoch = 2 }},
	{"epoch", "an epoch of two nodes", func(h *hand) { h.commits[40].Node = "n2" }},
	{"command-once", "a command twice", func(h *hand) { h.commits[18].CommandIds[0] = h.commits[14].GetCommandIds()[0] }},
	{"command-once", "a command without what it made", func(h *hand) {
		h.commits[16].Subjects = nil
	}},
	{"opening", "opened again", func(h *hand) {
		h.command(conversation, &pb.ConversationOpened{Conversation: conversation, Tenant: tenant, Contract: "mailbox"})
	}},
	{"opening", "stored as another", func(h *hand) { of[*pb.ConversationOpened](h, 1).Tenant = "other" }},
	{"opening", "something before", func(h *hand) {
		put(h, 1, 0, &pb.TimerArmed{Timer: "x"})
	}},
}

var rosterFaults = []fault{
	{"roster", "an id again", func(h *hand) {
		h.until(4)
		h.command("", &pb.MemberAdded{Member: "m2", Name: "Cid", Role: pb.MemberRole_MEMBER_ROLE_MEMBER, Team: "team1", Ready: true})
	}},
	{"roster", "somebody unknown", func(h *hand) { h.command("", &pb.FileWritten{Member: "m9", Path: "x"}) }},
	{"roster", "a name again", func(h *hand) {
		h.until(4)
		h.command("", &pb.MemberAdded{Member: "m3", Name: "Ben", Role: pb.MemberRole_MEMBER_ROLE_MEMBER, Team: "team1", Ready: true})
	}},
	{"roster", "a second Lead", func(h *hand) {
		of[*pb.MemberAdded](h, 3).Role = pb.MemberRole_MEMBER_ROLE_LEAD
	}},
	{"roster", "no team to join", func(h *hand) { of[*pb.MemberAdded](h, 3).Team = "team2" }},
	{"roster", "a second team", func(h *hand) {
		h.commits[9].CommandIds, h.commits[9].Subjects = []string{"x"}, []string{""}
		put(h, 10, -1, &pb.TeamCreated{Team: "team2"})
	}},
	{"roster", "a team that is none", func(h *hand) {
		h.command("", &pb.TeamDissolved{Team: "team7", By: "operator"})
	}},
	{"roster", "a dissolved team's member lives", func(h *hand) {
		h.until(40)
		for range 3 { // control mail, the end of its wait, its end
			h.commits[39].Events = slices.Delete(h.commits[39].Events, 2, 3)
		}
	}},
	{"roster", "the Lead is shut down", func(h *hand) { h.command("", steers("msg40", "lead"), &pb.MemberShutdown{Member: "lead"}) }},
	{"roster mail", "somebody shut down twice", func(h *hand) { h.command("", &pb.MemberShutdown{Member: "m1"}) }},
}

var mailFaults = []fault{
	{"mail", "an id again", func(h *hand) {
		h.commit(mail("msg28", "framework", "lead", notice))
	}},
	{"mail", "of no kind", func(h *hand) {
		h.commit(mail("msg40", "framework", "lead", pb.MailKind_MAIL_KIND_UNSPECIFIED))
	}},
	{"mail coordination", "a member's words from the framework", func(h *hand) { of[*pb.MessageDelivered](h, 14).Kind = text }},
	{"mail", "an alert from a member", func(h *hand) { of[*pb.MessageDelivered](h, 14).From = "m1" }},
	{"mail", "the operator's words from a member", func(h *hand) { of[*pb.MessageDelivered](h, 15).From = "m1" }},
	{"mail", "to nobody", func(h *hand) { h.commit(mail("msg40", "framework", "m7", notice)) }},
	{"mail", "to somebody shut down", func(h *hand) {
		h.commit(mail("msg40", "framework", "m1", notice))
	}},
	{"mail", "control mail that does nothing", func(h *hand) { h.commit(steers("msg40", "lead")) }},
	{"mail", "shut down without control mail", func(h *hand) { drop[*pb.MessageDelivered](h, 40) }},
	{"consumed mail", "control mail that is read", func(h *hand) {
		h.commit(all(steers("msg40", "lead"), mail("msg41", "framework", "lead", alert), h.starts("r40", "lead", "msg40", "msg41"))...)
	}},
	{"mail", "an answer to nothing", func(h *hand) { of[*pb.MessageDelivered](h, 14).About = "msg99" }},
	{"mail", "a run that was not interrupted", func(h *hand) {
		h.until(19)
		of[*pb.MessageDelivered](h, 19).Mode = interrupt
	}},
	{"mail", "a second unread report", func(h *hand) {
		put(h, 27, -1, mail("msg40", "framework", "lead", report), mail("msg41", "framework", "lead", report))
		put(h, 28, -2, reads("r9", "lead", "msg40", "msg41"))
	}},
	{"mail", "the Lead waits", func(h *hand) {
		h.until(18)
		of[*pb.MessageDelivered](h, 18).WaitForReply = true
	}},
	{"justified", "no mail", func(h *hand) {
		h.commit(h.starts("r40", "lead")...)
	}},
	{"justified", "mail that does not wake", func(h *hand) {
		h.commit(all(mail("msg40", "framework", "lead", notice), h.starts("r40", "lead", "msg40"))...)
	}},
	{"justified consumed", "mail that was read", func(h *hand) {
		h.commit(h.starts("r40", "lead", "msg1")...)
	}},
	{"justified consumed", "mail of another", func(h *hand) {
		h.commit(h.starts("r40", "lead", "msg2")...)
	}},
	{"consumed", "read twice", func(h *hand) {
		h.until(15)
		s := of[*pb.RunStarted](h, 15)
		s.Consumed = append(refs([]string{"msg1"}), s.Consumed...)
	}},
	{"consumed", "read twice in one breath", func(h *hand) {
		s := of[*pb.RunStarted](h, 45)
		s.Consumed = append(s.Consumed, s.Consumed[0])
	}},
	{"consumed", "mail of another", func(h *hand) {
		h.until(21)
		h.commit(&pb.RunResumed{Run: "r4", Member: "m2"}, reads("r4", "m2", "msg13", "msg5"), calls("r4", "m2", 2, 2))
	}},
	{"consumed", "mail that is none", func(h *hand) {
		put(h, 22, 1, reads("r4", "m2", "msg99"))
	}},
	{"consumed", "at the wrong place", func(h *hand) {
		h.point()
		h.astray = true
		of[*pb.RunStarted](h, 45).Consumed[0].Ref = &pb.Ref{Version: 2}
	}},
	{"consumed", "out of order", func(h *hand) {
		c := of[*pb.RunStarted](h, 15).Consumed
		c[0], c[1] = c[1], c[0]
	}},
	{"consumed", "left unread by a run that starts", func(h *hand) {
		of[*pb.RunStarted](h, 33).Consumed = refs([]string{"msg16", "msg22"})
		h.until(33)
	}},
	{"consumed", "left unread by a step", func(h *hand) {
		h.until(40)
		drop[*pb.MessagesConsumed](h, 40)
	}},
	{"consumed", "queued mail is read at once", func(h *hand) {
		h.until(20)
		put(h, 20, 2, reads("r6", "lead", "msg14"))
	}},
	{"returned", "unanswered mail is kept", func(h *hand) {
		h.until(32)
		drop[*pb.MessagesReturned](h, 32)
	}},
	{"returned", "answered mail is returned", func(h *hand) {
		put(h, 13, 1, returns("r2", "m1", "msg6"))
		h.until(13)
		h.command("", &pb.ConversationPaused{})
		h.commits[12], h.commits[13] = h.commits[13], h.commits[12]
		h.commits[12].Version, h.commits[13].Version = 13, 14
	}},
	{"returned", "mail is returned and the run goes on", func(h *hand) {
		h.until(43)
		h.commit(returns("r16", "lead", "msg28"))
	}},
	{"wakes", "asleep over mail", func(h *hand) {
		h.command("msg40", order("msg40", "lead", interrupt))
	}},
	{"wakes", "asleep over a brief", func(h *hand) {
		h.until(3)
		c := h.commits[2]
		c.Events = c.Events[:len(c.Events)-2]
	}},
}
