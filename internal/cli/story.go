package cli

import (
	"fmt"
	"strings"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// teller turns events into sentences. It learns names and titles on the way,
// so it must hear every commit from the first.
type teller struct {
	names  api.Names
	titles map[string]string
	// owners of tasks; assigned is true where each member has one.
	owners   map[string]string
	assigned bool
	// failed is the last failure of a model call, by run: it is told in full once.
	failed map[string]string
}

func newTeller() *teller {
	return &teller{names: api.Names{}, titles: map[string]string{}, owners: map[string]string{}, failed: map[string]string{}}
}

// sentence is one event in words.
type sentence struct {
	who, what string
	// quiet events are steps on the way: shown in the log, not as progress.
	quiet bool
}

func (s sentence) String() string { return fmt.Sprintf("%s %s", pad(oneLine(s.who, 24), 12), s.what) }

const (
	textColumns  = 100
	titleColumns = 60
)

// hear tells the events of a commit, in order.
func (t *teller) hear(c *rollcallv1.Commit) []sentence {
	t.names.Add(c)
	t.learn(c)
	out := make([]sentence, 0, len(c.GetEvents()))
	for _, e := range c.GetEvents() {
		out = append(out, t.tell(e))
	}
	return out
}

func (t *teller) tell(e *rollcallv1.Event) sentence {
	for _, part := range []func(*rollcallv1.Event) (sentence, bool){t.assignments, t.conversation, t.decisions, t.board, t.mail, t.turn, t.step} {
		if s, ok := part(e); ok {
			return s
		}
	}
	return sentence{who: "-", what: "something that this version does not know", quiet: true}
}

func (t *teller) by(id, format string, args ...any) (sentence, bool) {
	return sentence{who: t.name(id), what: fmt.Sprintf(format, args...)}, true
}

func (t *teller) quietly(id, format string, args ...any) (sentence, bool) {
	s, ok := t.by(id, format, args...)
	s.quiet = true
	return s, ok
}

func (t *teller) conversation(e *rollcallv1.Event) (sentence, bool) {
	switch k := e.GetKind().(type) {
	case *rollcallv1.Event_ConversationOpened:
		o := k.ConversationOpened
		return t.quietly(domain.Operator, "opened conversation %s%s with contract %s", o.GetConversation(), named(o.GetName()), o.GetContract())
	case *rollcallv1.Event_ConversationPaused:
		return t.by(k.ConversationPaused.GetBy(), "paused the conversation")
	case *rollcallv1.Event_ConversationResumed:
		return t.by(k.ConversationResumed.GetBy(), "resumed the conversation")
	case *rollcallv1.Event_TeamCreated:
		return t.by(domain.LeadID, "made team %s%s", k.TeamCreated.GetTeam(), named(k.TeamCreated.GetName()))
	case *rollcallv1.Event_MemberAdded:
		m := k.MemberAdded
		s, ok := t.by(m.GetMember(), "joined as %s (%s)", m.GetMember(), m.GetAgentType())
		s.quiet = m.GetRole() == rollcallv1.MemberRole_MEMBER_ROLE_LEAD
		return s, ok
	case *rollcallv1.Event_MemberShutdown:
		return t.by(k.MemberShutdown.GetMember(), "was shut down%s", because(k.MemberShutdown.GetReason()))
	case *rollcallv1.Event_TeamDissolved:
		return t.by(k.TeamDissolved.GetBy(), "dissolved team %s", k.TeamDissolved.GetTeam())
	case *rollcallv1.Event_WaitStarted:
		return t.by(k.WaitStarted.GetMember(), "waits for an answer of %s to %s", t.name(k.WaitStarted.GetAwaited()), k.WaitStarted.GetMessage())
	case *rollcallv1.Event_WaitEnded:
		return t.quietly(k.WaitEnded.GetMember(), "no longer waits on %s: %s", k.WaitEnded.GetMessage(), k.WaitEnded.GetReason())
	case *rollcallv1.Event_BudgetRaised:
		return t.by(domain.Operator, "set the budget to %s", budgetText(k.BudgetRaised.GetBudget()))
	case *rollcallv1.Event_TimerArmed:
		return t.quietly(domain.Framework, "armed timer %s for %s", k.TimerArmed.GetTimer(), k.TimerArmed.GetDue().AsTime().Format("15:04:05"))
	case *rollcallv1.Event_TimerFired:
		return t.quietly(domain.Framework, "timer %s fired", k.TimerFired.GetTimer())
	case *rollcallv1.Event_CommandRefused:
		return t.quietly(domain.Framework, "refused a late command: %s [%s]", oneLine(k.CommandRefused.GetReason(), textColumns), k.CommandRefused.GetCode())
	case *rollcallv1.Event_LeadReplied:
		return t.by(domain.LeadID, "answered: %s", bodyText(k.LeadReplied.GetText()))
	}
	return sentence{}, false
}

func (t *teller) board(e *rollcallv1.Event) (sentence, bool) {
	switch k := e.GetKind().(type) {
	case *rollcallv1.Event_TaskCreated:
		c := k.TaskCreated
		t.titles[c.GetTask()] = c.GetTitle()
		what := "made task " + t.task(c.GetTask())
		if c.GetOwner() != "" {
			what += " for " + oneLine(c.GetOwner(), 24)
		}
		if len(c.GetDependencies()) > 0 {
			what += " after " + strings.Join(c.GetDependencies(), ", ")
		}
		return t.by(c.GetCreator(), "%s", what)
	case *rollcallv1.Event_TaskUpdated:
		u := k.TaskUpdated
		if u.Title != nil {
			t.titles[u.GetTask()] = u.GetTitle()
		}
		return t.quietly(u.GetBy(), "changed task %s", t.task(u.GetTask()))
	case *rollcallv1.Event_TaskPromoted:
		return t.quietly(domain.Framework, "task %s is %s", t.task(k.TaskPromoted.GetTask()), domain.Word(k.TaskPromoted.GetStatus()))
	case *rollcallv1.Event_TaskClaimed:
		return t.by(k.TaskClaimed.GetBy(), "took task %s", t.task(k.TaskClaimed.GetTask()))
	case *rollcallv1.Event_TaskReleased:
		return t.by(k.TaskReleased.GetBy(), "released task %s", t.task(k.TaskReleased.GetTask()))
	case *rollcallv1.Event_TaskReassigned:
		return t.by(k.TaskReassigned.GetBy(), "gave task %s to %s", t.task(k.TaskReassigned.GetTask()), oneLine(k.TaskReassigned.GetOwner(), 24))
	case *rollcallv1.Event_TaskCompleted:
		d := k.TaskCompleted.GetDelivery()
		what := "completed task " + t.task(k.TaskCompleted.GetTask())
		if len(d.GetPaths()) > 0 {
			what += " (" + oneLine(strings.Join(d.GetPaths(), ", "), titleColumns) + ")"
		}
		return t.by(k.TaskCompleted.GetBy(), "%s: %s", what, oneLine(d.GetSummary(), textColumns))
	case *rollcallv1.Event_TaskFailed:
		return t.by(k.TaskFailed.GetBy(), "failed task %s%s", t.task(k.TaskFailed.GetTask()), because(k.TaskFailed.GetReason()))
	case *rollcallv1.Event_TaskBlocked:
		return t.by(domain.Framework, "task %s is blocked%s", t.task(k.TaskBlocked.GetTask()), because(k.TaskBlocked.GetReason()))
	case *rollcallv1.Event_TaskCancelled:
		return t.by(k.TaskCancelled.GetBy(), "cancelled task %s%s", t.task(k.TaskCancelled.GetTask()), because(k.TaskCancelled.GetReason()))
	case *rollcallv1.Event_TaskReopened:
		return t.by(k.TaskReopened.GetBy(), "reopened task %s, revision %d%s", t.task(k.TaskReopened.GetTask()), k.TaskReopened.GetRevision(), because(k.TaskReopened.GetReason()))
	case *rollcallv1.Event_TaskMarkedStale:
		return t.by(domain.Framework, "task %s is stale%s", t.task(k.TaskMarkedStale.GetTask()), because(k.TaskMarkedStale.GetReason()))
	}
	return sentence{}, false
}

func (t *teller) mail(e *rollcallv1.Event) (sentence, bool) {
	switch k := e.GetKind().(type) {
	case *rollcallv1.Event_MessageDelivered:
		m := k.MessageDelivered
		to := t.name(m.GetTo())
		switch m.GetKind() {
		case rollcallv1.MailKind_MAIL_KIND_TEXT, rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE:
			return t.by(m.GetFrom(), "→ %s: %s", to, bodyText(m.GetBody()))
		case rollcallv1.MailKind_MAIL_KIND_TEAM_REPORT, rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT:
			return t.by(m.GetFrom(), "→ %s (%s): %s", to, domain.Word(m.GetKind()), bodyText(m.GetBody()))
		}
		return t.quietly(m.GetFrom(), "→ %s (%s): %s", to, domain.Word(m.GetKind()), bodyText(m.GetBody()))
	case *rollcallv1.Event_MessagesConsumed:
		return t.quietly(k.MessagesConsumed.GetMember(), "read %s", messages(k.MessagesConsumed.GetMessages()))
	case *rollcallv1.Event_MessagesReturned:
		return t.quietly(k.MessagesReturned.GetMember(), "has %s unread again: the turn ended before a model answered", messages(k.MessagesReturned.GetMessages()))
	}
	return sentence{}, false
}

func (t *teller) turn(e *rollcallv1.Event) (sentence, bool) {
	switch k := e.GetKind().(type) {
	case *rollcallv1.Event_AgentBound:
		return t.quietly(domain.Framework, "bound agent type %s to its prompt and %s", oneLine(k.AgentBound.GetDefinition().GetName(), 24), count(len(k.AgentBound.GetTools()), "tool"))
	case *rollcallv1.Event_RunStarted:
		return t.quietly(k.RunStarted.GetMember(), "woke for %s: run %s", messages(k.RunStarted.GetConsumed()), k.RunStarted.GetRun())
	case *rollcallv1.Event_RunSuspended:
		return t.by(k.RunSuspended.GetMember(), "run %s was set down%s", k.RunSuspended.GetRun(), because(k.RunSuspended.GetReason()))
	case *rollcallv1.Event_RunResumed:
		if k.RunResumed.GetWaited() {
			return t.by(k.RunResumed.GetMember(), "run %s goes on", k.RunResumed.GetRun())
		}
		return t.by(k.RunResumed.GetMember(), "run %s was taken up again by node %s", k.RunResumed.GetRun(), k.RunResumed.GetNode())
	case *rollcallv1.Event_RunFinished:
		f := k.RunFinished
		what := fmt.Sprintf("ended run %s: %s", f.GetRun(), domain.Word(f.GetReason()))
		if len(f.GetUndelivered()) > 0 {
			what += ", leaving " + strings.Join(f.GetUndelivered(), ", ")
		}
		if words := coded(f.GetDetail(), f.GetCode()); f.GetCode() != "" && t.failed[f.GetRun()] == words {
			what += " [" + f.GetCode() + "]"
		} else if f.GetCode() != "" {
			what += ": " + words
		}
		delete(t.failed, f.GetRun())
		s, ok := t.by(f.GetMember(), "%s", what)
		s.quiet = f.GetCode() == "" && len(f.GetUndelivered()) == 0
		return s, ok
	}
	return sentence{}, false
}

func (t *teller) step(e *rollcallv1.Event) (sentence, bool) {
	switch k := e.GetKind().(type) {
	case *rollcallv1.Event_ModelCallStarted:
		c := k.ModelCallStarted
		return t.quietly(c.GetMember(), "asks the model: step %d%s", c.GetStep(), again(c.GetAttempt()))
	case *rollcallv1.Event_ModelReplied:
		r := k.ModelReplied
		what := "the model said: " + bodyText(r.GetText())
		if n := len(r.GetCalls()); n > 0 {
			var calls []string
			for _, c := range r.GetCalls() {
				calls = append(calls, oneLine(c.GetName(), 40))
			}
			what = "the model calls " + strings.Join(calls, ", ")
		}
		return t.quietly(r.GetMember(), "%s (%s tokens)", what, thousands(tokens(r.GetUsage())))
	case *rollcallv1.Event_ModelCallFailed:
		f := k.ModelCallFailed
		words := coded(f.GetError(), f.GetCode())
		if t.failed[f.GetRun()] == words {
			return t.by(f.GetMember(), "still: %s [%s]", attemptText(f), f.GetCode())
		}
		t.failed[f.GetRun()] = words
		what := "the model call failed"
		if f.GetRetry() {
			what += ", trying again"
		}
		return t.by(f.GetMember(), "%s: %s", what, words)
	case *rollcallv1.Event_ToolCallStarted:
		return t.quietly(k.ToolCallStarted.GetMember(), "runs %s", oneLine(k.ToolCallStarted.GetName(), 40))
	case *rollcallv1.Event_ToolCallFinished:
		f := k.ToolCallFinished
		name := oneLine(f.GetName(), 40)
		switch {
		case f.GetUnknown():
			return t.by(f.GetMember(), "%s: outcome unknown, it was told to verify", name)
		case f.GetError():
			return t.by(f.GetMember(), "%s was refused: %s", name, bodyText(f.GetOutput()))
		}
		return t.quietly(f.GetMember(), "%s: %s", name, bodyText(f.GetOutput()))
	case *rollcallv1.Event_FileWritten:
		return t.by(k.FileWritten.GetMember(), "wrote %s (%s)", oneLine(k.FileWritten.GetPath(), titleColumns), count(k.FileWritten.GetBlob().GetSize(), "byte"))
	case *rollcallv1.Event_FileDeleted:
		return t.by(k.FileDeleted.GetMember(), "deleted %s", oneLine(k.FileDeleted.GetPath(), titleColumns))
	}
	return sentence{}, false
}

// task names a task with its title.
func (t *teller) task(id string) string {
	if title := t.titles[id]; title != "" {
		return fmt.Sprintf("%s %q", id, oneLine(title, titleColumns))
	}
	return id
}

func named(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" %q", oneLine(name, titleColumns))
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + oneLine(reason, textColumns)
}

// coded is a failure's words with its code, which may stand in them already.
func coded(words, code string) string {
	return oneLine(strings.TrimSuffix(words, " ["+code+"]"), 2*textColumns) + " [" + code + "]"
}

// attemptText counts an attempt. How often a busy server is asked is not fixed.
func attemptText(f *rollcallv1.ModelCallFailed) string {
	text := fmt.Sprintf("attempt %d", f.GetAttempt())
	if f.GetAttempt() <= domain.DefaultAttempts && f.GetCode() != model.CodeRateLimited {
		text += fmt.Sprintf(" of %d", domain.DefaultAttempts)
	}
	return text
}

func again(attempt uint32) string {
	if attempt <= 1 {
		return ""
	}
	return fmt.Sprintf(", attempt %d", attempt)
}

func messages(refs []*rollcallv1.MessageRef) string {
	ids := make([]string, len(refs))
	for i, r := range refs {
		ids[i] = r.GetMessage()
	}
	return strings.Join(ids, ", ")
}

func bodyText(b *rollcallv1.Body) string {
	if blob := b.GetBlob(); blob != nil {
		return fmt.Sprintf("(%d KiB of text)", blob.GetSize()>>10)
	}
	return oneLine(b.GetText(), textColumns)
}

func budgetText(b *rollcallv1.Budget) string {
	var parts []string
	if b.GetTokens() > 0 {
		parts = append(parts, count(b.GetTokens(), "token"))
	}
	if b.GetCostMicros() > 0 {
		parts = append(parts, fmt.Sprintf("cost %.4g", api.Units(b.GetCostMicros())))
	}
	if b.GetSteps() > 0 {
		parts = append(parts, count(uint64(b.GetSteps()), "step")+" a run")
	}
	if parts == nil {
		return "no limit"
	}
	return strings.Join(parts, ", ")
}

// name of a member, safe to print.
func (t *teller) name(id string) string { return oneLine(t.names.Of(id), 24) }
