package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/internal/api"
)

func (s *session) pause() *cobra.Command {
	return s.write(&cobra.Command{
		Use:   "pause CONV",
		Short: "Let no new step of a team start",
		Long: `Pause lets calls that are under way end and starts no new step. Mail is kept. It holds
until rollcall resume, over restarts too.`,
		Example: `  rollcall pause harbor`,
	}, "paused", aboutAll(func(ctx context.Context, c *api.Client, conversation string) (api.AnswerBody, error) {
		return c.Pause(ctx, conversation)
	}))
}
