package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/audit"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func (s *session) log() *cobra.Command {
	var follow bool
	var from uint64
	var where source
	c := &cobra.Command{
		Use:   "log CONV[/MEMBER][@VERSION] [flags]",
		Short: "Print the events of a conversation",
		Long: `Log prints every event in a sentence, or with --json as the documented line. With a
member only what that member did; with a version only what led there.

Hashes and order are checked on the way. It reads from a node; from NATS itself with
an auditor's credentials, or as --auditor; or from a file of rollcall export.`,
		Example: `  rollcall log harbor
  rollcall log harbor/Backend --from 40
  rollcall log harbor --follow --json
  rollcall log harbor --export harbor.jsonl`,
		GroupID: groupWatch, Args: args(1, 1), ValidArgsFunction: s.completeConversation,
	}
	c.Flags().BoolVar(&follow, "follow", false, "go on with what happens from now on")
	c.Flags().Uint64Var(&from, "from", 1, "first version to print")
	where.flags(c)
	return s.command(c, func(ctx context.Context, args []string) error {
		r, err := parseRef(args[0])
		if err != nil {
			return err
		}
		if follow && r.version > 0 {
			return domain.Refuse("usage", "the past does not go on", "--follow was given with a version", "leave one of them out")
		}
		if follow && (where.export != "" || s.reader(where) != "") {
			return domain.Refuse("usage", "what an auditor or an export gives has an end", "--follow goes on with what happens", "follow on a node, with a client's credentials")
		}
		src, err := s.open(ctx, where)
		if err != nil {
			return err
		}
		return errors.Join(s.printLog(ctx, src, where.tenant(), r, from, follow), src.Close())
	})
}

func (s *session) printLog(ctx context.Context, src audit.Source, tenant string, r ref, from uint64, follow bool) error {
	key, err := src.Find(ctx, tenant, r.conversation)
	if err != nil {
		return err
	}
	p := &logPrinter{s: s, conversation: key.Conversation, from: from, teller: newTeller()}
	if r.member != "" {
		if p.member, err = memberName(ctx, src, key, r.member); err != nil {
			return err
		}
	}
	if follow {
		return s.client.Follow(ctx, key.Conversation, 1, func(u api.Update) error {
			if u.Commit != nil {
				p.print(u.Commit)
			}
			return nil
		})
	}
	return readLog(ctx, src, key, r.version, p.print)
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
