package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/internal/api"
)

// write makes a command that sends one command about a conversation and shows
// what became of it.
func (s *session) write(c *cobra.Command, done string, do func(context.Context, *api.Client, ref) (api.AnswerBody, error)) *cobra.Command {
	c.GroupID, c.Args, c.ValidArgsFunction = groupAct, args(1, 1), s.completeConversation
	return s.command(c, func(ctx context.Context, args []string) error {
		r, err := parseRef(args[0])
		if err == nil {
			err = r.now()
		}
		if err != nil {
			return err
		}
		client, err := s.connect()
		if err != nil {
			return err
		}
		a, err := do(ctx, client, r)
		if err != nil {
			return err
		}
		return s.answer(a, done)
	})
}

// aboutAll refuses a member where the command is about the whole conversation.
func aboutAll(do func(context.Context, *api.Client, string) (api.AnswerBody, error)) func(context.Context, *api.Client, ref) (api.AnswerBody, error) {
	return func(ctx context.Context, c *api.Client, r ref) (api.AnswerBody, error) {
		if err := r.whole(); err != nil {
			return api.AnswerBody{}, err
		}
		return do(ctx, c, r.conversation)
	}
}
