package domaintest

import (
	"fmt"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Check holds the invariants of a log and the state it gave.
func Check(s *domain.State, commits []*rollcallv1.Commit) error {
	l := newLedger()
	for _, c := range commits {
		if err := l.commit(c); err != nil {
			return err
		}
	}
	return l.holds(s)
}

// holds checks a state against the books of its log.
func (l *ledger) holds(s *domain.State) error {
	if err := l.agrees(s); err != nil {
		return err
	}
	if err := delegated(s); err != nil {
		return err
	}
	if err := l.pending(s); err != nil {
		return err
	}
	if err := acyclic(s); err != nil {
		return err
	}
	return rest(s)
}

func newLedger() *ledger {
	return &ledger{
		open: map[string]string{}, unread: map[string]string{}, inRun: map[string]string{}, waits: map[string]string{},
		asked: asked{run: map[string]string{}, ended: map[string]bool{}},
	}
}

func (l *ledger) commit(c *rollcallv1.Commit) error {
	for _, e := range c.GetEvents() {
		if err := l.event(e); err != nil {
			return fmt.Errorf("version %d, %s: %w", c.GetVersion(), domain.EventName(e), err)
		}
	}
	return nil
}

// ledger keeps its own books of runs and mail, straight from the log.
type ledger struct {
	open   map[string]string // member -> open run
	unread map[string]string // message -> member
	inRun  map[string]string // message -> run that consumed it
	waits  map[string]string // question -> member
	asked  asked
}

func (l *ledger) event(e *rollcallv1.Event) error {
	switch {
	case e.GetMessageDelivered() != nil:
		m := e.GetMessageDelivered()
		if _, again := l.unread[m.GetMessage()]; again {
			return fmt.Errorf("message %s was delivered twice", m.GetMessage())
		}
		l.unread[m.GetMessage()] = m.GetTo()
	case e.GetRunStarted() != nil:
		r := e.GetRunStarted()
		if run := l.open[r.GetMember()]; run != "" {
			return fmt.Errorf("%s starts %s while %s is open", r.GetMember(), r.GetRun(), run)
		}
		if len(r.GetConsumed()) == 0 {
			return fmt.Errorf("%s starts without mail", r.GetRun())
		}
		l.open[r.GetMember()] = r.GetRun()
		return l.consume(r.GetMember(), r.GetRun(), r.GetConsumed())
	case e.GetMessagesConsumed() != nil:
		c := e.GetMessagesConsumed()
		return l.consume(c.GetMember(), c.GetRun(), c.GetMessages())
	case e.GetMessagesReturned() != nil:
		r := e.GetMessagesReturned()
		for _, m := range r.GetMessages() {
			if l.inRun[m.GetMessage()] != r.GetRun() {
				return fmt.Errorf("%s returns %s, which it does not hold", r.GetRun(), m.GetMessage())
			}
			delete(l.inRun, m.GetMessage())
		}
	case e.GetModelCallStarted() != nil:
		return l.inOpenRun(e.GetModelCallStarted().GetMember(), e.GetModelCallStarted().GetRun())
	case e.GetToolCallStarted() != nil:
		return l.inOpenRun(e.GetToolCallStarted().GetMember(), e.GetToolCallStarted().GetRun())
	case e.GetRunFinished() != nil:
		f := e.GetRunFinished()
		if err := l.inOpenRun(f.GetMember(), f.GetRun()); err != nil {
			return err
		}
		delete(l.open, f.GetMember())
	case e.GetWaitStarted() != nil:
		l.waits[e.GetWaitStarted().GetMessage()] = e.GetWaitStarted().GetMember()
	case e.GetWaitEnded() != nil:
		delete(l.waits, e.GetWaitEnded().GetMessage())
	default:
		return l.approval(e)
	}
	return nil
}

func (l *ledger) inOpenRun(member, run string) error {
	if l.open[member] != run {
		return fmt.Errorf("%s of %s is not open", run, member)
	}
	return nil
}

func (l *ledger) consume(member, run string, mail []*rollcallv1.MessageRef) error {
	if err := l.inOpenRun(member, run); err != nil {
		return err
	}
	for _, m := range mail {
		if l.unread[m.GetMessage()] != member {
			return fmt.Errorf("%s reads %s, which is not its mail", member, m.GetMessage())
		}
		if by := l.inRun[m.GetMessage()]; by != "" {
			return fmt.Errorf("%s is consumed by %s and was by %s", m.GetMessage(), run, by)
		}
		l.inRun[m.GetMessage()] = run
	}
	return nil
}

// agrees compares the state with the books.
func (l *ledger) agrees(s *domain.State) error {
	waits := 0
	for _, m := range s.Members {
		run := ""
		if m.Run != nil {
			run = m.Run.ID
			if m.Run.Phase == domain.Deciding {
				return fmt.Errorf("a commit leaves %s undecided", run)
			}
		}
		if run != l.open[m.ID] {
			return fmt.Errorf("%s: open run is %q in the state and %q in the log", m.ID, run, l.open[m.ID])
		}
		for _, mail := range m.Unread {
			if by := l.inRun[mail.ID]; by != "" {
				return fmt.Errorf("%s is unread by %s and consumed by %s", mail.ID, m.ID, by)
			}
		}
		for _, w := range m.Waits {
			if l.waits[w.Message] != m.ID {
				return fmt.Errorf("%s waits on %s in the state only", m.ID, w.Message)
			}
			waits++
		}
		if err := statusFits(m); err != nil {
			return err
		}
	}
	if len(l.waits) != waits {
		return fmt.Errorf("the log has the waits %v, the state has %d", l.waits, waits)
	}
	return nil
}

func statusFits(m *domain.Member) error {
	var want rollcallv1.MemberStatus
	switch {
	case !m.Alive():
		if m.Run != nil || len(m.Unread) > 0 || len(m.Waits) > 0 {
			return fmt.Errorf("%s is shut down and has a run, mail or waits", m.ID)
		}
		return nil
	case m.Run != nil:
		want = rollcallv1.MemberStatus_MEMBER_STATUS_WORKING
	case len(m.Waits) > 0:
		want = rollcallv1.MemberStatus_MEMBER_STATUS_WAITING
	case m.Status == rollcallv1.MemberStatus_MEMBER_STATUS_SPAWNING:
		return nil
	default:
		want = rollcallv1.MemberStatus_MEMBER_STATUS_IDLE
	}
	if m.Status != want {
		return fmt.Errorf("%s is %v, want %v", m.ID, m.Status, want)
	}
	return nil
}

func acyclic(s *domain.State) error {
	const visiting, done = 1, 2
	color := map[string]int{}
	var visit func(id string) error
	visit = func(id string) error {
		t := s.Task(id)
		if t == nil || color[id] == done {
			return nil
		}
		if color[id] == visiting {
			return fmt.Errorf("%s depends on itself", id)
		}
		color[id] = visiting
		for _, d := range t.Dependencies {
			if err := visit(d); err != nil {
				return err
			}
		}
		color[id] = done
		return nil
	}
	for _, t := range s.Tasks {
		if err := visit(t.ID); err != nil {
			return err
		}
	}
	return nil
}

// rest holds what is true between commits: nobody who could work sleeps, and
// every task has the status that its dependencies demand.
func rest(s *domain.State) error {
	for _, m := range s.Members {
		if m.Run == nil && m.Alive() && !m.Held && !s.Paused && !overspent(s) && mustWake(s, m) {
			return fmt.Errorf("%s has waking mail and no run", m.ID)
		}
	}
	for _, t := range s.Tasks {
		want, waits := demanded(s, t)
		if waits && t.Status != want {
			return fmt.Errorf("%s is %v, want %v", t.ID, t.Status, want)
		}
	}
	if len(domain.Due(s)) == 0 && s.Status() == "working" {
		return fmt.Errorf("nothing is due and the conversation is working")
	}
	return nil
}

func overspent(s *domain.State) bool {
	b, u := s.Budget, s.Used
	return b.Tokens > 0 && u.InputTokens+u.OutputTokens+u.Charged.Tokens >= b.Tokens || b.CostMicros > 0 && u.CostMicros+u.Charged.CostMicros >= b.CostMicros
}

// mustWake reports whether unread mail should have started a run: it is of a
// waking kind, the run that sent it does not hold it back, and what the member
// is to begin can begin. Who has not begun waits for that.
func mustWake(s *domain.State, m *domain.Member) bool {
	ready, began := true, m.Status != rollcallv1.MemberStatus_MEMBER_STATUS_SPAWNING
	if t := s.Task(m.Task); t != nil {
		ready = t.Status == rollcallv1.TaskStatus_TASK_STATUS_CLAIMABLE || t.Status == rollcallv1.TaskStatus_TASK_STATUS_IN_PROGRESS
	}
	for _, mail := range m.Unread {
		isBrief := mail.Kind == rollcallv1.MailKind_MAIL_KIND_BRIEF
		switch {
		case mail.Quiet, mail.Kind == rollcallv1.MailKind_MAIL_KIND_TASK_NOTIFICATION, heldBack(s, mail), isBrief && !ready, !isBrief && !began:
		default:
			return true
		}
	}
	return false
}

func heldBack(s *domain.State, mail *domain.Mail) bool {
	for _, m := range s.Members {
		if m.Run != nil && m.Run.ID == mail.After {
			return !m.Run.Suspended
		}
	}
	return false
}

func demanded(s *domain.State, t *domain.Task) (want rollcallv1.TaskStatus, derived bool) {
	switch t.Status {
	case rollcallv1.TaskStatus_TASK_STATUS_PENDING, rollcallv1.TaskStatus_TASK_STATUS_CLAIMABLE, rollcallv1.TaskStatus_TASK_STATUS_BLOCKED:
	default:
		return 0, false
	}
	want = rollcallv1.TaskStatus_TASK_STATUS_CLAIMABLE
	for _, id := range t.Dependencies {
		switch s.Task(id).Status {
		case rollcallv1.TaskStatus_TASK_STATUS_COMPLETED:
		case rollcallv1.TaskStatus_TASK_STATUS_FAILED, rollcallv1.TaskStatus_TASK_STATUS_CANCELLED, rollcallv1.TaskStatus_TASK_STATUS_BLOCKED:
			return rollcallv1.TaskStatus_TASK_STATUS_BLOCKED, true
		default:
			want = rollcallv1.TaskStatus_TASK_STATUS_PENDING
		}
	}
	return want, true
}
