// Package prompt turns the log into what a model is shown.
//
// [Build] is a pure function of a [domain.StepPlan] and the events it refers
// to: the same log gives the same request, byte for byte, on every node and
// after every upgrade. Nothing here is stored.
//
// A request is a system message, then the member's transcript. Mail of members
// and framework stands in one frame at the head of a user message, the
// operator's words after it, outside: see frame.go and escape.go. Calls and
// their results are always paired: see transcript.go and calls.go.
package prompt

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Renderer is the version of the rules in this package. A run is pinned to one
// by its AgentBound event; a change of what Build gives for an old log is a new
// version beside the old.
const Renderer = domain.Renderer

// Errors of a plan that this package cannot render.
var (
	// ErrRenderer: the run is pinned to rules that this build does not have.
	ErrRenderer = errors.New("unknown renderer")
	// ErrMissing: the plan refers to an event that the source does not have, or
	// to one of another kind.
	ErrMissing = errors.New("missing from the log")
)

// Source reads what a plan refers to.
type Source interface {
	// Event returns the event at ref and the time of its commit.
	Event(ref *rollcallv1.Ref) (*rollcallv1.Event, time.Time, error)
	// Body returns a body's text, also when it lies in the object store.
	Body(b *rollcallv1.Body) (string, error)
}

// Needs lists the versions of all commits that Build will ask for, each once,
// ascending.
func Needs(plan domain.StepPlan) []uint64 {
	refs := []*rollcallv1.Ref{plan.Agent}
	for _, mail := range plan.Purpose {
		refs = append(refs, mail.GetRef())
	}
	for _, entry := range plan.Context {
		refs = append(refs, entry.Ref)
		for _, mail := range entry.Mail {
			refs = append(refs, mail.GetRef())
		}
	}
	return versions(refs)
}

// versions of the commits that hold the events, each once, ascending.
func versions(refs []*rollcallv1.Ref) []uint64 {
	found := make([]uint64, 0, len(refs))
	for _, ref := range refs {
		if v := ref.GetVersion(); v > 0 {
			found = append(found, v)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Build gives the request of the plan's step. Errors: ErrRenderer, ErrMissing,
// and the source's own.
func Build(plan domain.StepPlan, src Source) (model.Request, error) {
	req, err := build(plan, src)
	if err != nil {
		return model.Request{}, fmt.Errorf("build the request of %s, run %s, step %d: %w", plan.Member.ID, plan.Run, plan.Step, err)
	}
	return req, nil
}

func build(plan domain.StepPlan, src Source) (model.Request, error) {
	event, _, err := src.Event(plan.Agent)
	if err != nil {
		return model.Request{}, fmt.Errorf("the agent it is bound to: %w", err)
	}
	agent := event.GetAgentBound()
	if agent == nil {
		return model.Request{}, fmt.Errorf("the agent it is bound to: %w: version %d holds another event", ErrMissing, plan.Agent.GetVersion())
	}
	if r := agent.GetRenderer(); r != Renderer {
		return model.Request{}, fmt.Errorf("%w %d: this build has %d", ErrRenderer, r, Renderer)
	}
	messages, err := transcript(plan, agent, src)
	if err != nil {
		return model.Request{}, err
	}
	return model.Request{
		Model:    agent.GetDefinition().GetModel(),
		Messages: append([]model.Message{{Role: roleSystem, Content: system(plan, agent)}}, messages...),
		Tools:    agent.GetTools(),
	}, nil
}

// system is the contract's instructions, who the member is, the agent's own
// prompt and the situation. Names and titles in the situation are members'
// words, so it is escaped as mail is.
func system(plan domain.StepPlan, agent *rollcallv1.AgentBound) string {
	role := "member"
	switch plan.Member.Role {
	case rollcallv1.MemberRole_MEMBER_ROLE_LEAD:
		role = "lead"
	case rollcallv1.MemberRole_MEMBER_ROLE_SUBAGENT:
		role = "subagent"
	}
	parts := []string{
		clean(agent.GetInstructions()),
		fmt.Sprintf("# You\n\nYour name is %s. Your role is %s.", quote(plan.Member.Name), role),
		clean(agent.GetDefinition().GetPrompt()),
	}
	if s := strings.TrimSpace(plan.Situation); s != "" {
		parts = append(parts, "<situation>\n"+escape(s)+"\n</situation>")
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, "\n\n")
}

// clean is text that the operator or Rollcall wrote, ready to be joined.
func clean(s string) string {
	return strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD"))
}
