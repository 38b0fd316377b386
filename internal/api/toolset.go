package api

import (
	"slices"

	"github.com/rollcall-dev/rollcall/domain"
)

// Toolset is what a member may call, and why.
type Toolset struct {
	// Node whose tools and settings Next goes by: a run has those of the node
	// that starts it.
	Node string `json:"node"`
	// Next is what the member's next run will have; empty where there will be
	// none, and of the past.
	Next []AssembledTool `json:"next"`
	// LeftOut is what the next run will not have, though its contract or the node
	// has it.
	LeftOut []AssembledTool `json:"left_out"`
	// Run is the open run; Pinned is what it was given at its start and keeps.
	Run    string          `json:"run,omitempty"`
	Pinned []AssembledTool `json:"pinned,omitempty"`
}

// AssembledTool is a tool with where it comes from.
type AssembledTool struct {
	Tool
	// From is the contract's name, or the part of the runtime or the node that has
	// the tool.
	From string `json:"from,omitempty"`
	// Once: at most one successful call a run.
	Once bool `json:"once"`
	// Why the member has it, or why it is left out.
	Why string `json:"why"`
	// Arguments that it takes, by name, the required ones marked so.
	Arguments []string `json:"arguments"`
}

// toolsetOf tells of a member's tools by the rules of this node; what is past
// has no next run.
func (s *Server) toolsetOf(f *fold, ref string, past bool) (*Toolset, error) {
	id, err := f.member(ref)
	if err != nil {
		return nil, err
	}
	out := &Toolset{Node: s.cfg.Node, Next: []AssembledTool{}, LeftOut: []AssembledTool{}}
	m := f.state.Member(id)
	if !past {
		for _, t := range f.state.Toolset(s.cfg.Rules, m) {
			if t.Left {
				out.LeftOut = append(out.LeftOut, assembledTool(t))
			} else {
				out.Next = append(out.Next, assembledTool(t))
			}
		}
	}
	if m.Run != nil {
		out.Run = m.Run.ID
		for _, t := range f.state.Pinned(s.cfg.Rules, m, m.Run.Agent) {
			out.Pinned = append(out.Pinned, assembledTool(t))
		}
	}
	return out, nil
}

func assembledTool(t domain.AssembledTool) AssembledTool {
	d := t.Definition
	return AssembledTool{
		Tool: Tool{
			Name: d.GetName(), Description: d.GetDescription(), Source: t.Source, Idempotent: d.GetIdempotent(), NeedsApproval: d.GetNeedsApproval(),
		},
		From: t.From, Once: d.GetOnce(), Why: t.Why, Arguments: append([]string{}, domain.Parameters(d)...),
	}
}

// SameTools reports whether the open run has what the next one will have.
func (t *Toolset) SameTools() bool {
	return slices.EqualFunc(t.Next, t.Pinned, func(a, b AssembledTool) bool { return a.Tool == b.Tool && a.From == b.From && a.Once == b.Once })
}
