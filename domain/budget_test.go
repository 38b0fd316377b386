package domain_test

import (
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// budgeted is a conversation with a budget whose Lead works. Each reply of the
// kit uses 110 tokens.
func budgeted(t *testing.T, b *rollcallv1.Budget, agent *rollcallv1.Budget) *domaintest.Kit {
	t.Helper()
	r := rules()
	r.Prices = map[string]domain.Price{"test-model": {Input: 2_000_000, Output: 5_000_000}} // 2 and 5 a token, in millionths
	k := domaintest.New(t, r)
	k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_OpenConversation{OpenConversation: &rollcallv1.OpenConversation{
		Contract: "mailbox", Budget: b, Objective: domaintest.Text("do it"),
		Agents: []*rollcallv1.AgentDefinition{{Name: "general", Budget: agent}},
	}}})
	return k
}

func raise(b *rollcallv1.Budget) *rollcallv1.Command {
	return &rollcallv1.Command{Kind: &rollcallv1.Command_RaiseBudget{RaiseBudget: &rollcallv1.RaiseBudget{Budget: b}}}
}

func TestBudgetOfTokens(t *testing.T) {
	k := budgeted(t, &rollcallv1.Budget{Tokens: 400}, nil)
	k.Acts("lead", "task_list", args{})
	events := k.Events("lead", domaintest.Call("task_list", args{}))
	mustEqual(t, "events", domaintest.Names(events), "ModelReplied BudgetSettled ToolCallFinished RunFinished")
	mustEqual(t, "reason", events[3].GetRunFinished().GetReason(), rollcallv1.FinishReason_FINISH_REASON_OUT_OF_BUDGET)
	mustEqual(t, "tokens", k.State.Used.InputTokens+k.State.Used.OutputTokens, 220)
	v := k.State.Verdict()
	mustEqual(t, "status", v.Status, "budget")
	mustEqual(t, "exit", v.Exit, 8)
	// New mail waits too: no call is made for it without a budget.
	mustEqual(t, "events", domaintest.Names(k.Do(domaintest.Say("", "go on"))), "MessageDelivered RunStarted MessagesReturned RunFinished")
	mustEqual(t, "due", len(domain.Due(k.State)), 0)
	mustEqual(t, "exit", k.State.Verdict().Exit, 8)
	k.Refused("budget-too-low", raise(&rollcallv1.Budget{Tokens: 220}))
	k.Refused("budget-too-low", raise(nil))
	k.Refused("budget-too-low", raise(&rollcallv1.Budget{Tokens: 1}))
	mustEqual(t, "events", domaintest.Names(k.Do(raise(&rollcallv1.Budget{Tokens: 10_000}))), "BudgetRaised RunStarted BudgetReserved ModelCallStarted")
}

// A limit that could never be reached is no limit, at a raise as at an opening;
// none at all can be wished for.
func TestBudgetRaisedInMoneyNeedsAPrice(t *testing.T) {
	r := rules()
	r.Prices = map[string]domain.Price{"other": {Input: 1}}
	k := domaintest.New(t, r)
	k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_OpenConversation{OpenConversation: &rollcallv1.OpenConversation{
		Contract: "mailbox", Budget: &rollcallv1.Budget{Tokens: 400}, Objective: domaintest.Text("do it"),
	}}})
	k.Acts("lead", "task_list", args{})
	k.Events("lead", domaintest.Call("task_list", args{}))
	k.Refused("budget-without-price", raise(&rollcallv1.Budget{CostMicros: 50_000}))
	mustEqual(t, "events", domaintest.Names(k.Do(raise(&rollcallv1.Budget{}))), "BudgetRaised MessageDelivered RunStarted ModelCallStarted")
	mustEqual(t, "budget", k.State.Budget, domain.Budget{})
}

func TestBudgetRaisedWakesWhoWasStopped(t *testing.T) {
	k := budgeted(t, &rollcallv1.Budget{CostMicros: 1000}, nil)
	k.Acts("lead", "task_list", args{})
	mustEqual(t, "cost", k.State.Used.CostMicros, 250) // 100 at 2, 10 at 5
	k.Events("lead", domaintest.Call("task_list", args{}))
	mustEqual(t, "Lead", k.Member("lead").Status, isIdle)
	mustEqual(t, "unread", len(k.Member("lead").Unread), 0)
	events := k.Do(raise(&rollcallv1.Budget{CostMicros: 50_000}))
	mustEqual(t, "events", domaintest.Names(events), "BudgetRaised MessageDelivered RunStarted BudgetReserved ModelCallStarted")
	all := texts(k, "lead")
	mustContain(t, "last mail", all[len(all)-1], "budget was raised")
}

func TestBudgetWithinACompletedRunIsDone(t *testing.T) {
	k := budgeted(t, &rollcallv1.Budget{Tokens: 50}, nil)
	k.Ends("lead", "done at once")
	mustEqual(t, "exit", k.State.Verdict().Exit, 0)
}

func TestStepLimit(t *testing.T) {
	for name, b := range map[string][2]*rollcallv1.Budget{
		"of the conversation": {{Steps: 3}, nil},
		"of the agent type":   {nil, {Steps: 3}},
		"the lower of both":   {{Steps: 9}, {Steps: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			k := budgeted(t, b[0], b[1])
			k.Acts("lead", "task_list", args{})
			k.Acts("lead", "task_list", args{})
			events := k.Events("lead", domaintest.Call("task_list", args{}))
			mustEqual(t, "code", events[2].GetRunFinished().GetCode(), "step-limit")
			mustEqual(t, "exit", k.State.Verdict().Exit, 8)
			k.Do(domaintest.Say("", "go on"))
			mustEqual(t, "step", k.Member("lead").Run.Step, 1)
		})
	}
}

func TestBudgetOfARun(t *testing.T) {
	k := budgeted(t, nil, &rollcallv1.Budget{Tokens: 100})
	events := k.Events("lead", domaintest.Call("task_list", args{}))
	mustEqual(t, "code", events[len(events)-1].GetRunFinished().GetCode(), "run-budget-used-up")
	k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_RetryMember{RetryMember: &rollcallv1.RetryMember{Member: "lead"}}})
	mustEqual(t, "Lead", k.Member("lead").Status, isWorking)
}

func TestTeamReport(t *testing.T) {
	t.Run("once, when all rest with open tasks", func(t *testing.T) {
		k := leading(t, "A", "B")
		create(k, "one", "A")
		create(k, "two", "B")
		k.Acts("m1", "task_update", args{"task_id": "t1", "status": "in_progress"})
		k.Ends("lead", "under way")
		k.Ends("m1", "I stopped half way")
		mustEqual(t, "not while B works", k.Member("lead").Status, isIdle)
		events := k.Ends("m2", "me too")
		mail := domaintest.Delivered(events, "lead")
		mustEqual(t, "mail", len(mail), 1)
		mustEqual(t, "kind", mail[0].GetKind(), rollcallv1.MailKind_MAIL_KIND_TEAM_REPORT)
		mustContain(t, "text", mail[0].GetBody().GetText(), `t1 "one" in_progress, owner A`, `t2 "two" claimable, owner B`)
		events = k.Ends("lead", "so it stays")
		mustEqual(t, "not again", len(domaintest.Delivered(events, "")), 0)
		v := k.State.Verdict()
		mustEqual(t, "exit", v.Exit, 7)
		mustContain(t, "why", v.Why, "t1", "t2")
	})
	t.Run("again after progress, a bounded number of times", func(t *testing.T) {
		k := leading(t, "A")
		create(k, "one", "A")
		k.Ends("m1", "no")
		reports := 0
		for range 100 {
			if k.Member("lead").Run == nil {
				break
			}
			k.Acts("lead", "task_update", args{"task_id": "t1", "title": "one more time"})
			reports += len(domaintest.Delivered(k.Ends("lead", "again"), "lead"))
		}
		mustEqual(t, "reports", reports, 20)
		k.Do(domaintest.Say("", "I am back"))
		mustEqual(t, "after the operator wrote", len(domaintest.Delivered(k.Ends("lead", "hello"), "lead")), 1)
	})
	t.Run("not while the operator must act", func(t *testing.T) {
		k := leading(t, "A")
		create(k, "one", "user")
		mustEqual(t, "mail", len(domaintest.Delivered(k.Ends("lead", "please decide"), "")), 0)
	})
	t.Run("of a failure", func(t *testing.T) {
		k := team(t, "A")
		k.Do(domaintest.Say("m1", "work"))
		events := k.Do(k.ModelFails("m1", "model-key-refused", false))
		mail := domaintest.Delivered(events, "lead")
		mustEqual(t, "mail", len(mail), 1)
		mustContain(t, "text", mail[0].GetBody().GetText(), "A failed (model-key-refused")
		mustEqual(t, "told once", len(domaintest.Delivered(k.Ends("lead", "alas"), "")), 0)
		mustEqual(t, "exit", k.State.Verdict().Exit, 7) // the operator's word to A is unread
		k.Do(domaintest.Say("m1", "again"))
		k.Ends("m1", "done")
		mustEqual(t, "exit", k.State.Verdict().Exit, 0)
	})
	t.Run("not to a Lead that failed", func(t *testing.T) {
		k := leading(t, "A")
		create(k, "one", "A")
		k.Ends("m1", "no")
		k.Do(k.ModelFails("lead", "model-key-refused", false))
		mustEqual(t, "due", len(domain.Due(k.State)), 0)
		mustEqual(t, "exit", k.State.Verdict().Exit, 7)
	})
}

func TestVerdictIsDone(t *testing.T) {
	k := open(t)
	mustEqual(t, "exit of an empty conversation", k.State.Verdict().Exit, 0)
	mustEqual(t, "status", k.State.Status(), "idle")
	k.Do(domaintest.Say("", "do it"))
	mustEqual(t, "status", k.State.Status(), "working")
	create(k, "one", "Lead")
	k.Acts("lead", "task_complete", args{"task_id": "t1", "result": "ok"})
	k.Ends("lead", "done")
	v := k.State.Verdict()
	if v.Status != "done" || v.Exit != 0 || v.Why != "" || len(v.NeedsOperator) != 0 {
		t.Fatalf("verdict %+v", v)
	}
}

func TestUndeliveredTasksAreNamed(t *testing.T) {
	k := leading(t, "A")
	create(k, "one", "A")
	k.Acts("m1", "task_update", args{"task_id": "t1", "status": "in_progress"})
	events := k.Ends("m1", "later")
	mustEqual(t, "undelivered", strings.Join(events[1].GetRunFinished().GetUndelivered(), ","), "t1")
	mustEqual(t, "t1", k.Task("t1").Status, isInProgress)
}

func TestTimers(t *testing.T) {
	k := open(t)
	fire := func() *rollcallv1.Command {
		return &rollcallv1.Command{Kind: &rollcallv1.Command_FireTimer{FireTimer: &rollcallv1.FireTimer{Timer: "timer1"}}}
	}
	mustEqual(t, "a timer that is not armed", len(k.Do(fire())), 0)
	// No tool of this release arms one; the fold knows them.
	k.State.Evolve(&rollcallv1.Commit{Version: 2, Events: []*rollcallv1.Event{domain.NewEvent(&rollcallv1.TimerArmed{Timer: "timer1", Purpose: "look again", Subject: "m7"})}})
	mustEqual(t, "armed", len(domain.ArmedTimers(k.State)), 1)
	mustEqual(t, "waiting for a timer is quiescent", len(domain.Due(k.State)), 0)
	b, err := k.State.Begin(k.Rules, domain.Stamp{Time: domaintest.Start, Epoch: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Decide(fire()); err != nil {
		t.Fatal(err)
	}
	mustEqual(t, "events", domaintest.Names(b.Commit().GetEvents()), "TimerFired MessageDelivered AgentBound RunStarted ModelCallStarted")
	mustEqual(t, "armed", len(domain.ArmedTimers(k.State)), 0)
}

// To lift a limit lets those go on whom it stopped, like to raise it.
func TestBudgetLifted(t *testing.T) {
	for what, to := range map[string]*rollcallv1.Budget{"raised": {Tokens: 10_000}, "lifted": {}} {
		k := budgeted(t, &rollcallv1.Budget{Tokens: 400}, nil)
		k.Acts("lead", "task_list", args{})
		k.Do(domaintest.SayMode("", "and this", rollcallv1.MailMode_MAIL_MODE_STEER))
		k.Events("lead", domaintest.Call("task_list", args{}))
		mustEqual(t, what+": stopped", k.Member("lead").Held, true)
		k.Do(raise(to))
		mustEqual(t, what, k.Member("lead").Status, isWorking)
	}
}
