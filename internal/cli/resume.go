package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/internal/api"
)

func (s *session) resume() *cobra.Command {
	return s.write(&cobra.Command{
		Use:     "resume CONV",
		Short:   "Go on after a pause",
		Example: `  rollcall resume harbor`,
	}, "resumed", aboutAll(func(ctx context.Context, c *api.Client, conversation string) (api.AnswerBody, error) {
		return c.Resume(ctx, conversation)
	}))
}
