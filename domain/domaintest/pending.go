package domaintest

import (
	"fmt"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// asked keeps the books of approvals: each is asked for once in an open run, and
// ends once.
type asked struct {
	run   map[string]string // approval -> run
	ended map[string]bool
}

func (l *ledger) approval(e *rollcallv1.Event) error {
	end := func(id string) error {
		switch {
		case l.asked.run[id] == "":
			return fmt.Errorf("%s ends, and nobody asked for it", id)
		case l.asked.ended[id]:
			return fmt.Errorf("%s ends twice", id)
		}
		l.asked.ended[id] = true
		return nil
	}
	switch {
	case e.GetApprovalRequested() != nil:
		r := e.GetApprovalRequested()
		if l.asked.run[r.GetApproval()] != "" {
			return fmt.Errorf("%s is asked for twice", r.GetApproval())
		}
		l.asked.run[r.GetApproval()] = r.GetRun()
		return l.inOpenRun(r.GetMember(), r.GetRun())
	case e.GetApprovalDecided() != nil:
		return end(e.GetApprovalDecided().GetApproval())
	case e.GetApprovalVoided() != nil:
		return end(e.GetApprovalVoided().GetApproval())
	}
	return nil
}

// pending compares the approvals of the state with the books: each pending one
// holds an open run, and only such runs ask.
func (l *ledger) pending(s *domain.State) error {
	open := map[string]bool{}
	for id := range l.asked.run {
		open[id] = !l.asked.ended[id]
	}
	holds := map[string]string{}
	for _, a := range s.PendingApprovals() {
		if !open[a.ID] {
			return fmt.Errorf("%s is pending in the state only", a.ID)
		}
		if by := holds[a.Run]; by != "" {
			return fmt.Errorf("%s holds %s, and %s does", a.ID, a.Run, by)
		}
		delete(open, a.ID)
		holds[a.Run] = a.ID
	}
	for id, yes := range open {
		if yes {
			return fmt.Errorf("%s is pending in the log only", id)
		}
	}
	for _, m := range s.Members {
		if m.Run == nil {
			continue
		}
		if asks := m.Run.Phase == domain.Asking; asks != (holds[m.Run.ID] != "") {
			return fmt.Errorf("%s is in phase %s, and its approval is %q", m.Run.ID, m.Run.Phase, holds[m.Run.ID])
		}
		delete(holds, m.Run.ID)
	}
	for run, id := range holds {
		return fmt.Errorf("%s holds %s, which is not open", id, run)
	}
	return nil
}

// delegated compares callers and subagents: a run waits for subagents exactly
// when calls of it are theirs, each of those is at work for it, and nobody else is.
func delegated(s *domain.State) error {
	works := map[string]string{}
	for _, m := range s.Members {
		if m.IsSubagent() && m.Alive() {
			works[m.ID] = m.Parent
		}
	}
	for _, m := range s.Members {
		if m.Run == nil {
			continue
		}
		open := 0
		for _, c := range m.Run.Calls {
			if c.Subagent == "" {
				continue
			}
			open++
			if works[c.Subagent] != m.ID {
				return fmt.Errorf("call %s of %s waits for %s, which does not work for it", c.ID, m.Run.ID, c.Subagent)
			}
			delete(works, c.Subagent)
		}
		if waits := m.Run.Phase == domain.Delegating; waits != (open > 0) {
			return fmt.Errorf("%s is in phase %s, and %d of its calls are delegated", m.Run.ID, m.Run.Phase, open)
		}
		if m.Run.Phase == domain.Delegating && !m.Run.Suspended {
			return fmt.Errorf("%s waits for subagents, and is not suspended", m.Run.ID)
		}
	}
	for id, parent := range works {
		return fmt.Errorf("%s works for %s, and no call waits for it", id, parent)
	}
	return nil
}
