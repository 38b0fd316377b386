package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/internal/api"
)

func (s *session) dissolve() *cobra.Command {
	return s.write(&cobra.Command{
		Use:   "dissolve CONV",
		Short: "End a team: its members shut down, the Lead stays",
		Long: `Dissolve ends the active team of a conversation. Its unfinished tasks are cancelled and
mail to its members is refused from then on. Files and history stay.`,
		Example: `  rollcall dissolve harbor`,
	}, "dissolved", aboutAll(func(ctx context.Context, c *api.Client, conversation string) (api.AnswerBody, error) {
		return c.Dissolve(ctx, conversation)
	}))
}
