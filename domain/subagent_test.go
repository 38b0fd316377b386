package domain_test

import (
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/contract/subagent"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func delegating() *domain.Rules {
	r := rules()
	r.Delegation = subagent.Delegation{}
	return r
}

// caller is a conversation of a contract whose Lead works.
func caller(t *testing.T, contract string, change ...func(*rollcallv1.OpenConversation)) *domaintest.Kit {
	t.Helper()
	k := domaintest.New(t, delegating())
	k.Do(opening(func(o *rollcallv1.OpenConversation) {
		o.Contract, o.Objective = contract, domaintest.Text("begin")
		for _, c := range change {
			c(o)
		}
	}))
	return k
}

func piece(brief string) *rollcallv1.ToolCall { return domaintest.Call("task", args{"brief": brief}) }

func complete(summary string, paths ...string) *rollcallv1.ToolCall {
	return domaintest.Call("complete", args{"summary": summary, "paths": append([]string{}, paths...)})
}

// toolNames are those that a member's open run is bound to.
func toolNames(k *domaintest.Kit, member string) []string {
	var names []string
	for _, t := range k.State.Bindings[k.Member(member).Run.Agent].Tools {
		names = append(names, t.GetName())
	}
	return names
}

func TestSubagent(t *testing.T) {
	for _, contract := range []string{"none", "mailbox", "dag"} {
		t.Run(contract, func(t *testing.T) {
			k := caller(t, contract)
			events := k.Events("lead", piece("count the words"))
			mustEqual(t, "events", domaintest.Names(events), "ModelReplied SubagentStarted MessageDelivered AgentBound RunStarted ModelCallStarted")
			mustEqual(t, "phase", k.Member("lead").Run.Phase, domain.Delegating)
			mustEqual(t, "suspended", k.Member("lead").Run.Suspended, true)
			mustEqual(t, "name", k.Member("m1").Name, "Lead/task1")
			due := domain.Due(k.State)
			mustEqual(t, "due", len(due), 1)
			mustEqual(t, "whose", due[0].Member, "m1")
			k.Restart()
			events = k.Do(k.Reply("m1", "", complete("7 words")))
			mustEqual(t, "events", domaintest.Names(events), "ModelReplied ToolCallFinished RunFinished ToolCallFinished MemberShutdown ModelCallStarted")
			done := domaintest.Finished(events)[1]
			mustEqual(t, "of", done.GetMember(), "lead")
			mustEqual(t, "outcome", done.GetOutput().GetText(), `{"summary":"7 words","paths":[]}`)
			k.Ends("lead", "there are 7 words")
			mustEqual(t, "exit", k.State.Verdict().Exit, 0)
			mustEqual(t, "calls of all", k.State.Used.Calls, 3)
		})
	}
}

func TestSubagentThatDeliversNothing(t *testing.T) {
	t.Run("its last words", func(t *testing.T) {
		k := caller(t, "none")
		k.Act("lead", piece("count"))
		done := domaintest.Finished(k.Ends("m1", "I think there are 7"))
		mustEqual(t, "error", done[0].GetError(), false)
		mustEqual(t, "outcome", done[0].GetOutput().GetText(), `{"summary":"I think there are 7","paths":[],"undelivered":true}`)
	})
	t.Run("a failure", func(t *testing.T) {
		k := caller(t, "none")
		k.Act("lead", piece("count"))
		events := k.Do(k.ModelFails("m1", "model-key-refused", false))
		done := domaintest.Finished(events)
		mustEqual(t, "error", done[0].GetError(), true)
		mustContain(t, "outcome", done[0].GetOutput().GetText(), "model-key-refused", "it did not work")
		mustEqual(t, "the caller goes on", k.Member("lead").Run.Phase, domain.Calling)
	})
	t.Run("an interruption", func(t *testing.T) {
		k := caller(t, "none")
		k.Act("lead", piece("count"))
		done := domaintest.Finished(k.Do(interrupt("m1")))
		mustEqual(t, "error", done[0].GetError(), true)
		mustEqual(t, "alive", k.Member("m1").Alive(), false)
	})
	t.Run("its steps are used up", func(t *testing.T) {
		k := caller(t, "none", func(o *rollcallv1.OpenConversation) { o.Budget = &rollcallv1.Budget{Steps: 2} })
		k.Act("lead", piece("count"))
		k.Fails("m1", "fly", args{})
		done := domaintest.Finished(k.Do(k.Reply("m1", "", domaintest.Call("fly", args{}))))
		mustContain(t, "outcome", done[1].GetOutput().GetText(), "step-limit")
		mustEqual(t, "the caller goes on", k.Member("lead").Run.Phase, domain.Calling)
	})
}

func TestSubagentsSideBySide(t *testing.T) {
	k := caller(t, "none")
	events := k.Events("lead", piece("one"), piece("two"), domaintest.Call("fly", args{}), piece("three"))
	mustEqual(t, "started", domaintest.Count(events, "SubagentStarted"), 2)
	mustEqual(t, "due", len(domain.Due(k.State)), 2)
	events = k.Do(k.Reply("m2", "", complete("second")))
	mustEqual(t, "the caller waits", k.Member("lead").Run.Phase, domain.Delegating)
	mustEqual(t, "steps of the caller", domaintest.Count(events, "ModelCallStarted"), 0)
	k.Restart()
	events = k.Do(k.Reply("m1", "", complete("first")))
	mustEqual(t, "then", domaintest.Names(events), "ModelReplied ToolCallFinished RunFinished ToolCallFinished MemberShutdown ToolCallFinished SubagentStarted MessageDelivered RunStarted ModelCallStarted")
	mustEqual(t, "the last one", len(k.Do(k.Reply("m3", "", complete("third")))) > 0 && k.Member("lead").Run.Phase == domain.Calling, true)
	mustEqual(t, "step", k.Member("lead").Run.Step, 2)
}

func TestSubagentWorksInItsCallersFiles(t *testing.T) {
	k := caller(t, "none", func(o *rollcallv1.OpenConversation) {
		o.Files = []*rollcallv1.FileChange{domaintest.File("in.txt", "aa")}
	})
	k.Act("lead", piece("copy in.txt"))
	k.Do(k.Reply("m1", "", domaintest.Call("file_write", args{})))
	plan, ok := k.State.ToolPlan("m1")
	mustEqual(t, "plan", ok, true)
	mustEqual(t, "home", plan.Home, "Lead")
	mustEqual(t, "reads", plan.Files["in.txt"].GetSha256(), "aa")
	events := k.Do(k.ToolDone("m1", "written", domaintest.File("out.txt", "bb")))
	mustEqual(t, "whose file", events[0].GetFileWritten().GetMember(), "lead")
	mustContain(t, "refusal", k.Fails("m1", "complete", args{"summary": "x", "paths": []string{"none.txt"}}), "[file-not-found]", "out.txt")
	mustEqual(t, "it goes on", k.Member("m1").Run.Phase, domain.Calling)
	k.Do(k.Reply("m1", "", complete("copied", "out.txt")))
	mustEqual(t, "file of the Lead", k.Member("lead").Files["out.txt"].SHA256, "bb")
}

func TestSubagentIsNobodysPartner(t *testing.T) {
	k := caller(t, "mailbox", func(o *rollcallv1.OpenConversation) {
		o.Members = []*rollcallv1.MemberSpec{{Name: "Ada", Brief: "go"}}
	})
	k.Act("lead", piece("count"))
	k.Refused("member-is-subagent", domaintest.Say("m2", "hurry"))
	mustContain(t, "refusal", k.Fails("m1", "send_message", args{"to": "Lead/task1", "text": "hi"}), "[member-not-found]")
	plan, _ := k.State.StepPlan("m1")
	if strings.Contains(plan.Situation, "task1") {
		t.Errorf("the roster has the subagent: %s", plan.Situation)
	}
	plan, _ = k.State.StepPlan("m2")
	mustEqual(t, "its situation", plan.Situation, "")
	mustEqual(t, "its name", plan.Member.Name, "Lead/task1")
}

func TestDagExpertNoTeamTools(t *testing.T) {
	t.Run("dag-expert-no-team-tools", func(t *testing.T) {
		for _, contract := range []string{"none", "mailbox", "dag"} {
			k := caller(t, contract)
			k.Act("lead", piece("count"))
			mustBe(t, "tools", toolNames(k, "m1"), []string{"complete", "task", "deploy", "file_write"})
			for _, name := range []string{"team_create", "team_status", "team_send_message", "send_message", "task_create", "task_list"} {
				mustContain(t, "refusal", k.Fails("m1", name, args{}), "[tool-unknown]")
			}
		}
		// Nobody but a subagent delivers so, and an ordinary conversation has no team.
		k := caller(t, "none")
		mustBe(t, "tools of the Lead", toolNames(k, "lead"), []string{"task", "deploy", "file_write"})
		mustContain(t, "refusal", k.Fails("lead", "complete", args{"summary": "x"}), "[tool-unknown]")
	})
}

func TestDagSameSetupTwoModes(t *testing.T) {
	t.Run("dag-same-setup-two-modes", func(t *testing.T) {
		k := caller(t, "dag", func(o *rollcallv1.OpenConversation) {
			o.Agents = []*rollcallv1.AgentDefinition{{
				Name: "expert", Prompt: "You know boats.", Model: "big", Tools: []string{"deploy"}, Budget: &rollcallv1.Budget{Steps: 2, Tokens: 900},
			}}
		})
		k.Acts("lead", "team_create", args{"goal": "g", "members": []args{{"name": "Ada", "agent_type": "expert", "brief": "look"}}})
		k.Act("lead", domaintest.Call("task", args{"agent_type": "expert", "brief": "look"}))
		member, sub := k.Member("m1"), k.Member("m2")
		mustEqual(t, "role", sub.IsSubagent(), true)
		bound := map[string]*rollcallv1.AgentBound{}
		for _, e := range k.All() {
			if b := e.GetAgentBound(); b != nil {
				bound[b.GetHash()] = b
			}
		}
		one, other := bound[member.Run.Agent], bound[sub.Run.Agent]
		for what, pair := range map[string][2]string{
			"prompt": {one.GetDefinition().GetPrompt(), other.GetDefinition().GetPrompt()},
			"model":  {one.GetDefinition().GetModel(), other.GetDefinition().GetModel()},
			"budget": {one.GetDefinition().GetBudget().String(), other.GetDefinition().GetBudget().String()},
		} {
			mustEqual(t, what, pair[1], pair[0])
		}
		if one.GetInstructions() == other.GetInstructions() || !strings.Contains(other.GetInstructions(), "You work for one call") {
			t.Error("the modes have one text")
		}
		mustBe(t, "tools of the member", toolNames(k, "m1"), []string{"team_status", "team_send_message", "complete", "task", "deploy"})
		mustBe(t, "tools of the subagent", toolNames(k, "m2"), []string{"complete", "task", "deploy"})
		for _, id := range []string{"m1", "m2"} { // two steps each
			k.Fails(id, "fly", args{})
			events := k.Do(k.Reply(id, "", domaintest.Call("fly", args{})))
			mustEqual(t, "ends of "+id, domaintest.Count(events, "RunFinished"), 1)
		}
	})
}

func TestSubagentDepth(t *testing.T) {
	k := caller(t, "none")
	for _, id := range []string{"lead", "m1", "m2"} {
		k.Act(id, piece("deeper"))
	}
	mustBe(t, "tools at the bottom", toolNames(k, "m3"), []string{"complete", "deploy", "file_write"})
	mustContain(t, "refusal", k.Fails("m3", "task", args{"brief": "deeper"}), "[tool-unknown]")
	mustEqual(t, "name", k.Member("m3").Name, "Lead/task1/task2/task3")
	for _, id := range []string{"m3", "m2", "m1"} {
		k.Do(k.Reply(id, "", complete("done by "+id)))
	}
	mustEqual(t, "the Lead", k.Member("lead").Run.Phase, domain.Calling)
}

func TestSubagentRefusals(t *testing.T) {
	k := caller(t, "none")
	for text, a := range map[string]args{
		"[agent-type-unknown]": {"agent_type": "x", "brief": "b"}, "[text-empty]": {"brief": " "}, "[argument-invalid]": {},
		"[text-too-long]": {"brief": strings.Repeat("x", 65<<10)},
	} {
		mustContain(t, "refusal", k.Fails("lead", "task", a), text)
	}
	k = domaintest.New(t, delegating())
	k.Rules.Limits.Subagents = 2
	k.Do(opening(func(o *rollcallv1.OpenConversation) { o.Contract, o.Objective = "none", domaintest.Text("begin") }))
	done := k.Act("lead", piece("1"), piece("2"), piece("3"))
	mustEqual(t, "refused", len(done), 1)
	mustContain(t, "refusal", done[0].GetOutput().GetText(), "[limit-reached]")
	mustEqual(t, "the caller waits", k.Member("lead").Run.Phase, domain.Delegating)
	mustContain(t, "twice", domaintest.Finished(k.Do(k.Reply("m1", "", complete("one"), complete("two"))))[1].GetOutput().GetText(), "[once-a-run]")
}

func TestSubagentsEndWithTheirCaller(t *testing.T) {
	for name, end := range map[string]func(k *domaintest.Kit) *rollcallv1.Command{
		"the operator writes": func(*domaintest.Kit) *rollcallv1.Command { return domaintest.Say("", "stop") },
		"interrupted":         func(*domaintest.Kit) *rollcallv1.Command { return interrupt("") },
		"failed": func(k *domaintest.Kit) *rollcallv1.Command {
			return &rollcallv1.Command{Kind: &rollcallv1.Command_FailRun{FailRun: &rollcallv1.FailRun{Member: "lead", Run: k.Member("lead").Run.ID, Code: "step-crashed"}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := caller(t, "none")
			k.Act("lead", piece("one"), piece("two"))
			k.Act("m1", piece("deeper"))
			late := k.Reply("m3", "", complete("late"))
			events := k.Do(end(k))
			mustEqual(t, "shut down", domaintest.Count(events, "MemberShutdown"), 3)
			for _, w := range domain.Due(k.State) {
				if w.Member != "lead" {
					t.Errorf("%s still works", w.Member)
				}
			}
			k.Refused("stale-outcome", late)
		})
	}
	t.Run("dissolved", func(t *testing.T) {
		k := caller(t, "mailbox", func(o *rollcallv1.OpenConversation) {
			o.Members = []*rollcallv1.MemberSpec{{Name: "Ada", Brief: "go"}}
		})
		k.Act("m1", piece("one"))
		events := k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_DissolveTeam{DissolveTeam: &rollcallv1.DissolveTeam{}}})
		mustEqual(t, "shut down", domaintest.Count(events, "MemberShutdown"), 2)
		mustEqual(t, "calls of the dead", domaintest.Count(events, "ToolCallFinished"), 0)
	})
}

func TestSubagentAndApproval(t *testing.T) {
	k := caller(t, "none", func(o *rollcallv1.OpenConversation) { o.Approvals = tools("task", "deploy") })
	k.Act("lead", piece("one"), piece("two"))
	mustEqual(t, "nobody yet", len(k.State.Members), 1)
	k.Do(decide("a1", true, ""))
	mustEqual(t, "the second waits for the first", k.Member("lead").Run.Phase, domain.Delegating)
	k.Act("m1", domaintest.Call("deploy", args{}))
	mustEqual(t, "status", k.State.Status(), "waiting")
	mustEqual(t, "exit", k.State.Verdict().Exit, 6)
	k.Do(decide("a2", false, "not now"))
	k.Do(k.Reply("m1", "", complete("not deployed")))
	mustEqual(t, "asks for the second", k.Member("lead").Run.Phase, domain.Asking)
	k.Do(decide("a3", false, "one is enough"))
	mustEqual(t, "goes on", k.Member("lead").Run.Phase, domain.Calling)
}

func TestSubagentWhilePaused(t *testing.T) {
	k := caller(t, "none")
	late := k.Reply("lead", "", piece("one"))
	k.Do(pause())
	k.Do(late)
	mustEqual(t, "runs", k.Member("m1").Run == nil, true)
	mustEqual(t, "due", len(domain.Due(k.State)), 0)
	k.Do(resume())
	mustEqual(t, "runs", k.Member("m1").Run != nil, true)
	k.Do(pause())
	k.Do(k.Reply("m1", "", complete("done")))
	mustEqual(t, "the caller is parked", k.Member("lead").Run.Phase, domain.Parked)
	k.Do(resume())
	mustEqual(t, "the caller goes on", k.Member("lead").Run.Phase, domain.Calling)
}
