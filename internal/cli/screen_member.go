package cli

import (
	"fmt"
	"strings"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// member is a line of the live block: what a member does, or what it waits for.
func (p *screen) member(m *domain.Member) string {
	doing := domain.Word(m.Status)
	mark := "◌"
	needs := p.needs(m)
	switch {
	case m.Run != nil && p.tools[m.Run.ID] != "":
		mark, doing = "●", "tool "+oneLine(p.tools[m.Run.ID], 40)
	case m.Run != nil:
		mark, doing = "●", fmt.Sprintf("thinking, step %d", m.Run.Step)
	case m.Held:
		mark, doing = "✗", "held: "+domain.Word(m.LastReason)
	case len(m.Waits) > 0:
		doing = fmt.Sprintf("waits for %s to answer %s", oneLine(p.state.DisplayName(m.Waits[0].Awaited), 16), m.Waits[0].Message)
	case len(needs) > 0:
		doing = "waits for " + oneLine(strings.Join(needs, ", "), 40) + " to deliver"
	}
	text := fmt.Sprintf(" %s %s %s", mark, pad(oneLine(m.Name, 16), 16), doing)
	for _, t := range p.state.Tasks {
		switch {
		case t.Owner != m.Name:
		case t.Status == rollcallv1.TaskStatus_TASK_STATUS_IN_PROGRESS:
			text += fmt.Sprintf(" · %s %s", t.ID, oneLine(t.Title, 40))
		case t.Stale:
			text += fmt.Sprintf(" · %s stale", t.ID)
		}
	}
	if n := len(m.Unread); n > 0 {
		text += fmt.Sprintf(" · %d unread", n)
	}
	return text
}

// needs are those whose deliveries a member's assignment still needs.
func (p *screen) needs(m *domain.Member) (names []string) {
	t := p.state.Task(m.Task)
	if t == nil || m.Status != rollcallv1.MemberStatus_MEMBER_STATUS_SPAWNING {
		return nil
	}
	for _, id := range t.Dependencies {
		if dep := p.state.Task(id); dep != nil && dep.Status != rollcallv1.TaskStatus_TASK_STATUS_COMPLETED {
			names = append(names, dep.Owner)
		}
	}
	return names
}
