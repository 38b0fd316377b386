package domain_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// machine drives a conversation at random. The kit holds the invariants after
// every commit: see package domaintest.
type machine struct {
	*domaintest.Kit
	t *rapid.T
	// old are commands decided before; one of them may come again.
	old []*rollcallv1.Command
}

func TestMachine(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := delegating()
		r.Limits = domain.Limits{Subagents: 3, Depth: 2, Members: 5, Tasks: 8, Steps: 4, Attempts: 3, Resumes: 3, Reports: 3}
		k := domaintest.New(rt, r)
		k.Do(opening(func(o *rollcallv1.OpenConversation) {
			o.Objective = domaintest.Text("begin")
			o.Budget = &rollcallv1.Budget{Tokens: rapid.SampledFrom([]uint64{0, 3000}).Draw(rt, "budget")}
			o.Members = []*rollcallv1.MemberSpec{{Name: "Ada", Brief: "go"}, {Name: "Bob"}}
			o.Approvals = rapid.SampledFrom([]*rollcallv1.ApprovalPolicy{
				nil, tools("deploy", "send_message", "task_list", "task"),
				{Tools: []string{"team_create", "deploy"}, TimeoutSeconds: 60},
				{Tools: []string{"task_complete", "deploy"}, TimeoutSeconds: 60, ApproveOnTimeout: true},
			}).Draw(rt, "approvals")
		}))
		m := &machine{Kit: k, t: rt}
		rt.Repeat(map[string]func(*rapid.T){
			"say":       m.say,
			"reply":     m.reply,
			"reply2":    m.reply,
			"calls":     m.calls,
			"calls2":    m.calls,
			"calls3":    m.calls,
			"tool done": m.toolDone,
			"decide":    m.decide,
			"time":      m.time,
			"fails":     m.fails,
			"operator":  m.operator,
			"board":     m.board,
			"lost node": m.lostNode,
			"again":     m.again,
			"late":      m.late,
			"batch":     m.batch,
		})
		m.comesToRest()
	})
}

func (m *machine) try(cmd *rollcallv1.Command) {
	if cmd == nil {
		return
	}
	_, refusal := m.Try(cmd)
	if refusal == nil {
		m.old = append(m.old, cmd)
	}
}

// pick one of the members that a predicate admits, or nil.
func (m *machine) pick(admits func(*domain.Member) bool) *domain.Member {
	var found []*domain.Member
	for _, member := range m.State.Members {
		if admits(member) {
			found = append(found, member)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return rapid.SampledFrom(found).Draw(m.t, "member")
}

func inPhase(phase domain.Phase) func(*domain.Member) bool {
	return func(m *domain.Member) bool { return m.Run != nil && m.Run.Phase == phase }
}

func (m *machine) anyID() string {
	return rapid.SampledFrom([]string{"", "lead", "m1", "m2", "m3", "m4", "m9"}).Draw(m.t, "to")
}

func (m *machine) say(t *rapid.T) { m.try(m.word()) }

func (m *machine) word() *rollcallv1.Command {
	if rapid.IntRange(0, 4).Draw(m.t, "alert") == 0 {
		return domaintest.Alert(m.anyID(), "tick")
	}
	c := domaintest.SayMode(m.anyID(), "words", rollcallv1.MailMode(rapid.IntRange(0, 3).Draw(m.t, "mode")))
	if m.State.LastMessage > 0 && rapid.Bool().Draw(m.t, "replies") {
		c.GetPostMessage().ReplyTo = m.anyMessage()
	}
	return c
}

func (m *machine) anyMessage() string {
	return fmt.Sprintf("msg%d", rapid.Uint64Range(1, m.State.LastMessage+1).Draw(m.t, "message"))
}

func (m *machine) reply(t *rapid.T) {
	if member := m.pick(inPhase(domain.Calling)); member != nil {
		text := rapid.SampledFrom([]string{"done", "done", "", "half"}).Draw(t, "text")
		m.try(m.ReplyFinish(member.ID, rapid.SampledFrom([]string{"stop", "stop", "stop", "length"}).Draw(t, "finish"), text))
	}
}

func (m *machine) calls(t *rapid.T) {
	if member := m.pick(inPhase(domain.Calling)); member != nil {
		m.try(m.Reply(member.ID, "", rapid.SliceOfN(rapid.Custom(m.call), 1, 3).Draw(t, "calls")...))
	}
}

// call is a tool call that a model may make, sensible or not.
func (m *machine) call(t *rapid.T) *rollcallv1.ToolCall {
	name := rapid.SampledFrom([]string{"Lead", "user", "Ada", "Bob", "Cyd", "Dan", "nobody"})
	task := func() string { return fmt.Sprintf("t%d", rapid.IntRange(1, len(m.State.Tasks)+1).Draw(t, "task")) }
	tasks := func() []string {
		return slices.Collect(func(yield func(string) bool) {
			for range rapid.IntRange(0, 2).Draw(t, "dependencies") {
				if !yield(task()) {
					return
				}
			}
		})
	}
	switch rapid.IntRange(0, 16).Draw(t, "tool") {
	case 0:
		return domaintest.Call("team_create", args{"name": "crew"})
	case 1:
		return domaintest.Call("team_member_add", args{"name": name.Draw(t, "name"), "initial_prompt": "go"})
	case 2:
		return domaintest.Call("team_member_remove", args{"name": name.Draw(t, "name")})
	case 3:
		if rapid.IntRange(0, 3).Draw(t, "really") > 0 {
			return domaintest.Call("task_list", args{})
		}
		return domaintest.Call("team_dissolve", args{})
	case 4, 5:
		a := args{"to": name.Draw(t, "to"), "text": "hello", "wait_for_reply": rapid.Bool().Draw(t, "wait")}
		if rapid.Bool().Draw(t, "replies") {
			a["reply_to"] = m.anyMessage()
		}
		return domaintest.Call("send_message", a)
	case 6:
		return domaintest.Call("task_create", args{"title": "t", "description": "d", "owner": name.Draw(t, "owner"), "dependencies": tasks()})
	case 7:
		return domaintest.Call("task_update", args{
			"task_id": task(), "failure_reason": "because",
			"status": rapid.SampledFrom([]string{"in_progress", "claimable", "failed", "cancelled", "odd"}).Draw(t, "status"),
		})
	case 8:
		return domaintest.Call("task_update", args{"task_id": task(), "owner": name.Draw(t, "owner")})
	case 9:
		return domaintest.Call("task_update", args{"task_id": task(), "dependencies": tasks()})
	case 10:
		return domaintest.Call("task_complete", args{"task_id": task(), "result": "r"})
	case 11:
		return domaintest.Call("file_write", args{"path": "a"})
	case 12, 13:
		return piece("a piece")
	case 14, 15:
		return complete("a result", rapid.SampledFrom([][]string{nil, nil, {"a"}}).Draw(t, "paths")...)
	default:
		return domaintest.Call("deploy", args{})
	}
}

func (m *machine) toolDone(t *rapid.T) {
	if member := m.pick(inPhase(domain.InTool)); member != nil {
		m.try(m.ToolDone(member.ID, "ok", domaintest.File("a", "abc")))
	}
}

func (m *machine) fails(t *rapid.T) {
	if member := m.pick(inPhase(domain.Calling)); member != nil {
		m.try(m.ModelFails(member.ID, "model-cut", rapid.IntRange(0, 3).Draw(t, "transient") > 0))
	}
}

// decide answers an approval, pending or not.
func (m *machine) decide(t *rapid.T) {
	n := rapid.Uint64Range(max(m.State.LastApproval, 2)-2, m.State.LastApproval+1).Draw(t, "approval")
	if pending := m.State.PendingApprovals(); len(pending) > 0 && rapid.Bool().Draw(t, "pending") {
		m.try(decide(rapid.SampledFrom(pending).Draw(t, "of those").ID, rapid.Bool().Draw(t, "approve"), "so be it"))
		return
	}
	m.try(decide(fmt.Sprintf("a%d", n), rapid.Bool().Draw(t, "approve"), "so be it"))
}

// time brings the command of a timer that is armed.
func (m *machine) time(t *rapid.T) {
	if len(m.State.Timers) > 0 {
		m.try(m.Fire(rapid.SampledFrom(m.State.Timers).Draw(t, "timer").ID))
	}
}

func (m *machine) operator(t *rapid.T) {
	id := m.anyID()
	switch rapid.IntRange(0, 6).Draw(t, "verb") {
	case 0:
		m.try(interrupt(id))
	case 1:
		m.try(pause())
	case 2, 3:
		m.try(resume())
	case 4:
		m.try(&rollcallv1.Command{Kind: &rollcallv1.Command_RetryMember{RetryMember: &rollcallv1.RetryMember{Member: id}}})
	case 5:
		m.try(raise(&rollcallv1.Budget{Tokens: m.State.Used.InputTokens + m.State.Used.OutputTokens + 1000}))
	case 6:
		if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
			m.try(&rollcallv1.Command{Kind: &rollcallv1.Command_DissolveTeam{DissolveTeam: &rollcallv1.DissolveTeam{}}})
		}
	}
}

func (m *machine) board(t *rapid.T) {
	m.try(changeTask(&rollcallv1.ChangeTask{
		Operation: rollcallv1.ChangeTask_Operation(rapid.IntRange(0, 5).Draw(t, "operation")),
		Task:      fmt.Sprintf("t%d", rapid.IntRange(1, len(m.State.Tasks)+1).Draw(t, "task")),
		Title:     "t", Text: "text",
		Owner:        rapid.SampledFrom([]string{"", "user", "Ada", "Lead"}).Draw(t, "owner"),
		Dependencies: rapid.SampledFrom([][]string{nil, {"t1"}, {"t2", "t1"}}).Draw(t, "dependencies"),
	}))
}

// lostNode replaces the node: the state is folded anew, each open run is taken up.
func (m *machine) lostNode(t *rapid.T) {
	m.Restart()
	m.Epoch++
	if rapid.Bool().Draw(t, "drained before") {
		for _, w := range domain.Due(m.State) {
			m.try(&rollcallv1.Command{Kind: &rollcallv1.Command_SuspendRun{SuspendRun: &rollcallv1.SuspendRun{Member: w.Member, Run: w.Run, Reason: "drain"}}})
		}
	}
	for _, w := range domain.Due(m.State) {
		m.try(&rollcallv1.Command{Kind: &rollcallv1.Command_ResumeRun{ResumeRun: &rollcallv1.ResumeRun{Member: w.Member, Run: w.Run}}})
	}
}

// again repeats a command that had its effect: nothing may happen.
func (m *machine) again(t *rapid.T) {
	if len(m.old) == 0 {
		return
	}
	cmd := rapid.SampledFrom(m.old).Draw(t, "old")
	if _, known := m.State.Effect(cmd.GetId()); !known {
		return
	}
	before := len(m.Commits)
	if r, refusal := m.Try(cmd); refusal != nil || !r.Duplicate || len(m.Commits) != before {
		t.Fatalf("%s again: %+v %v", domaintest.Describe(cmd), r, refusal)
	}
}

// late brings an outcome under a new id that its run is past.
func (m *machine) late(t *rapid.T) {
	for _, cmd := range m.old {
		if r := cmd.GetRecordReply(); r != nil {
			m.Refused("stale-outcome", &rollcallv1.Command{Kind: cmd.Kind})
			return
		}
	}
}

// batch decides several commands into one commit.
func (m *machine) batch(t *rapid.T) {
	var cmds []*rollcallv1.Command
	for range rapid.IntRange(1, 3).Draw(t, "words") {
		c := m.word()
		c.GetPostMessage().To, c.GetPostMessage().ReplyTo = "", ""
		cmds = append(cmds, c)
	}
	m.Do(cmds...)
}

// comesToRest ends every run with a word: the conversation must become
// quiescent by itself, and then nothing is due.
func (m *machine) comesToRest() {
	if m.State.Paused {
		m.Do(resume())
	}
	for range 300 {
		due := domain.Due(m.State)
		if len(due) == 0 {
			v := m.State.Verdict()
			if v.Status == "" || m.State.Status() == "working" {
				m.t.Fatalf("at rest: %+v, %s", v, m.State.Status())
			}
			return
		}
		if due[0].Kind == domain.CallTool {
			m.Do(m.ToolDone(due[0].Member, "ok"))
		} else {
			m.Do(m.Reply(due[0].Member, "enough"))
		}
	}
	m.t.Fatalf("the conversation does not come to rest")
}
