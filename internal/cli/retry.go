package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/internal/api"
)

func (s *session) retry() *cobra.Command {
	var budget string
	c := &cobra.Command{
		Use:   "retry CONV[/MEMBER] [flags]",
		Short: "Go on after a failure, an interruption or a used-up budget",
		Long: `Retry makes the held mail of a member, or of every held member, due again. With
--budget it sets the conversation's limit first. It also takes up again a conversation
that a node had set aside.`,
		Example: `  rollcall retry harbor
  rollcall retry harbor/Backend
  rollcall retry harbor --budget 1000000t`,
	}
	c.Flags().StringVar(&budget, "budget", "", "new limit of the conversation, such as 5.00 or 1000000t")
	return s.write(c, "due again", func(ctx context.Context, client *api.Client, r ref) (api.AnswerBody, error) {
		if err := s.sameSettings(ctx, client); err != nil {
			return api.AnswerBody{}, err
		}
		if budget == "" {
			return client.Retry(ctx, r.conversation, r.member)
		}
		b, err := parseBudget(budget)
		if err != nil {
			return api.AnswerBody{}, err
		}
		raised, err := client.RaiseBudget(ctx, r.conversation, b)
		if err != nil {
			return raised, err
		}
		a, err := client.Retry(ctx, r.conversation, r.member)
		if err != nil && api.AsRefusal(err).Code == "not-held" {
			return raised, nil // the new budget alone let them go on
		}
		return a, err
	})
}
