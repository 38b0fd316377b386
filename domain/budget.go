package domain

import (
	"cmp"
	"fmt"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func (u *Usage) add(v *rollcallv1.Usage) {
	u.Calls++
	u.InputTokens += v.GetInputTokens()
	u.OutputTokens += v.GetOutputTokens()
	u.CachedTokens += v.GetCachedTokens()
	u.CostMicros += v.GetCostMicros()
}

// tokens and cost are what counts against a budget.
func (u Usage) tokens() uint64 { return u.InputTokens + u.OutputTokens + u.Charged.Tokens }
func (u Usage) cost() uint64   { return u.CostMicros + u.Charged.CostMicros }

// within reports whether another step may start under the budget.
func (u Usage) within(b Budget) bool {
	return (b.Tokens == 0 || u.tokens() < b.Tokens) && (b.CostMicros == 0 || u.cost() < b.CostMicros)
}

// spent reports whether the conversation's budget is used up.
func (s *State) spent() bool { return !s.Used.within(s.Budget) }

// outOfBudget reports whether a budget holds the member.
func (m *Member) outOfBudget() bool {
	return m.Held && m.LastReason == rollcallv1.FinishReason_FINISH_REASON_OUT_OF_BUDGET
}

// overSteps says whether the run may not take another step, and how it then ends.
func (d *Decision) overSteps(m *Member) (ending, bool) {
	s := d.State()
	var own Budget
	if b := s.Bindings[m.Run.Agent]; b != nil {
		own = b.Budget
	}
	steps := d.b.limits.Steps
	if own.Steps > 0 || s.Budget.Steps > 0 {
		steps = int(minimum(own.Steps, s.Budget.Steps))
	}
	if m.Run.Answered && int(m.Run.Step) >= steps {
		return ending{Reason: rollcallv1.FinishReason_FINISH_REASON_OUT_OF_BUDGET, Code: "step-limit", Detail: fmt.Sprintf("a run has at most %d steps, and none is left", steps)}, true
	}
	return ending{}, false
}

// minimum of two limits, where zero sets none.
func minimum(a, b uint32) uint32 { return min(cmp.Or(a, b), cmp.Or(b, a)) }

// priced completes usage with its cost, where the model has a known price.
func (d *Decision) priced(m *Member, model string, u *rollcallv1.Usage) *rollcallv1.Usage {
	if u == nil {
		return nil
	}
	priced := &rollcallv1.Usage{
		InputTokens: u.GetInputTokens(), OutputTokens: u.GetOutputTokens(), CachedTokens: u.GetCachedTokens(),
		Estimated: u.GetEstimated(), CostMicros: u.GetCostMicros(),
	}
	if priced.CostMicros > 0 {
		return priced
	}
	var bound string
	if b := d.State().Bindings[m.Run.Agent]; b != nil {
		bound = b.Model
	}
	price, ok := d.b.r.Prices[bound]
	if !ok {
		price = d.b.r.Prices[model]
	}
	cached := min(priced.CachedTokens, priced.InputTokens)
	cost := (priced.InputTokens-cached)*price.Input + cached*cmp.Or(price.Cached, price.Input) + priced.OutputTokens*price.Output
	priced.CostMicros = (cost + 999_999) / 1_000_000
	return priced
}
