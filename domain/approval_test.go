package domain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

var decide = domaintest.Decide

// approving is a conversation where the calls of these tools need approval. The
// Lead was given something to do.
func approving(t *testing.T, policy *rollcallv1.ApprovalPolicy, change ...func(*rollcallv1.OpenConversation)) *domaintest.Kit {
	t.Helper()
	k := domaintest.New(t, rules())
	k.Do(opening(func(o *rollcallv1.OpenConversation) {
		o.Objective, o.Approvals = domaintest.Text("begin"), policy
		for _, c := range change {
			c(o)
		}
	}))
	return k
}

func tools(names ...string) *rollcallv1.ApprovalPolicy {
	return &rollcallv1.ApprovalPolicy{Tools: names}
}

func TestApprovalHoldsTheCall(t *testing.T) {
	t.Run("external", func(t *testing.T) {
		k := approving(t, tools("deploy"))
		events := k.Events("lead", domaintest.Call("deploy", args{"to": "prod"}))
		mustEqual(t, "events", domaintest.Names(events), "ModelReplied ApprovalRequested")
		mustEqual(t, "phase", k.Member("lead").Run.Phase, domain.Asking)
		mustEqual(t, "due", len(domain.Due(k.State)), 0)
		mustEqual(t, "timers", len(k.State.Timers), 0)
		mustEqual(t, "status", k.State.Status(), "waiting")
		v := k.State.Verdict()
		mustEqual(t, "exit", v.Exit, 6)
		mustEqual(t, "needs", v.NeedsOperator[0], domain.Need{Kind: "approval", ID: "a1"})
		events = k.Do(decide("a1", true, ""))
		mustEqual(t, "events", domaintest.Names(events), "ApprovalDecided ToolCallStarted")
		mustEqual(t, "due", domain.Due(k.State)[0].Kind, domain.CallTool)
		events = k.Do(k.ToolDone("lead", "deployed"))
		mustEqual(t, "events", domaintest.Names(events), "ToolCallFinished ModelCallStarted")
	})
	t.Run("coordination", func(t *testing.T) {
		k := approving(t, tools("team_create"))
		events := k.Events("lead", domaintest.Call("team_create", args{"name": "crew"}))
		mustEqual(t, "teams before", domaintest.Count(events, "TeamCreated"), 0)
		events = k.Do(decide("a1", true, "a good plan"))
		mustEqual(t, "events", domaintest.Names(events), "ApprovalDecided TeamCreated ToolCallFinished ModelCallStarted")
		mustEqual(t, "by", events[0].GetApprovalDecided().GetBy(), "operator")
	})
	t.Run("the tool says so itself", func(t *testing.T) {
		r := rules()
		r.Tools[1].NeedsApproval = true
		k := domaintest.New(t, r)
		k.Do(opening(func(o *rollcallv1.OpenConversation) { o.Objective = domaintest.Text("begin") }))
		mustEqual(t, "asked", domaintest.Count(k.Events("lead", domaintest.Call("deploy", args{})), "ApprovalRequested"), 1)
	})
	t.Run("the agent type says so", func(t *testing.T) {
		k := approving(t, nil, func(o *rollcallv1.OpenConversation) {
			o.Agents = []*rollcallv1.AgentDefinition{{Name: "careful", Approve: []string{"deploy"}}}
			o.Members = []*rollcallv1.MemberSpec{{Name: "Ada", AgentType: "careful", Brief: "go"}}
		})
		mustEqual(t, "asked of the Lead", domaintest.Count(k.Events("lead", domaintest.Call("deploy", args{})), "ApprovalRequested"), 0)
		mustEqual(t, "asked of Ada", domaintest.Count(k.Events("m1", domaintest.Call("deploy", args{})), "ApprovalRequested"), 1)
	})
	t.Run("a call that cannot be read asks nobody", func(t *testing.T) {
		k := approving(t, tools("deploy"))
		k.Events("lead", &rollcallv1.ToolCall{Name: "deploy", Arguments: "{"})
		mustEqual(t, "pending", len(k.State.PendingApprovals()), 0)
	})
}

// Field B43: a denial is the call's result, and the batch goes on.
func TestB43DenyOneOfTwoCalls(t *testing.T) {
	k := approving(t, tools("deploy"))
	k.Act("lead", domaintest.Call("deploy", args{}), domaintest.Call("task_list", args{}))
	events := k.Do(decide("a1", false, "not on a Friday"))
	done := domaintest.Finished(events)
	mustEqual(t, "results", len(done), 2)
	mustEqual(t, "first is an error", done[0].GetError(), true)
	mustContain(t, "first result", done[0].GetOutput().GetText(), "not on a Friday")
	mustEqual(t, "second", done[1].GetName(), "task_list")
	mustEqual(t, "model calls", domaintest.Count(events, "ModelCallStarted"), 1)
}

// Field B07: each answer starts one step, with the reason.
func TestB07ApprovalWakesOnce(t *testing.T) {
	for _, approve := range []bool{true, false} {
		k := approving(t, tools("team_create"))
		k.Act("lead", domaintest.Call("team_create", args{"name": "crew"}))
		k.Restart()
		events := k.Do(decide("a1", approve, "because I say so"))
		mustEqual(t, "model calls", domaintest.Count(events, "ModelCallStarted"), 1)
		mustEqual(t, "results", domaintest.Count(events, "ToolCallFinished"), 1)
		if !approve {
			mustContain(t, "result", domaintest.Finished(events)[0].GetOutput().GetText(), "because I say so")
		}
		k.Refused("approval-decided", decide("a1", !approve, "on second thoughts"))
		mustEqual(t, "due", len(domain.Due(k.State)), 1)
	}
}

func TestFirstAnswerWins(t *testing.T) {
	k := approving(t, tools("deploy"))
	k.Act("lead", domaintest.Call("deploy", args{}))
	k.Refused("approval-not-found", decide("a2", true, ""))
	k.Refused("approval-not-found", decide("", true, ""))
	k.Refused("approval-not-found", decide("a0", true, ""))
	k.Refused("text-empty", decide("a1", false, " "))
	k.Refused("text-too-long", decide("a1", true, strings.Repeat("x", 5000)))
	k.Do(decide("a1", false, "too risky"))
	r := k.Refused("approval-decided", decide("a1", true, ""))
	mustContain(t, "refusal", r.Error(), "operator", "denied", "too risky")
}

func TestApprovalByTime(t *testing.T) {
	for _, approve := range []bool{false, true} {
		policy := &rollcallv1.ApprovalPolicy{Tools: []string{"deploy"}, TimeoutSeconds: 3600, ApproveOnTimeout: approve}
		k := approving(t, policy)
		events := k.Events("lead", domaintest.Call("deploy", args{}))
		mustEqual(t, "events", domaintest.Names(events), "ModelReplied ApprovalRequested TimerArmed")
		mustEqual(t, "due", events[1].GetApprovalRequested().GetDue().AsTime(), k.State.Time.Add(time.Hour))
		mustEqual(t, "work", len(domain.Due(k.State)), 0)
		mustEqual(t, "timers", len(domain.ArmedTimers(k.State)), 1)
		k.Restart()
		fire := k.Fire("approval-a1")
		events = k.Do(fire)
		want := "TimerFired ApprovalDecided ToolCallFinished ModelCallStarted"
		if approve {
			want = "TimerFired ApprovalDecided ToolCallStarted"
		}
		mustEqual(t, "events", domaintest.Names(events), want)
		mustEqual(t, "by", events[1].GetApprovalDecided().GetBy(), "framework")
		mustContain(t, "refusal", k.Refused("approval-decided", decide("a1", true, "")).Error(), "framework")
		mustEqual(t, "fired again", len(k.Do(&rollcallv1.Command{Actor: "framework", Kind: fire.Kind})), 0)
	}
	t.Run("after the operator", func(t *testing.T) {
		k := approving(t, &rollcallv1.ApprovalPolicy{Tools: []string{"deploy"}, TimeoutSeconds: 60})
		k.Act("lead", domaintest.Call("deploy", args{}))
		fire := k.Fire("approval-a1")
		k.Do(decide("a1", true, ""))
		mustEqual(t, "timers", len(k.State.Timers), 0)
		mustEqual(t, "the timer", len(k.Do(fire)), 0)
	})
}

func TestApprovalIsVoidWithoutItsRun(t *testing.T) {
	team := func(o *rollcallv1.OpenConversation) {
		o.Members = []*rollcallv1.MemberSpec{{Name: "Ada", Brief: "go"}}
	}
	ends := map[string]func(k *domaintest.Kit) *rollcallv1.Command{
		"interrupted": func(*domaintest.Kit) *rollcallv1.Command { return interrupt("m1") },
		"dissolved": func(*domaintest.Kit) *rollcallv1.Command {
			return &rollcallv1.Command{Kind: &rollcallv1.Command_DissolveTeam{DissolveTeam: &rollcallv1.DissolveTeam{}}}
		},
		"removed": func(k *domaintest.Kit) *rollcallv1.Command {
			return k.Reply("lead", "", domaintest.Call("team_member_remove", args{"name": "Ada"}))
		},
		"failed": func(k *domaintest.Kit) *rollcallv1.Command {
			return &rollcallv1.Command{Kind: &rollcallv1.Command_FailRun{FailRun: &rollcallv1.FailRun{Member: "m1", Run: k.Member("m1").Run.ID, Code: "step-crashed"}}}
		},
		"the operator wrote": func(*domaintest.Kit) *rollcallv1.Command {
			return domaintest.SayMode("m1", "stop that", rollcallv1.MailMode_MAIL_MODE_INTERRUPT)
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			k := approving(t, &rollcallv1.ApprovalPolicy{Tools: []string{"deploy"}, TimeoutSeconds: 60}, team)
			k.Act("m1", domaintest.Call("deploy", args{}), domaintest.Call("task_list", args{}))
			fire := k.Fire("approval-a1")
			events := k.Do(end(k))
			mustEqual(t, "voided", domaintest.Count(events, "ApprovalVoided"), 1)
			mustEqual(t, "timers", len(k.State.Timers), 0)
			r := k.Refused("approval-void", decide("a1", true, ""))
			mustContain(t, "refusal", r.Error(), "Ada", "void")
			mustEqual(t, "the timer", len(k.Do(fire)), 0)
		})
	}
	t.Run("text to the Lead interrupts it", func(t *testing.T) {
		k := approving(t, tools("deploy"))
		k.Act("lead", domaintest.Call("deploy", args{}))
		events := k.Do(domaintest.Say("", "leave it"))
		mustEqual(t, "voided", domaintest.Count(events, "ApprovalVoided"), 1)
		mustEqual(t, "exit", len(k.State.Verdict().NeedsOperator), 0)
	})
}

func TestApprovalBlocksNobodyElse(t *testing.T) {
	k := approving(t, tools("deploy"), func(o *rollcallv1.OpenConversation) {
		o.Members = []*rollcallv1.MemberSpec{{Name: "Ada", Brief: "go"}, {Name: "Bob", Brief: "go"}}
	})
	k.Act("m1", domaintest.Call("deploy", args{"n": 1}))
	k.Act("m2", domaintest.Call("deploy", args{"n": 2}))
	mustEqual(t, "pending", len(k.State.PendingApprovals()), 2)
	mustEqual(t, "status", k.State.Status(), "working")
	k.Acts("lead", "send_message", args{"to": "Ada", "text": "how far are you?"})
	mustEqual(t, "unread", len(k.Member("m1").Unread), 1)
	k.Do(decide("a2", true, ""))
	mustEqual(t, "Ada", k.Member("m1").Run.Phase, domain.Asking)
	mustEqual(t, "Bob", k.Member("m2").Run.Phase, domain.InTool)
	events := k.Do(decide("a1", false, "no"))
	mustEqual(t, "read at the next step", domaintest.Count(events, "MessagesConsumed"), 1)
}

func TestApprovalWhilePaused(t *testing.T) {
	k := approving(t, tools("team_create"))
	k.Act("lead", domaintest.Call("team_create", args{"name": "crew"}))
	k.Do(pause())
	events := k.Do(decide("a1", true, ""))
	mustEqual(t, "events", domaintest.Names(events), "ApprovalDecided TeamCreated ToolCallFinished RunSuspended")
	mustEqual(t, "goes on", domaintest.Count(k.Do(resume()), "ModelCallStarted"), 1)
}

// A lost node, or one that lets go, changes nothing about a pending approval.
func TestApprovalOutlivesNodes(t *testing.T) {
	k := approving(t, tools("deploy"))
	k.Act("lead", domaintest.Call("deploy", args{}))
	run := k.Member("lead").Run.ID
	k.Restart()
	k.Epoch++
	k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_SuspendRun{SuspendRun: &rollcallv1.SuspendRun{Member: "lead", Run: run, Reason: "drain"}}})
	k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_ResumeRun{ResumeRun: &rollcallv1.ResumeRun{Member: "lead", Run: run}}})
	k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_ResumeRun{ResumeRun: &rollcallv1.ResumeRun{Member: "lead", Run: run, Waited: true}}})
	mustEqual(t, "commits since", len(k.Commits), 2)
	mustEqual(t, "events", domaintest.Names(k.Do(decide("a1", true, ""))), "ApprovalDecided ToolCallStarted")
}

func TestEndedApprovalsAreForgotten(t *testing.T) {
	k := approving(t, tools("task_list"))
	for i := range 220 {
		k.Act("lead", domaintest.Call("task_list", args{}))
		k.Do(decide(k.State.PendingApprovals()[0].ID, true, ""))
		if i%40 == 39 {
			k.Do(domaintest.Say("", "go on"))
		}
	}
	mustEqual(t, "remembered", len(k.State.Approvals), 200)
	k.Refused("approval-decided", decide("a1", true, ""))
	k.Refused("approval-not-found", decide("a221", true, ""))
}

func TestApprovalPolicyIsChecked(t *testing.T) {
	for code, policies := range map[string][]*rollcallv1.ApprovalPolicy{
		"tool-unknown": {tools("fly"), tools("deploy", "")},
		"argument-invalid": {
			{TimeoutSeconds: 60},
			{Tools: []string{"deploy"}, ApproveOnTimeout: true},
			{Tools: []string{"deploy"}, TimeoutSeconds: 1 << 60},
		},
	} {
		for _, p := range policies {
			domaintest.New(t, rules()).Refused(code, opening(func(o *rollcallv1.OpenConversation) { o.Approvals = p }))
		}
	}
	domaintest.New(t, rules()).Refused("tool-unknown", opening(func(o *rollcallv1.OpenConversation) {
		o.Agents = []*rollcallv1.AgentDefinition{{Name: "a", Approve: []string{"fly"}}}
	}))
	domaintest.New(t, rules()).Refused("tool-unknown", opening(func(o *rollcallv1.OpenConversation) {
		o.Contract, o.Approvals = "none", tools("team_create")
	}))
}
