package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

func (s *session) roll() *cobra.Command {
	return s.command(&cobra.Command{
		Use:   "roll [CONV]",
		Short: "Call the roll: every member answers from its actor",
		Long: `Roll asks every member of a conversation, or of all conversations, to answer from its
actor, which the node rebuilds from events where it must. No model is called.`,
		Example: `  rollcall roll
  rollcall roll harbor --json`,
		GroupID: groupWatch, Args: args(0, 1), ValidArgsFunction: s.completeConversation,
	}, func(ctx context.Context, args []string) error {
		var r ref
		if len(args) > 0 {
			var err error
			if r, err = parseRef(args[0]); err == nil {
				err = r.whole()
			}
			if err != nil {
				return err
			}
		}
		c, err := s.connect()
		if err != nil {
			return err
		}
		got, err := c.Roll(ctx, r.read())
		if err != nil {
			return err
		}
		return s.print(got, func(w io.Writer) {
			rows := [][]string{{"CONVERSATION", "ID", "NAME", "STATUS", "UNREAD", "VERSION", "STATE", "NODE"}}
			for _, m := range got.Members {
				rows = append(rows, []string{m.Conversation, m.ID, m.Name, m.Status, fmt.Sprint(m.Unread), fmt.Sprint(m.Version), m.StateHash, m.Node})
			}
			table(w, rows)
			s.say("%s answered", count(len(got.Members), "member"))
		})
	})
}
