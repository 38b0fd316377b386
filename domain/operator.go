package domain

import (
	"cmp"
	"fmt"
	"slices"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// interruptMember ends a member's open run by hand. Its mail is held: nothing
// starts until the operator, or other new mail, says so.
func (d *Decision) interruptMember(c *rollcallv1.InterruptMember) *Refusal {
	m, refusal := d.member(c.GetMember())
	if refusal != nil {
		return refusal
	}
	if m.Run == nil {
		return Refuse("not-working", fmt.Sprintf("%s is not interrupted", m.Name), "it has no open run", "rollcall show tells who works on what")
	}
	why := "interrupted by the " + d.actor
	d.control(m, controlCancel, why)
	d.finish(m, ending{Reason: rollcallv1.FinishReason_FINISH_REASON_INTERRUPTED, Code: codeByHand, Detail: why})
	return nil
}

// CodeNotHeld refuses to retry where nothing is held back.
const CodeNotHeld = "not-held"

// retryMember wakes members whose last run failed, ran out of budget or was
// interrupted: all of them when none is named.
func (d *Decision) retryMember(c *rollcallv1.RetryMember) *Refusal {
	if d.State().spent() {
		return Refuse("budget-used-up", "nothing is tried again", "the conversation's budget is used up", "raise it first")
	}
	if c.GetMember() == "" {
		held := keep(slices.Clone(d.State().Members), func(m *Member) bool { return m.Held })
		if len(held) == 0 {
			return Refuse(CodeNotHeld, "nothing is tried again", "no member is held back", "write to the Lead instead: rollcall send")
		}
		for _, m := range held {
			d.retry(m)
		}
		return nil
	}
	m, refusal := d.member(c.GetMember())
	if refusal != nil {
		return refusal
	}
	if !m.Held {
		return Refuse(CodeNotHeld, fmt.Sprintf("nothing of %s is tried again", m.Name), "nothing holds it", "write to it instead: rollcall send")
	}
	d.retry(m)
	return nil
}

func (d *Decision) retry(m *Member) {
	d.note(m, "retry", retryNote(m))
}

// raiseBudget sets higher limits: the new totals, not additions.
func (d *Decision) raiseBudget(c *rollcallv1.RaiseBudget) *Refusal {
	s, b := d.State(), budgetOf(c.GetBudget())
	what := "the budget is not raised"
	switch {
	case c.GetBudget() == nil:
		return Refuse("budget-too-low", what, "no limit is given", "name the new total of tokens, money or steps; all zero is no limit")
	case b.CostMicros > 0 && s.Used.cost() == 0 && len(d.unpriced()) > 0:
		return Refuse("budget-without-price", what, "a limit in money cannot be kept: no price is known for "+quoteAll(d.unpriced()),
			"limit tokens, or put prices into the node's rollcall.yaml")
	case b.Tokens > 0 && b.Tokens <= s.Used.tokens():
		return Refuse("budget-too-low", what, fmt.Sprintf("%d tokens are used already", s.Used.tokens()), "name a total above that")
	case b.CostMicros > 0 && b.CostMicros <= s.Used.cost():
		return Refuse("budget-too-low", what, fmt.Sprintf("%.6f is spent already", float64(s.Used.cost())/1e6), "name a total above that")
	}
	var stopped []*Member
	for _, m := range s.Members {
		if m.outOfBudget() && !s.hasWaking(m) {
			stopped = append(stopped, m)
		}
	}
	d.emit(&rollcallv1.BudgetRaised{Budget: c.GetBudget()})
	for _, m := range stopped {
		d.note(m, "budget.raised", budgetNote)
	}
	return nil
}

// unpriced are the models of the conversation whose price the node does not
// know.
func (d *Decision) unpriced() []string {
	var names []string
	for _, a := range d.State().Agents {
		name := cmp.Or(a.GetModel(), d.b.r.DefaultModel)
		if _, ok := d.b.r.Prices[name]; !ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// fireTimer wakes whom a timer concerns, if it is still armed.
func (d *Decision) fireTimer(c *rollcallv1.FireTimer) *Refusal {
	for _, t := range d.State().Timers {
		if t.ID != c.GetTimer() || !t.Due.Equal(c.GetDue().AsTime()) {
			continue // another one, or armed anew since
		}
		if t.Purpose == purposeApproval {
			d.approvalTimer(t)
			return nil
		}
		to := d.State().Member(t.Subject)
		if to == nil || !to.Alive() {
			to = d.State().Lead()
		}
		purpose := t.Purpose
		d.emit(&rollcallv1.TimerFired{Timer: t.ID})
		d.note(to, "timer", "The time has come: "+purpose)
		return nil
	}
	return nil
}
