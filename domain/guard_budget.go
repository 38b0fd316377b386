package domain

import (
	"fmt"
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// A model call is charged when its outcome is known. So that calls in parallel
// do not overshoot a limit together, each sets aside what it may use before it
// starts, and the next one of anybody starts only where it fits beside them.

// suspendedBudget is the reason of a run that waits until others settle.
const suspendedBudget = "budget"

// Reservation is what the open model call of a run has set aside.
type Reservation struct {
	Step       uint32
	Attempt    uint32
	Tokens     uint64 `json:",omitempty"`
	CostMicros uint64 `json:",omitempty"`
	// Known is true once a reply said what was used.
	Known bool `json:",omitempty"`
}

// account is one budget that a call counts against.
type account struct {
	// of names it in a sentence; code is that of a run that it ends.
	of, code string
	limit    Budget
	// settled is what outcomes used, held what open calls have set aside.
	settled, held Budget
	// given is true where somebody asked for the limit, false for a default.
	given bool
}

// fit says whether a call may start.
type fit int

const (
	fits fit = iota
	// waits: it fits when others have settled.
	waits
	// never: it fits into no more than what is left.
	never
)

func fitOf(limit, settled, held, need uint64) fit {
	switch {
	case limit == 0, settled+held+need <= limit, settled == 0 && held == 0: // the first call is made in any case
		return fits
	case settled+need <= limit, settled == 0:
		return waits
	}
	return never
}

func (a account) fit(need Reservation) fit {
	return max(fitOf(a.limit.Tokens, a.settled.Tokens, a.held.Tokens, need.Tokens),
		fitOf(a.limit.CostMicros, a.settled.CostMicros, a.held.CostMicros, need.CostMicros))
}

// refuse says why no call is made, naming what is left.
func (a account) refuse(need Reservation) ending {
	e := ending{Reason: rollcallv1.FinishReason_FINISH_REASON_OUT_OF_BUDGET, Code: a.code}
	left := func(limit, settled uint64) uint64 { return limit - min(limit, settled) }
	switch {
	case fitOf(a.limit.Tokens, a.settled.Tokens, 0, need.Tokens) == never:
		e.Detail = fmt.Sprintf("%s has %d of %d tokens left, and the next call needs about %d", a.of, left(a.limit.Tokens, a.settled.Tokens), a.limit.Tokens, need.Tokens)
	default:
		e.Detail = fmt.Sprintf("%s has %s of %s left, and the next call needs about %s", a.of,
			money(left(a.limit.CostMicros, a.settled.CostMicros)), money(a.limit.CostMicros), money(need.CostMicros))
	}
	return e
}

func money(micros uint64) string { return fmt.Sprintf("%.6f", float64(micros)/1e6) }

// accounts are the budgets that the member's next call counts against.
func (d *Decision) accounts(m *Member) []account {
	s, l := d.State(), d.b.limits
	var run Budget
	if b := s.Bindings[m.Run.Agent]; b != nil {
		run = b.Budget
	}
	all := []account{
		{of: "the conversation's budget", code: "budget-used-up", limit: s.Budget, settled: s.Used.budget(), held: s.held(nil), given: true},
		{of: "the agent type's budget of a run", code: "run-budget-used-up", limit: run, settled: m.Run.Used.budget(), given: true},
		{
			of: "the budget of " + m.Name, code: "member-budget-used-up", limit: Budget{Tokens: budgetLimit(l.MemberTokens), CostMicros: budgetLimit(l.MemberCost)},
			settled: m.Used.budget(), given: d.b.r.Limits.MemberTokens > 0 || d.b.r.Limits.MemberCost > 0,
		},
	}
	if m.Team != "" && !m.IsLead() {
		mates := func(other *Member) bool { return other.Team == m.Team && !other.IsLead() }
		var used Usage
		for _, other := range s.Members {
			if mates(other) {
				used.CostMicros += other.Used.cost()
				used.InputTokens += other.Used.tokens()
			}
		}
		all = append(all, account{
			of: "the budget of the team's members", code: "team-budget-used-up", limit: Budget{Tokens: budgetLimit(l.TeamTokens), CostMicros: budgetLimit(l.TeamCost)},
			settled: used.budget(), held: s.held(mates), given: d.b.r.Limits.TeamTokens > 0 || d.b.r.Limits.TeamCost > 0,
		})
	}
	return slices.DeleteFunc(all, func(a account) bool { return a.limit.Tokens == 0 && a.limit.CostMicros == 0 })
}

// budgetLimit is a limit of the settings as a budget's field, where 0 is none.
func budgetLimit(n int64) uint64 { return uint64(max(n, 0)) }

func (u Usage) budget() Budget { return Budget{Tokens: u.tokens(), CostMicros: u.cost()} }

// held is what open calls have set aside, of all or of those that are counted.
func (s *State) held(counted func(*Member) bool) (b Budget) {
	for _, m := range s.Members {
		if m.Run != nil && m.Run.Reserved != nil && (counted == nil || counted(m)) {
			b.Tokens += m.Run.Reserved.Tokens
			b.CostMicros += m.Run.Reserved.CostMicros
		}
	}
	return b
}

// tightest is the account that keeps the call back most.
func tightest(accounts []account, need Reservation) (worst account, how fit) {
	for _, a := range accounts {
		if f := a.fit(need); f > how {
			worst, how = a, f
		}
	}
	return worst, how
}

// admit lets the run's next call start, and says what to set aside for it; nil
// where no limit asks for that. A call that does not fit now parks the run until
// others settle; one that cannot fit ends it.
func (d *Decision) admit(m *Member) (need *Reservation, ok bool) {
	if end, over := d.overRuns(m); over {
		d.finish(m, end)
		return nil, false
	}
	accounts := d.accounts(m)
	if len(accounts) == 0 {
		return nil, true
	}
	estimate := d.estimate(m)
	switch worst, how := tightest(accounts, estimate); how {
	case never:
		d.finish(m, worst.refuse(estimate))
		return nil, false
	case waits:
		d.emit(&rollcallv1.RunSuspended{Run: m.Run.ID, Member: m.ID, Reason: suspendedBudget})
		return nil, false
	}
	if !slices.ContainsFunc(accounts, func(a account) bool { return a.given }) {
		return nil, true
	}
	return &estimate, true
}

// call starts a model call that was admitted.
func (d *Decision) call(m *Member, step, attempt uint32, need *Reservation) {
	if need != nil {
		d.emit(&rollcallv1.BudgetReserved{
			Run: m.Run.ID, Member: m.ID, Step: step, Attempt: attempt, Tokens: need.Tokens, CostMicros: need.CostMicros,
		})
	}
	d.emit(&rollcallv1.ModelCallStarted{Run: m.Run.ID, Member: m.ID, Step: step, Attempt: attempt})
}

// unpark takes up the runs that waited for others to settle and need not any more.
func (d *Decision) unpark() (moved bool) {
	if d.State().Paused {
		return false
	}
	for _, m := range d.State().Members {
		if m.Run == nil || m.Run.Phase != Reserving {
			continue
		}
		if _, how := tightest(d.accounts(m), d.estimate(m)); how == waits {
			continue
		}
		d.emit(&rollcallv1.RunResumed{Run: m.Run.ID, Member: m.ID, Node: d.b.commit.GetNode(), Attempt: m.Run.Resumes})
		d.nextStep(m)
		moved = true
	}
	return moved
}

// settleReply replaces a reservation by what the reply says was used; where it
// does not say, by itself.
func (d *Decision) settleReply(m *Member, u *rollcallv1.Usage) {
	if r := m.Run.Reserved; r != nil && u == nil {
		d.release(m, r.Tokens, r.CostMicros)
		return
	}
	d.release(m, u.GetInputTokens()+u.GetOutputTokens(), u.GetCostMicros())
}

// codeCut is the failure of a call whose answer broke off.
const codeCut = "model-cut"

// settleFailure settles a call that failed: nothing is known to be used, unless
// its answer broke off. That is paid for, and nobody said how much.
func (d *Decision) settleFailure(m *Member, code string) {
	if r := m.Run.Reserved; r != nil && code == codeCut {
		d.release(m, r.Tokens, r.CostMicros)
		return
	}
	d.release(m, 0, 0)
}

// release frees a reservation, for what is known to be used: nothing of a call
// whose node was lost, or that the end of its run broke off.
func (d *Decision) release(m *Member, tokens, micros uint64) {
	if r := m.Run.Reserved; r != nil {
		d.emit(&rollcallv1.BudgetSettled{Run: m.Run.ID, Member: m.ID, Step: r.Step, Attempt: r.Attempt, Tokens: tokens, CostMicros: micros})
	}
}
