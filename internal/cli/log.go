package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func (s *session) log() *cobra.Command {
	var follow bool
	var from uint64
	c := &cobra.Command{
		Use:   "log CONV[/MEMBER][@VERSION] [flags]",
		Short: "Print the events of a conversation",
		Long: `Log prints every event in a sentence, or with --json as the documented line. With a
member only what that member did; with a version only what led there.`,
		Example: `  rollcall log harbor
  rollcall log harbor/Backend --from 40
  rollcall log harbor --follow --json`,
		GroupID: groupWatch, Args: args(1, 1), ValidArgsFunction: s.completeConversation,
	}
	c.Flags().BoolVar(&follow, "follow", false, "go on with what happens from now on")
	c.Flags().Uint64Var(&from, "from", 1, "first version to print")
	return s.command(c, func(ctx context.Context, args []string) error {
		r, err := parseRef(args[0])
		if err != nil {
			return err
		}
		if follow && r.version > 0 {
			return domain.Refuse("usage", "the past does not go on", "--follow was given with a version", "leave one of them out")
		}
		c, err := s.connect()
		if err != nil {
			return err
		}
		member := ""
		if r.member != "" {
			whole := r.read()
			whole.At = 0 // names are for ever: no need to make the past for one
			d, err := c.Show(ctx, whole)
			if err != nil {
				return err
			}
			member = d.Members[0].Name
		}
		p := &logPrinter{s: s, member: member, from: from, teller: newTeller()}
		if follow {
			return c.Follow(ctx, r.conversation, 1, func(u api.Update) error {
				if u.Commit != nil {
					p.print(u.Commit)
				}
				return nil
			})
		}
		_, err = readLog(ctx, c, r, func(commit *rollcallv1.Commit, _ []byte) { p.print(commit) })
		return err
	})
}

// logPrinter prints commits of a log, which it must see from the first.
type logPrinter struct {
	s            *session
	conversation string
	// member is the display name of the only one to tell of; empty: of all.
	member string
	from   uint64
	teller *teller
}

func (p *logPrinter) print(c *rollcallv1.Commit) {
	if o := c.GetEvents()[0].GetConversationOpened(); o != nil {
		p.conversation = o.GetConversation()
	}
	told := p.teller.hear(c)
	if c.GetVersion() < p.from {
		return
	}
	at := c.GetTime().AsTime().Local().Format("15:04:05.000")
	for i, line := range api.Render(p.conversation, c, p.teller.names.Of) {
		if p.member != "" && line.Member != p.member {
			continue
		}
		if p.s.flags.json {
			p.s.line(p.s.Out, line)
			continue
		}
		fmt.Fprintf(p.s.Out, "%5d  %s  %s\n", c.GetVersion(), at, told[i])
	}
}
