package domain_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// reserved is what open calls have set aside in all.
func reserved(s *domain.State) (tokens uint64) {
	for _, m := range s.Members {
		if m.Run != nil && m.Run.Reserved != nil {
			tokens += m.Run.Reserved.Tokens
		}
	}
	return tokens
}

func used(s *domain.State) uint64 {
	return s.Used.InputTokens + s.Used.OutputTokens + s.Used.Charged.Tokens
}

// replying is an answer of a member that used so many tokens.
func replying(k *domaintest.Kit, member, text string, tokens uint64, calls ...*rollcallv1.ToolCall) *rollcallv1.Command {
	cmd := k.Reply(member, text, calls...)
	cmd.GetRecordReply().Usage = &rollcallv1.Usage{InputTokens: tokens - tokens/10, OutputTokens: tokens / 10}
	return cmd
}

// crowd is a conversation with a budget whose Lead and n members all have a word
// of the operator to answer, after a first reply that used 100 tokens.
func crowd(t domaintest.T, r *domain.Rules, tokens uint64, n int) *domaintest.Kit {
	t.Helper()
	k := domaintest.New(t, r)
	var specs []*rollcallv1.MemberSpec
	for i := range n {
		specs = append(specs, &rollcallv1.MemberSpec{Name: fmt.Sprintf("M%d", i+1)})
	}
	k.Do(opening(func(o *rollcallv1.OpenConversation) {
		o.Budget, o.Members, o.Objective = &rollcallv1.Budget{Tokens: tokens}, specs, domaintest.Text("begin")
	}))
	k.Do(replying(k, "lead", "under way", 100))
	var words []*rollcallv1.Command
	for i := range n {
		words = append(words, domaintest.Say(fmt.Sprintf("m%d", i+1), "work"))
	}
	k.Do(words...)
	return k
}

// Members in parallel set aside what they may use: the one that does not fit
// beside the others waits for them, and makes its call when they have settled.
func TestReservationsParkWhoDoesNotFit(t *testing.T) {
	k := crowd(t, rules(), 5000, 3)
	phase := func(id string) domain.Phase { return k.Member(id).Run.Phase }
	mustEqual(t, "m1", phase("m1"), domain.Calling)
	need := k.Member("m1").Run.Reserved.Tokens
	room := (5000 - 100) / need
	if need < 1000 || room < 1 || room > 2 {
		t.Fatalf("a call sets %d tokens aside: the test does not fit", need)
	}
	mustEqual(t, "m3", phase("m3"), domain.Reserving)
	mustEqual(t, "due", len(domain.Due(k.State)), int(room))
	// A node that takes the conversation over has nothing to do with who is parked.
	k.Restart()
	k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_ResumeRun{ResumeRun: &rollcallv1.ResumeRun{Member: "m3", Run: k.Member("m3").Run.ID}}})
	mustEqual(t, "m3 after a lost node", phase("m3"), domain.Reserving)
	for range 3 { // each that settles for little makes room
		for _, w := range domain.Due(k.State) {
			k.Do(replying(k, w.Member, "done", 110))
		}
	}
	for _, id := range []string{"m1", "m2", "m3"} {
		mustEqual(t, id, k.Member(id).LastReason, rollcallv1.FinishReason_FINISH_REASON_IDLE)
	}
	mustEqual(t, "used", used(k.State), 430)
	mustEqual(t, "set aside", reserved(k.State), 0)
	if k.State.Guards["budget_waits"] == 0 {
		t.Fatalf("no hit is counted: %v", k.State.Guards)
	}
}

// What can fit into no more than is left ends its run, and says how much that is.
func TestReservationsEndWhoCannotFit(t *testing.T) {
	k := crowd(t, rules(), 2000, 1)
	m := k.Member("m1")
	mustEqual(t, "reason", m.LastReason, rollcallv1.FinishReason_FINISH_REASON_OUT_OF_BUDGET)
	mustEqual(t, "code", m.LastCode, "budget-used-up")
	mustContain(t, "detail", m.LastDetail, "the conversation's budget has 1900 of 2000 tokens left", "needs about")
	mustEqual(t, "calls", domaintest.Count(k.All(), "ModelCallStarted"), 1)
	mustEqual(t, "exit", k.State.Verdict().Exit, 8)
	mustContain(t, "why", k.State.Verdict().Why, "1900 of 2000 tokens left")
	k.Do(raise(&rollcallv1.Budget{Tokens: 100_000}))
	mustEqual(t, "m1 after a raise", k.Member("m1").Run.Phase, domain.Calling)
}

// However tight, the first call is made.
func TestReservationsLetTheFirstCallBeMade(t *testing.T) {
	k := budgeted(t, &rollcallv1.Budget{Tokens: 10}, nil)
	mustEqual(t, "Lead", k.Member("lead").Run.Phase, domain.Calling)
	k.Ends("lead", "done")
	// Where nothing is left, mail does not even start a run, and nothing is tried again.
	mustEqual(t, "events", domaintest.Names(k.Do(domaintest.Say("", "go on"))), "MessageDelivered")
	k.Refused("budget-used-up", &rollcallv1.Command{Kind: &rollcallv1.Command_RetryMember{RetryMember: &rollcallv1.RetryMember{}}})
	mustEqual(t, "exit", k.State.Verdict().Exit, 8)
}

// Each outcome settles what its call set aside.
func TestReservationsSettle(t *testing.T) {
	limit := &rollcallv1.Budget{Tokens: 100_000}
	settled := func(t *testing.T, k *domaintest.Kit, events []*rollcallv1.Event) *rollcallv1.BudgetSettled {
		t.Helper()
		for _, e := range events {
			if s := e.GetBudgetSettled(); s != nil {
				return s
			}
		}
		t.Fatalf("nothing is settled: %s", domaintest.Names(events))
		return nil
	}
	t.Run("a reply, with what was used", func(t *testing.T) {
		k := budgeted(t, limit, nil)
		mustEqual(t, "tokens", settled(t, k, k.Ends("lead", "done")).GetTokens(), 110)
		mustEqual(t, "used", used(k.State), 110)
		mustEqual(t, "set aside", reserved(k.State), 0)
	})
	t.Run("a reply that does not say", func(t *testing.T) {
		k := budgeted(t, limit, nil)
		aside := reserved(k.State)
		cmd := k.Reply("lead", "done")
		cmd.GetRecordReply().Usage = nil
		k.Do(cmd)
		mustEqual(t, "used", used(k.State), aside)
	})
	t.Run("a failure, with nothing", func(t *testing.T) {
		k := budgeted(t, limit, nil)
		mustEqual(t, "tokens", settled(t, k, k.Do(k.ModelFails("lead", "model-down", true))).GetTokens(), 0)
		mustEqual(t, "attempt", k.Member("lead").Run.Reserved.Attempt, 2)
	})
	t.Run("a cut answer, with what was set aside", func(t *testing.T) {
		k := budgeted(t, limit, nil)
		aside := reserved(k.State)
		k.Do(k.ModelFails("lead", "model-cut", true))
		mustEqual(t, "used", used(k.State), aside)
		mustEqual(t, "cost", k.State.Used.Charged.CostMicros > 0, true)
	})
	t.Run("a lost node", func(t *testing.T) {
		k := budgeted(t, limit, nil)
		k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_ResumeRun{ResumeRun: &rollcallv1.ResumeRun{Member: "lead", Run: k.Member("lead").Run.ID}}})
		mustEqual(t, "attempt", k.Member("lead").Run.Reserved.Attempt, 2)
		mustEqual(t, "used", used(k.State), 0)
	})
	t.Run("an interruption", func(t *testing.T) {
		k := budgeted(t, limit, nil)
		k.Do(interrupt("lead"))
		mustEqual(t, "reserved and settled", domaintest.Count(k.All(), "BudgetReserved"), domaintest.Count(k.All(), "BudgetSettled"))
		mustEqual(t, "set aside", reserved(k.State), 0)
	})
}

// A pause does not start what is parked, its end does.
func TestReservationsAndPause(t *testing.T) {
	k := crowd(t, rules(), 5000, 3)
	k.Do(pause())
	for _, w := range domain.Due(k.State) {
		k.Do(replying(k, w.Member, "done", 110))
	}
	mustEqual(t, "m3", k.Member("m3").Run.Phase, domain.Reserving)
	mustEqual(t, "due", len(domain.Due(k.State)), 0)
	k.Do(resume())
	mustEqual(t, "m3", k.Member("m3").Run.Phase, domain.Calling)
	k.Do(interrupt("m3"))
	mustEqual(t, "set aside", reserved(k.State), 0)
}

// Limits of the settings: by member and by the team's members together. The
// Lead's calls count against neither another's nor the team's.
func TestBudgetsOfMembersAndTeams(t *testing.T) {
	for code, l := range map[string]domain.Limits{
		"member-budget-used-up": {MemberTokens: 4000}, "team-budget-used-up": {TeamTokens: 4000},
	} {
		t.Run(code, func(t *testing.T) {
			k := team(t, "A", "B")
			k.Rules.Limits = l
			k.Do(domaintest.Say("m1", "work"), domaintest.Say("m2", "work"))
			k.Do(replying(k, "m1", "", 3900, domaintest.Call("task_list", args{})))
			mustEqual(t, "code", k.Member("m1").LastCode, code)
			mustContain(t, "detail", k.Member("m1").LastDetail, "4000 tokens left")
			if code == "team-budget-used-up" { // B waited for A to settle, and now there is no room
				mustEqual(t, "B", k.Member("m2").LastCode, code)
			} else {
				k.Do(replying(k, "m2", "", 50, domaintest.Call("task_list", args{})))
				mustEqual(t, "B goes on", k.Member("m2").Run.Phase, domain.Calling)
			}
			k.Do(domaintest.Say("", "and you?"))
			mustEqual(t, "the Lead", k.Member("lead").Run.Phase, domain.Calling)
			mustEqual(t, "exit", k.State.Verdict().Exit, 8)
		})
	}
	t.Run("off", func(t *testing.T) {
		k := team(t, "A")
		k.Rules.Limits = domain.Limits{MemberTokens: domain.Off, TeamTokens: domain.Off, IdenticalCalls: domain.Off}
		k.Do(domaintest.Say("m1", "work"))
		k.Do(replying(k, "m1", "", 2_000_000_000, domaintest.Call("task_list", args{})))
		mustEqual(t, "A", k.Member("m1").Run.Phase, domain.Calling)
	})
	t.Run("of themselves", func(t *testing.T) {
		k := team(t, "A")
		k.Do(domaintest.Say("m1", "work"))
		k.Do(replying(k, "m1", "", 20_000_001, domaintest.Call("task_list", args{})))
		mustEqual(t, "code", k.Member("m1").LastCode, "member-budget-used-up")
	})
}

// Whatever replies, failures and lost nodes come, what is used never passes the
// limit by more than estimates were wrong: here never, as no reply takes more
// than was set aside for it.
func TestBudgetIsNeverOvershot(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.Uint64Range(4000, 60_000).Draw(rt, "limit")
		k := crowd(rt, rules(), limit, 4)
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			due := domain.Due(k.State)
			if len(due) == 0 {
				break
			}
			w := rapid.SampledFrom(due).Draw(rt, "who")
			aside := k.Member(w.Member).Run.Reserved.Tokens
			switch rapid.IntRange(0, 5).Draw(rt, "outcome") {
			case 0:
				k.Do(k.ModelFails(w.Member, "model-cut", true))
			case 1:
				k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_ResumeRun{ResumeRun: &rollcallv1.ResumeRun{Member: w.Member, Run: w.Run}}})
			case 2:
				k.Do(replying(k, w.Member, "done", rapid.Uint64Range(1, aside).Draw(rt, "tokens")))
				k.Do(domaintest.Say(w.Member, "again"))
			default:
				k.Do(replying(k, w.Member, "", rapid.Uint64Range(1, aside).Draw(rt, "tokens"), domaintest.Call("task_list", args{})))
			}
			if all := used(k.State) + reserved(k.State); all > limit {
				rt.Fatalf("%d tokens are used and %d set aside of %d", used(k.State), reserved(k.State), limit)
			}
		}
	})
}

// Refusals at a cap name what is left.
func TestCapsNameWhatIsLeft(t *testing.T) {
	r := rules()
	r.Limits.Members, r.Limits.Tasks = 3, 2
	k := domaintest.Team(t, domaintest.Open(t, r, "mailbox"), "A", "B")
	k.Do(domaintest.Say("", "more"))
	text := k.Fails("lead", "team_member_add", args{"name": "C", "initial_prompt": "go"})
	mustContain(t, "members", text, "at most 3", "none is left", "[limit-reached]")
	create(k, "one", "A")
	create(k, "two", "A")
	mustContain(t, "tasks", k.Fails("lead", "task_create", args{"title": "three", "description": "d"}), "at most 2", "none is left")
	mustEqual(t, "hits", k.State.Guards["caps"], 2)
	k.Rules.Limits.Members = domain.Off
	for i := range 70 {
		k.Acts("lead", "team_member_add", args{"name": fmt.Sprintf("N%d", i), "initial_prompt": "go"})
		if strings.Contains(k.Member("lead").LastDetail, "steps") {
			t.Fatal("steps")
		}
		if i%40 == 39 {
			k.Do(domaintest.Say("", "go on"))
		}
	}
}
