package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/internal/api"
)

func (s *session) interrupt() *cobra.Command {
	return s.write(&cobra.Command{
		Use:   "interrupt CONV[/MEMBER]",
		Short: "Abort the open run of the Lead or of a member",
		Long: `Interrupt aborts a member's model call and tools. What it had read and not answered is
unread again; it rests until new mail or rollcall retry.`,
		Example: `  rollcall interrupt harbor
  rollcall interrupt harbor/Backend`,
	}, "interrupted", func(ctx context.Context, c *api.Client, r ref) (api.AnswerBody, error) {
		return c.Interrupt(ctx, r.conversation, r.member)
	})
}
