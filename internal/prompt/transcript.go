package prompt

import (
	"fmt"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const (
	roleSystem    = "system"
	roleUser      = "user"
	roleAssistant = "assistant"
	roleTool      = "tool"
)

// A place is where a call's outcome belongs. Calls of one reply that share an
// id take their outcomes in order.
type place struct {
	run  string
	step uint32
	call string
}

// A writer makes messages of a transcript. Mail and notices gather in pending
// and become one user message before the next reply, so that nothing comes
// between calls and their results, and no two user messages follow each other.
type writer struct {
	plan     domain.StepPlan
	src      Source
	tools    []*rollcallv1.ToolDefinition
	outcomes map[place][]*rollcallv1.ToolCallFinished
	ids      callIDs
	seen     map[string]bool
	pending  turn
	messages []model.Message
	// spoke is true once the run at hand has a reply.
	spoke bool
}

func transcript(plan domain.StepPlan, agent *rollcallv1.AgentBound, src Source) ([]model.Message, error) {
	w := &writer{
		plan: plan, src: src, tools: agent.GetTools(),
		outcomes: map[place][]*rollcallv1.ToolCallFinished{},
		ids:      callIDs{used: map[string]bool{}},
		seen:     map[string]bool{},
	}
	events := make([]*rollcallv1.Event, len(plan.Context))
	for i, entry := range plan.Context {
		event, _, err := src.Event(entry.Ref)
		if err != nil {
			return nil, fmt.Errorf("transcript entry %d: %w", i, err)
		}
		events[i] = event
		if f := event.GetToolCallFinished(); f != nil {
			at := place{f.GetRun(), f.GetStep(), f.GetCall()}
			w.outcomes[at] = append(w.outcomes[at], f)
		}
	}
	for _, mail := range plan.Purpose {
		if err := w.opening(mail); err != nil {
			return nil, err
		}
	}
	if plan.Omitted > 0 {
		w.notice(fmt.Sprintf("%d earlier entries of your transcript are not shown.", plan.Omitted))
	}
	for i, event := range events {
		if err := w.entry(event, plan.Context[i].Mail); err != nil {
			return nil, fmt.Errorf("transcript entry %d: %w", i, err)
		}
	}
	return w.end(), nil
}

func (w *writer) notice(text string) { w.pending.notices = append(w.pending.notices, text) }

func (w *writer) entry(event *rollcallv1.Event, mail []*rollcallv1.MessageRef) error {
	switch e := event.GetKind().(type) {
	case *rollcallv1.Event_RunStarted:
		w.spoke = false
		return w.consume(mail)
	case *rollcallv1.Event_MessagesConsumed:
		return w.consume(mail)
	case *rollcallv1.Event_LeadReplied:
		return w.lastAnswer(e.LeadReplied)
	case *rollcallv1.Event_ModelReplied:
		return w.reply(e.ModelReplied)
	case *rollcallv1.Event_RunFinished:
		w.finish(e.RunFinished)
	}
	return nil
}

// consume shows each message once in a request: mail that was returned unread
// and consumed again keeps its first place, which no reply has followed.
func (w *writer) consume(mail []*rollcallv1.MessageRef) error {
	for _, m := range mail {
		if w.seen[m.GetMessage()] {
			continue
		}
		l, err := open(m, w.plan.Names, w.src)
		if err != nil {
			return err
		}
		w.seen[m.GetMessage()] = true
		if l.event.GetKind() != rollcallv1.MailKind_MAIL_KIND_CONTROL {
			w.pending.add(l)
		}
	}
	return nil
}

// opening begins a transcript that does not hold all of what the member is for.
func (w *writer) opening(m *rollcallv1.MessageRef) error {
	l, err := open(m, w.plan.Names, w.src)
	if err != nil {
		return err
	}
	if shown := head(l.body, MaxMailBytes); l.operators() && len(shown) < len(l.body) {
		l.body = shown
		w.notice(fmt.Sprintf("Of the operator's message %s the first %d of %d bytes are shown. %s", m.GetMessage(), len(shown), l.size, howToRead(w.tools)))
	}
	w.seen[m.GetMessage()] = true
	w.pending.add(l)
	return nil
}

// lastAnswer is what a Lead that remembers a summary last told the operator, as
// much of it as one message shows.
func (w *writer) lastAnswer(e *rollcallv1.LeadReplied) error {
	text, err := w.src.Body(e.GetText())
	if err != nil {
		return fmt.Errorf("last answer: %w", err)
	}
	if shown := head(text, MaxMailBytes); len(shown) < len(text) {
		text = fmt.Sprintf("%s\n[the first %d of %d bytes of this answer]", shown, len(shown), len(text))
	}
	return w.reply(&rollcallv1.ModelReplied{Run: e.GetRun(), Text: &rollcallv1.Body{Text: text}})
}

// reply writes the model's answer and the outcomes of its calls. An answer
// without text and calls is left out: servers refuse it.
func (w *writer) reply(e *rollcallv1.ModelReplied) error {
	text, err := w.src.Body(e.GetText())
	if err != nil {
		return fmt.Errorf("text of step %d: %w", e.GetStep(), err)
	}
	text = clean(text)
	if text == "" && len(e.GetCalls()) == 0 {
		return nil
	}
	w.flush()
	w.spoke = true
	message := model.Message{Role: roleAssistant, Content: text}
	if e.GetRun() == w.plan.Run { // some servers want it back within the turn
		if message.Reasoning, err = w.src.Body(e.GetReasoning()); err != nil {
			return fmt.Errorf("reasoning of step %d: %w", e.GetStep(), err)
		}
	}
	var results []model.Message
	for _, call := range e.GetCalls() {
		raw := call.GetArguments()
		if blob := call.GetArgumentsBlob(); blob != nil {
			if raw, err = w.src.Body(&rollcallv1.Body{Blob: blob}); err != nil {
				return fmt.Errorf("arguments of call %s: %w", call.GetId(), err)
			}
		}
		shown, err := arguments(raw)
		if err != nil {
			return err
		}
		id := w.ids.next(call.GetId())
		message.Calls = append(message.Calls, &rollcallv1.ToolCall{Id: id, Name: call.GetName(), Arguments: shown, Extra: call.GetExtra()})
		result, err := w.outcome(place{e.GetRun(), e.GetStep(), call.GetId()})
		if err != nil {
			return fmt.Errorf("outcome of call %s: %w", call.GetId(), err)
		}
		results = append(results, model.Message{Role: roleTool, CallID: id, Content: result})
	}
	w.messages = append(append(w.messages, message), results...)
	return nil
}

// outcome takes the next outcome at the place, or makes one up: a call without
// a result makes every later request invalid.
func (w *writer) outcome(at place) (string, error) {
	outcomes := w.outcomes[at]
	if len(outcomes) == 0 {
		return interrupted, nil
	}
	w.outcomes[at] = outcomes[1:]
	text, err := w.src.Body(outcomes[0].GetOutput())
	if err != nil {
		return "", err
	}
	return output(outcomes[0], text), nil
}

// finish tells the next turn why this one broke off, if it had said anything.
func (w *writer) finish(e *rollcallv1.RunFinished) {
	if !w.spoke {
		return
	}
	switch e.GetReason() {
	case rollcallv1.FinishReason_FINISH_REASON_INTERRUPTED:
		w.notice("Your last turn was interrupted before it finished.")
	case rollcallv1.FinishReason_FINISH_REASON_CANCELLED:
		w.notice("Your last turn was cancelled before it finished.")
	case rollcallv1.FinishReason_FINISH_REASON_FAILED:
		w.notice("Your last turn failed before it finished" + code(e.GetCode()) + ".")
	case rollcallv1.FinishReason_FINISH_REASON_OUT_OF_BUDGET:
		w.notice("Your last turn ended before it finished: its budget was used up.")
	}
}

func code(c string) string {
	if c == "" {
		return ""
	}
	return " (" + c + ")"
}

// flush ends the user's turn before a reply. A transcript that begins, or goes
// on, with a reply gets a user message all the same.
func (w *writer) flush() {
	if w.pending.empty() {
		switch {
		case len(w.messages) == 0:
			w.notice("Earlier entries of your transcript are not shown.")
		case w.last().Role == roleAssistant:
			w.notice("Go on.")
		default:
			return
		}
	}
	w.messages = append(w.messages, model.Message{Role: roleUser, Content: w.pending.render(w.tools)})
	w.pending = turn{}
}

func (w *writer) last() model.Message { return w.messages[len(w.messages)-1] }

// end leaves something to answer: mail, or the results of calls.
func (w *writer) end() []model.Message {
	if w.pending.empty() && len(w.messages) == 0 {
		w.notice("There is nothing new to read.")
	}
	w.flush()
	return w.messages
}
