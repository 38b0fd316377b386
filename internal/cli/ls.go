package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/projections"
)

func (s *session) ls() *cobra.Command {
	return s.command(&cobra.Command{
		Use:   "ls",
		Short: "List conversations",
		Example: `  rollcall ls
  rollcall ls --json`,
		GroupID: groupWatch, Args: args(0, 0),
	}, func(ctx context.Context, _ []string) error {
		c, err := s.connect()
		if err != nil {
			return err
		}
		all, err := c.List(ctx)
		if err != nil {
			return err
		}
		if all.Behind {
			s.say("this may be old: the node could not read what the log holds now (rollcall doctor)")
		}
		return s.print(all, func(w io.Writer) {
			if len(all.Conversations) == 0 && all.Behind {
				s.say("no conversation is known to the node yet")
				return
			}
			if len(all.Conversations) == 0 {
				s.say("no conversation yet; try: rollcall run \"…\"   or   rollcall demo")
				return
			}
			rows := [][]string{{"ID", "NAME", "STATUS", "MEMBERS", "TASKS", "VERSION", "NEEDS YOU"}}
			for _, x := range all.Conversations {
				tasks := fmt.Sprintf("%d open", x.Tasks.Open)
				if x.Tasks.Failed > 0 {
					tasks += fmt.Sprintf(", %d failed", x.Tasks.Failed)
				}
				rows = append(rows, []string{x.ID, orDash(x.Name), x.Status, fmt.Sprint(len(x.Members)), tasks, fmt.Sprint(x.Version), needsYou(x)})
			}
			table(w, rows)
		})
	})
}

// needsYou is what only the operator can do, or what rests undone although
// nobody works on it.
func needsYou(x projections.Conversation) string {
	var needs []string
	for _, n := range x.NeedsOperator {
		needs = append(needs, n.Kind+" "+n.ID)
	}
	if len(needs) == 0 && x.Status == "idle" && x.Tasks.Open > 0 {
		return "it rests unfinished"
	}
	return strings.Join(needs, ", ")
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
