package dag_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// machine drives a team at random; the kit holds the invariants after every
// commit. Whatever happened, the conversation then comes to rest within a
// bounded number of model calls, and nobody who could begin has not begun.
type machine struct {
	*domaintest.Kit
	t *rapid.T
}

func TestMachine(t *testing.T) {
	rules := &domain.Rules{Contracts: contract.All(), Limits: domain.Limits{Members: 12, Tasks: 20, Steps: 6, Reports: 4}}
	rapid.Check(t, func(rt *rapid.T) {
		m := &machine{Kit: domaintest.Open(rt, rules, "dag"), t: rt}
		m.Do(domaintest.Say("", "go"))
		rt.Repeat(map[string]func(*rapid.T){
			"plan":     m.plan,
			"plan2":    m.plan,
			"member":   m.member,
			"member2":  m.member,
			"member3":  m.member,
			"ends":     m.ends,
			"fails":    m.fails,
			"operator": m.operator,
			"lost":     m.lost,
		})
		m.comesToRest()
	})
}

// name draws from few names, so that some are taken, gone or unknown.
func (m *machine) name() string { return fmt.Sprint("M", rapid.IntRange(0, 8).Draw(m.t, "name")) }

func (m *machine) needs() []string {
	needs := []string{}
	for range rapid.IntRange(0, 2).Draw(m.t, "needs") {
		needs = append(needs, m.name())
	}
	return needs
}

func (m *machine) entry() args {
	return args{"name": m.name(), "brief": "b", "depends_on": m.needs()}
}

func (m *machine) operation() args {
	op := m.entry()
	op["op"] = rapid.SampledFrom([]string{"add", "add", "revise", "cancel"}).Draw(m.t, "op")
	if rapid.Bool().Draw(m.t, "keep edges") {
		delete(op, "depends_on")
	}
	return op
}

// act lets a member make calls, if its model is being called.
func (m *machine) act(id string, calls ...*rollcallv1.ToolCall) {
	if run := m.State.Member(id).Run; run != nil && run.Phase == domain.Calling {
		m.Try(m.Reply(id, "", calls...))
	}
}

func (m *machine) plan(*rapid.T) {
	switch rapid.SampledFrom([]string{"create", "replan", "replan", "replan", "send", "status", "dissolve"}).Draw(m.t, "plan") {
	case "create":
		var members []args
		for range rapid.IntRange(1, 4).Draw(m.t, "members") {
			members = append(members, m.entry())
		}
		m.act("lead", domaintest.Call("team_create", args{"goal": "g", "members": members}))
	case "replan":
		var operations []args
		for range rapid.IntRange(1, 4).Draw(m.t, "operations") {
			operations = append(operations, m.operation())
		}
		m.act("lead", domaintest.Call("team_replan", args{"operations": operations, "atomic": rapid.Bool().Draw(m.t, "atomic")}))
	case "send":
		m.act("lead", domaintest.Call("team_send_message", args{"to": m.name(), "text": "x", "reply_to": m.message()}))
	case "status":
		m.act("lead", domaintest.Call("team_status", args{}))
	case "dissolve":
		if rapid.IntRange(0, 3).Draw(m.t, "really") == 0 {
			m.act("lead", domaintest.Call("team_dissolve", args{}))
		}
	}
}

// message is an id that exists, or none.
func (m *machine) message() string {
	n := rapid.Uint64Range(0, m.State.LastMessage).Draw(m.t, "message")
	if n == 0 {
		return ""
	}
	return fmt.Sprint("msg", n)
}

// someone is a member that works, by its id; empty when nobody does.
func (m *machine) someone() string {
	var busy []string
	for _, member := range m.State.Members {
		if !member.IsLead() && member.Run != nil {
			busy = append(busy, member.ID)
		}
	}
	if len(busy) == 0 {
		return ""
	}
	return rapid.SampledFrom(busy).Draw(m.t, "member")
}

func (m *machine) member(*rapid.T) {
	id := m.someone()
	if id == "" {
		return
	}
	var made []*rollcallv1.ToolCall
	for range rapid.IntRange(1, 3).Draw(m.t, "calls") {
		switch rapid.SampledFrom([]string{"complete", "complete", "send", "ask", "status"}).Draw(m.t, "call") {
		case "complete":
			made = append(made, domaintest.Call("complete", args{"summary": "s"}))
		case "send":
			made = append(made, domaintest.Call("team_send_message", args{"to": m.name(), "text": "x", "reply_to": m.message()}))
		case "ask":
			to := rapid.SampledFrom([]string{"Lead", "user", m.name()}).Draw(m.t, "to")
			made = append(made, domaintest.Call("team_send_message", args{"to": to, "text": "?", "wait_for_reply": true}))
		case "status":
			made = append(made, domaintest.Call("team_status", args{}))
		}
	}
	m.act(id, made...)
}

func (m *machine) ends(*rapid.T) {
	id := rapid.SampledFrom([]string{"lead", m.someone()}).Draw(m.t, "who")
	if id != "" && m.State.Member(id).Run != nil && m.State.Member(id).Run.Phase == domain.Calling {
		m.Try(m.Reply(id, "so be it"))
	}
}

func (m *machine) fails(*rapid.T) {
	id := rapid.SampledFrom([]string{"lead", m.someone(), m.someone()}).Draw(m.t, "who")
	if id != "" && m.State.Member(id).Run != nil && m.State.Member(id).Run.Phase == domain.Calling {
		m.Try(m.ModelFails(id, "model-unreachable", false))
	}
}

func (m *machine) operator(*rapid.T) {
	command := func(kind any) { m.Try(commandOf(kind)) }
	switch rapid.SampledFrom([]string{"say", "say to", "retry", "interrupt", "pause", "resume", "task", "dissolve"}).Draw(m.t, "operator") {
	case "say":
		m.Try(domaintest.Say("", "x"))
	case "say to":
		m.Try(domaintest.Say(m.anyID(), "x"))
	case "retry":
		command(&rollcallv1.RetryMember{})
	case "interrupt":
		command(&rollcallv1.InterruptMember{Member: m.anyID()})
	case "pause":
		command(&rollcallv1.PauseConversation{})
	case "resume":
		command(&rollcallv1.ResumeConversation{})
	case "task":
		op := rapid.SampledFrom([]rollcallv1.ChangeTask_Operation{
			rollcallv1.ChangeTask_OPERATION_DONE, rollcallv1.ChangeTask_OPERATION_FAIL, rollcallv1.ChangeTask_OPERATION_CANCEL,
		}).Draw(m.t, "change")
		command(&rollcallv1.ChangeTask{Operation: op, Task: fmt.Sprint("t", rapid.IntRange(1, 12).Draw(m.t, "task")), Text: "by hand"})
	case "dissolve":
		if rapid.IntRange(0, 4).Draw(m.t, "really") == 0 {
			command(&rollcallv1.DissolveTeam{})
		}
	}
}

func (m *machine) anyID() string {
	return rapid.SampledFrom(m.State.Members).Draw(m.t, "anybody").ID
}

func commandOf(kind any) *rollcallv1.Command {
	c := &rollcallv1.Command{Actor: "operator"}
	switch k := kind.(type) {
	case *rollcallv1.RetryMember:
		c.Kind = &rollcallv1.Command_RetryMember{RetryMember: k}
	case *rollcallv1.InterruptMember:
		c.Kind = &rollcallv1.Command_InterruptMember{InterruptMember: k}
	case *rollcallv1.PauseConversation:
		c.Kind = &rollcallv1.Command_PauseConversation{PauseConversation: k}
	case *rollcallv1.ResumeConversation:
		c.Kind = &rollcallv1.Command_ResumeConversation{ResumeConversation: k}
	case *rollcallv1.ChangeTask:
		c.Kind = &rollcallv1.Command_ChangeTask{ChangeTask: k}
	case *rollcallv1.DissolveTeam:
		c.Kind = &rollcallv1.Command_DissolveTeam{DissolveTeam: k}
	}
	return c
}

// lost restarts from the log, and takes up what is owed.
func (m *machine) lost(*rapid.T) {
	m.Restart()
	for _, w := range domain.Due(m.State) {
		m.Try(&rollcallv1.Command{Kind: &rollcallv1.Command_ResumeRun{ResumeRun: &rollcallv1.ResumeRun{Member: w.Member, Run: w.Run}}})
	}
}

// comesToRest lets everybody end its turn without doing anything more.
func (m *machine) comesToRest() {
	m.Try(commandOf(&rollcallv1.ResumeConversation{}))
	for n := 0; len(domain.Due(m.State)) > 0; n++ {
		if n > 200 {
			m.Fatalf("it never comes to rest: %+v", domain.Due(m.State))
		}
		m.Do(m.Reply(domain.Due(m.State)[0].Member, "that is all"))
	}
	v := m.State.Verdict()
	if v.Exit == 0 && (len(m.State.OpenTasks()) > 0 || len(v.NeedsOperator) > 0) {
		m.Fatalf("it ends with %+v and %d open tasks", v, len(m.State.OpenTasks()))
	}
	for _, member := range m.State.Members {
		t := m.State.Task(member.Task)
		if t == nil || member.Held || member.Status != unborn {
			continue
		}
		if t.Status == rollcallv1.TaskStatus_TASK_STATUS_CLAIMABLE && m.State.Budget == (domain.Budget{}) {
			m.Fatalf("%s could begin and has not", member.Name)
		}
	}
}
