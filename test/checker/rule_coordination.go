package checker

import (
	"encoding/json"
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// coordinations: coordination is exactly once (promise 4). What a coordination
// tool does stands in one commit with the outcome of the call that did it, just
// before it: a message that a member sends, a change of the board or the team that
// a member makes, belongs to one call of that member, and a call does what it is
// for, once, under the id that it tells the member. A call that failed, or that
// only reads, does nothing.
func coordinations(b *book, say say) watcher {
	var did []fact
	var taken []string // members that took up their assignment in this commit
	return watcher{
		event: func(f fact) {
			if f.GetModelReplied() != nil {
				did = nil
				return
			}
			if e := f.GetToolCallFinished(); e != nil {
				switch r := b.in(f); {
				case r == nil || r.begun != nil: // of an external tool
				case r.delegated[e.GetCall()] != nil: // of a subagent
				case r == b.performing:
					accounted(b, say, r, e, did)
				case len(r.pending) > 0 && r.pending[0].GetId() == e.GetCall():
					say("call %s (%s) of %v has its outcome in a commit that brought neither its reply nor the outcome before it", e.GetCall(), e.GetName(), r)
				}
				did = nil
				return
			}
			if b.performing != nil && f.GetBudgetSettled() == nil && !b.subagents(f) { // that is of the reply, or of another rule
				did = append(did, f)
			}
			if b.assigned(f, &taken) {
				return
			}
			if by, what := deed(f); by != "" && by != operator && (b.performing == nil || b.performing.member.id != by) {
				say("%s %s, and no call of %s is being decided", by, what, by)
			}
		},
		end: func(*rollcallv1.Commit) {
			for _, f := range did {
				if by, what := deed(f); by != "" || structural(f) {
					say("%s %s, and the outcome of the call that did it is not in the commit", by, what)
				}
			}
			did = nil
			for _, id := range taken {
				say("%s takes up its task, and does not begin to work on it", id)
			}
			taken = nil
		},
	}
}

// deed is who did something that only a tool call or a command can do, and what
// it is; by is empty for what the framework does by itself, or whose author the
// event does not name.
func deed(f fact) (by, what string) {
	if d := f.GetMessageDelivered(); d != nil {
		if d.GetKind() == rollcallv1.MailKind_MAIL_KIND_TEXT {
			return d.GetFrom(), "writes message " + d.GetMessage()
		}
		return "", ""
	}
	if d := f.GetTeamDissolved(); d != nil {
		return d.GetBy(), "dissolves team " + d.GetTeam()
	}
	if task, by, ok := f.taskEvent(); ok && by != "" {
		return by, "changes task " + task + " (" + f.name() + ")"
	}
	return "", f.name()
}

// structural are changes of the team, which name no author.
func structural(f fact) bool {
	return f.GetTeamCreated() != nil || f.GetMemberAdded() != nil || f.GetMemberShutdown() != nil
}

// tally counts what a call did, by kind of event.
type tally map[string]int

// work is what a call does when it succeeds: must stands once, may any number of
// times.
type work struct {
	must string
	may  []string
}

// does are the calls of the contract of the conversation.
func (b *book) does() map[string]work {
	if b.contract == contractDag {
		return dagDoes
	}
	return mailboxDoes
}

var mailboxDoes = map[string]work{
	"send_message":       {must: "text"},
	"task_create":        {must: "TaskCreated"},
	"task_complete":      {must: "TaskCompleted", may: []string{"TaskClaimed"}},
	"task_update":        {may: []string{"TaskUpdated", "TaskReassigned", "TaskClaimed", "TaskReleased", "TaskReopened", "TaskFailed", "TaskCancelled"}},
	"task_list":          {},
	"task_get":           {},
	"team_create":        {must: "TeamCreated"},
	"team_member_add":    {must: "MemberAdded", may: []string{"brief"}},
	"team_member_remove": {must: "MemberShutdown", may: []string{"TaskReleased"}},
	"team_dissolve":      {must: "TeamDissolved", may: []string{"MemberShutdown", "TaskCancelled"}},
}

// accounted holds what a call did against what it is for.
func accounted(b *book, say say, r *run, e *rollcallv1.ToolCallFinished, did []fact) {
	t, made := tally{}, ""
	for _, f := range did {
		what := f.name()
		switch d := f.GetMessageDelivered(); {
		case d.GetKind() == rollcallv1.MailKind_MAIL_KIND_TEXT:
			what = "text"
		case d.GetKind() == rollcallv1.MailKind_MAIL_KIND_BRIEF:
			what = "brief"
		case d != nil:
			what = ""
		}
		if by, _ := deed(f); by == "" && !structural(f) && what != "brief" {
			continue // what follows from it
		}
		t[what]++
		if what == b.does()[e.GetName()].must {
			made = idOf(f)
		}
	}
	if e.GetError() {
		if len(did) > 0 {
			say("call %s (%s) of %v failed, and did something: %s", e.GetCall(), e.GetName(), r, did[0].name())
		}
		return
	}
	d, known := b.does()[e.GetName()]
	if !known || r.member.role == roleSubagent {
		return // of a contract that is not read here
	}
	if d.must != "" && t[d.must] != 1 {
		say("call %s (%s) of %v did %s %d times", e.GetCall(), e.GetName(), r, d.must, t[d.must])
	}
	for what := range t {
		if what != d.must && !slices.Contains(d.may, what) {
			say("call %s (%s) of %v did %s, which is not what it is for", e.GetCall(), e.GetName(), r, what)
		}
	}
	if told := toldID(e.GetOutput().GetText()); t[d.must] == 1 && made != "" && told != "" && told != made {
		say("call %s (%s) of %v made %s and tells the member %s", e.GetCall(), e.GetName(), r, made, told)
	}
	if b.contract == contractDag && t["MemberAdded"] != t["TaskCreated"] {
		say("call %s (%s) of %v made %d members with %d tasks", e.GetCall(), e.GetName(), r, t["MemberAdded"], t["TaskCreated"])
	}
	oncePerTask(say, r, e, did)
}

// oncePerTask: no call changes a task twice in the same way.
func oncePerTask(say say, r *run, e *rollcallv1.ToolCallFinished, did []fact) {
	type change struct{ task, kind string }
	seen := map[change]bool{}
	for _, f := range did {
		task, by, ok := f.taskEvent()
		c := change{task, f.name()}
		if ok && by != "" && seen[c] {
			say("call %s (%s) of %v did %s to task %s twice", e.GetCall(), e.GetName(), r, c.kind, c.task)
		}
		seen[c] = true
	}
}

// idOf is the id of what an event made or did something to.
func idOf(f fact) string {
	if d := f.GetMessageDelivered(); d != nil {
		return d.GetMessage()
	}
	if task, _, ok := f.taskEvent(); ok {
		return task
	}
	switch k := f.GetKind().(type) {
	case *rollcallv1.Event_ConversationOpened:
		return k.ConversationOpened.GetConversation()
	case *rollcallv1.Event_ApprovalDecided:
		return k.ApprovalDecided.GetApproval()
	case *rollcallv1.Event_TeamCreated:
		return k.TeamCreated.GetTeam()
	case *rollcallv1.Event_SubagentStarted:
		return k.SubagentStarted.GetSubagent()
	case *rollcallv1.Event_MemberAdded:
		return k.MemberAdded.GetMember()
	case *rollcallv1.Event_MemberShutdown:
		return k.MemberShutdown.GetMember()
	}
	return ""
}

// toldID is the id that a call's output names, as the contract's tools do.
func toldID(output string) string {
	var out struct {
		Message string `json:"message"`
		Task    string `json:"task_id"`
		Member  string `json:"member"`
		Team    string `json:"team"`
	}
	if json.Unmarshal([]byte(output), &out) != nil {
		return ""
	}
	for _, id := range []string{out.Message, out.Task, out.Member, out.Team} {
		if id != "" {
			return id
		}
	}
	return ""
}

// operators: what the operator did came by a command, and came once. What a
// command made stands beside its id; the acts of a commit are not more than its
// commands, and what a command is said to have made is there.
func operators(b *book, say say) watcher {
	var subjects []string
	seen := map[string]bool{}
	acts, opening := 0, false
	act := func() { acts++ }
	made := func(what, id string) {
		act()
		if i := slices.Index(subjects, id); i >= 0 {
			subjects = slices.Delete(subjects, i, i+1)
		} else {
			say("%s %s is the operator's, and no command of the commit made it", what, id)
		}
	}
	return watcher{
		commit: func(c *rollcallv1.Commit) {
			acts, opening = 0, false
			clear(seen)
			subjects = slices.DeleteFunc(slices.Clone(c.GetSubjects()), func(s string) bool { return s == "" })
		},
		event: func(f fact) {
			seen[idOf(f)] = true
			switch k := f.GetKind().(type) {
			case *rollcallv1.Event_ConversationOpened:
				opening = true
				made("conversation", k.ConversationOpened.GetConversation())
			case *rollcallv1.Event_MessageDelivered:
				d := k.MessageDelivered
				if d.GetKind() != rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE {
					return
				}
				if opening && d.GetMode() == rollcallv1.MailMode_MAIL_MODE_UNSPECIFIED {
					opening = false // the objective, of which there is one
					return
				}
				made("message", d.GetMessage())
			case *rollcallv1.Event_TaskCreated:
				if k.TaskCreated.GetCreator() == operator {
					made("task", k.TaskCreated.GetTask())
				}
			case *rollcallv1.Event_ConversationPaused, *rollcallv1.Event_ConversationResumed, *rollcallv1.Event_BudgetRaised, *rollcallv1.Event_TimerFired:
				act()
			case *rollcallv1.Event_TeamDissolved:
				if k.TeamDissolved.GetBy() == operator {
					act()
				}
			case *rollcallv1.Event_TaskCompleted:
				if k.TaskCompleted.GetBy() == operator {
					made("the completion of task", k.TaskCompleted.GetTask())
				}
			case *rollcallv1.Event_TaskFailed:
				if k.TaskFailed.GetBy() == operator {
					made("the failure of task", k.TaskFailed.GetTask())
				}
			case *rollcallv1.Event_RunFinished:
				if k.RunFinished.GetCode() == byHand {
					act()
				}
			case *rollcallv1.Event_TeamCreated, *rollcallv1.Event_MemberAdded, *rollcallv1.Event_MemberShutdown:
				if b.performing == nil && len(b.current.GetCommandIds()) == 0 && !b.subagents(f) {
					say("neither a call nor a command made it")
				}
			}
			if _, by, ok := f.taskEvent(); ok && by == operator && len(b.current.GetCommandIds()) == 0 {
				say("the operator changed a task, and no command came with the commit")
			}
		},
		end: func(c *rollcallv1.Commit) {
			if n := len(c.GetCommandIds()); acts > n {
				say("the operator acted %d times, by %d commands", acts, n)
			}
			for i, made := range c.GetSubjects() {
				if made != "" && !seen[made] {
					say("command %d of the commit is said to have made %s, and nothing happened to it", i+1, made)
				}
			}
		},
	}
}
