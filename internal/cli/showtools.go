package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
)

// showTools says what a member may call: its next run, what is left out of
// that, and its open run where that has something else.
func showTools(w io.Writer, d api.Detail) {
	t := d.Toolset
	if t == nil { // the node is of an earlier version
		fmt.Fprintln(w, "this node does not say")
		return
	}
	for _, m := range d.Members {
		fmt.Fprintf(w, "%s  %s · %s · agent type %s · contract %s\n", m.Name, m.ID, m.Role, m.AgentType, d.Contract)
	}
	if len(t.Next) > 0 {
		fmt.Fprintf(w, "\nnext run, when node %s starts it\n", t.Node)
		toolTable(w, t.Next)
	}
	if len(t.LeftOut) > 0 {
		fmt.Fprintln(w, "\nleft out of it")
		toolTable(w, t.LeftOut)
	}
	switch {
	case t.Run == "" && len(t.Next) == 0:
		fmt.Fprintln(w, "\nno run is open, and none will follow")
	case t.Run == "":
		fmt.Fprintln(w, "\nno run is open")
	case t.SameTools():
		fmt.Fprintf(w, "\nthe open run %s has the same\n", t.Run)
	default:
		fmt.Fprintf(w, "\nthe open run %s keeps what it was given at its start\n", t.Run)
		toolTable(w, t.Pinned)
	}
}

func toolTable(w io.Writer, tools []api.AssembledTool) {
	rows := [][]string{{"TOOL", "FROM", "CALLS", "WHY", "ARGUMENTS"}}
	for _, t := range tools {
		var calls []string
		for _, is := range []struct {
			so   bool
			word string
		}{{t.NeedsApproval, "need approval"}, {t.Once, "once a run"}, {!t.Idempotent && t.Source == domain.FromNode, "not repeatable"}} {
			if is.so {
				calls = append(calls, is.word)
			}
		}
		rows = append(rows, []string{t.Name, strings.TrimSpace(t.Source + " " + t.From), orDash(strings.Join(calls, ", ")), t.Why, orDash(shortArguments(t.Arguments))})
	}
	table(w, rows)
}

// shortArguments marks what is required with a star.
func shortArguments(all []string) string {
	return strings.ReplaceAll(strings.Join(all, ", "), " (required)", "*")
}
