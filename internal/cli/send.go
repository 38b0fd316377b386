package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func (s *session) send() *cobra.Command {
	var steer, queue, wait bool
	var replyTo string
	c := &cobra.Command{
		Use:   `send CONV[/MEMBER] "TEXT" [flags]`,
		Short: "Write to the Lead or to a member",
		Long: `Send delivers your words. The Lead is interrupted by them, any other member reads them
at its next step; --steer and --queue choose otherwise. TEXT "-" is read from stdin.

Words to the Lead that begin with @ and the exact name of a member, such as
"@Backend: use blue", are that member's mail. Send says to whom they went.`,
		Example: `  rollcall send harbor "use the blue palette"
  rollcall send harbor/Backend "the field is called display_name"
  rollcall send harbor "and then write a summary" --queue --wait`,
		GroupID: groupAct, Args: args(2, 2), ValidArgsFunction: s.completeConversation,
	}
	c.Flags().BoolVar(&steer, "steer", false, "read at the next step of the open run")
	c.Flags().BoolVar(&queue, "queue", false, "read by the run after this one")
	c.Flags().BoolVar(&wait, "wait", false, "follow until nothing is due, as watch does")
	c.Flags().StringVar(&replyTo, "reply-to", "", "id of the message that this answers")
	return s.command(c, func(ctx context.Context, args []string) error {
		if steer && queue {
			return domain.Refuse("usage", "a message is read at one time", "--steer and --queue were both given", "leave one of them out")
		}
		r, err := parseRef(args[0])
		if err == nil {
			err = r.now()
		}
		if err != nil {
			return err
		}
		text, err := s.text(args[1])
		if err != nil {
			return err
		}
		p := &rollcallv1.PostMessage{
			To: r.member, Kind: rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, Body: &rollcallv1.Body{Text: text}, ReplyTo: replyTo,
		}
		switch {
		case steer:
			p.Mode = rollcallv1.MailMode_MAIL_MODE_STEER
		case queue:
			p.Mode = rollcallv1.MailMode_MAIL_MODE_QUEUE
		}
		client, err := s.connect()
		if err != nil {
			return err
		}
		a, err := client.Send(ctx, r.conversation, p)
		if err != nil {
			return err
		}
		if !wait {
			what := "delivered"
			if a.To = recipient(ctx, client, a); a.To != "" {
				what += " to " + oneLine(a.To, 80)
			}
			return s.answer(a, what)
		}
		return s.watchFrom(ctx, client, a.Conversation, max(a.Version, 1)-1, nil)
	})
}

// text is what the user wrote, or stdin for "-".
func (s *session) text(given string) (string, error) {
	if given == "-" {
		data, err := io.ReadAll(io.LimitReader(s.In, api.MaxText+1))
		if err != nil {
			return "", fmt.Errorf("read the text from stdin: %w", err)
		}
		given = strings.TrimRight(string(data), "\n")
	}
	if strings.TrimSpace(given) == "" {
		return "", domain.Refuse("text-empty", "the text is empty", "", "say something")
	}
	return given, api.CheckText("the text", given, api.MaxText)
}

// recipient is the display name of whom a message went to: the words decide,
// and not only the one they were sent to. Empty: it cannot be said now.
func recipient(ctx context.Context, c *api.Client, a api.AnswerBody) string {
	if a.Accepted || a.Subject == "" {
		return ""
	}
	mail, err := c.Mail(ctx, api.MailRequest{ReadRequest: api.ReadRequest{Conversation: a.Conversation, AtLeast: a.Version}})
	if err != nil {
		return ""
	}
	for _, m := range mail.Messages {
		if m.ID == a.Subject {
			return m.To
		}
	}
	return ""
}
