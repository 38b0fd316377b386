package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/internal/api"
)

func (s *session) watch() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "watch CONV [flags]",
		Short: "Follow a conversation until nothing is due",
		Long: `Watch comes back to a conversation: it shows the newest of what the team did, then what it does, and
ends as run does, with the Lead's answer on stdout and the same exit codes.`,
		Example: `  rollcall watch harbor
  rollcall watch harbor --output ./out
  rollcall watch harbor --json`,
		GroupID: groupWatch, Args: args(1, 1), ValidArgsFunction: s.completeConversation,
	}
	c.Flags().StringVar(&output, "output", "", "directory that gets the team's files at the end, as MEMBER/PATH")
	return s.command(c, func(ctx context.Context, args []string) error {
		r, err := parseRef(args[0])
		if err == nil {
			err = r.whole()
		}
		if err != nil {
			return err
		}
		out, err := openOutput(s.path(output))
		if err != nil {
			return err
		}
		defer out.close()
		c, err := s.connect()
		if err != nil {
			return err
		}
		return s.watchFrom(ctx, c, r.conversation, 0, out)
	})
}

// watchFrom follows a conversation to its end and tells what happens after a
// version; 0 is whatever there is now.
func (s *session) watchFrom(ctx context.Context, c *api.Client, conversation string, version uint64, out *output) error {
	f := s.follow(c, settled)
	if version == 0 && !s.flags.json {
		d, err := c.Show(ctx, ref{conversation: conversation}.read())
		if err != nil {
			return err
		}
		// The last few events say where it stands.
		version = max(d.Version, 5) - 5
	}
	f.shown = version
	return s.finish(ctx, f, f.run(ctx, conversation), conversation, out)
}
