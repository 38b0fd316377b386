package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/internal/api"
)

func (s *session) mail() *cobra.Command {
	var unread bool
	var limit int
	c := &cobra.Command{
		Use:   "mail CONV[/MEMBER][@VERSION] [flags]",
		Short: "Read the mail of a conversation or of a member",
		Long: `Mail prints the newest messages, oldest first. The member "user" is you: what the team
wrote to the operator.`,
		Example: `  rollcall mail harbor
  rollcall mail harbor/user
  rollcall mail harbor/Backend --unread --json`,
		GroupID: groupWatch, Args: args(1, 1), ValidArgsFunction: s.completeConversation,
	}
	c.Flags().BoolVar(&unread, "unread", false, "only what no run has read")
	c.Flags().IntVar(&limit, "limit", 50, "most messages to print")
	return s.command(c, func(ctx context.Context, args []string) error {
		r, err := parseRef(args[0])
		if err != nil {
			return err
		}
		c, err := s.connect()
		if err != nil {
			return err
		}
		got, err := c.Mail(ctx, api.MailRequest{ReadRequest: r.read(), Limit: limit, Unread: unread})
		if err != nil {
			return err
		}
		var texts []string
		for _, m := range got.Messages {
			text := ""
			if !s.flags.json {
				if text, err = c.Text(ctx, got.Conversation, m.Text); err != nil {
					return err
				}
			}
			texts = append(texts, text)
		}
		return s.print(got, func(w io.Writer) {
			for i, m := range got.Messages {
				head := fmt.Sprintf("%s  %s → %s  %s  %s", m.ID, oneLine(m.From, 40), oneLine(m.To, 40), m.Kind, m.Time.Local().Format(time.DateTime))
				if m.ReplyTo != "" {
					head += "  reply to " + m.ReplyTo
				}
				fmt.Fprintf(w, "%s  (%s)\n", head, m.State)
				indentLines(w, "  ", texts[i])
			}
			if len(got.Messages) == 0 {
				s.say("no mail")
			}
		})
	})
}
