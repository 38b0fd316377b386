package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
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
				needs := ""
				for i, n := range x.NeedsOperator {
					if i > 0 {
						needs += ", "
					}
					needs += n.Kind + " " + n.ID
				}
				rows = append(rows, []string{x.ID, orDash(x.Name), x.Status, fmt.Sprint(len(x.Members)), tasks, fmt.Sprint(x.Version), needs})
			}
			table(w, rows)
		})
	})
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
