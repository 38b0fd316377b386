package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/audit"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func (s *session) verify() *cobra.Command {
	var record string
	c := &cobra.Command{
		Use:   "verify [CONV] [flags]",
		Short: "Check a log: hashes, runs and their reasons, requests",
		Long: `Verify reads the raw log of a conversation, or of all, checks every hash and the order
of commits, folds them anew, and tells for every run which messages justify it and
how many model calls it made. The bytes of each request are computed again and
compared with what was recorded. No model is called. It fails (exit 1) when anything
is not as it must be.`,
		Example: `  rollcall verify harbor
  rollcall verify
  rollcall verify harbor --model-record calls.jsonl --json`,
		GroupID: groupTime, Args: args(0, 1), ValidArgsFunction: s.completeConversation,
	}
	c.Flags().StringVar(&record, "model-record", "", "record file of a scripted model server, to compare with")
	return s.command(c, func(ctx context.Context, args []string) error {
		var requests []scripted.Request
		if record != "" {
			var err error
			if requests, err = scripted.ReadRecord(s.path(record)); err != nil {
				return domain.Refuse("input-unreadable", "the record "+printable(record)+" cannot be read", err.Error(), "name the file that the scripted model server wrote")
			}
		}
		client, err := s.connect()
		if err != nil {
			return err
		}
		names := args
		if len(names) == 0 {
			all, err := client.List(ctx)
			if err != nil {
				return err
			}
			for _, x := range all.Conversations {
				names = append(names, x.ID)
			}
		}
		out := verified{Conversations: []*audit.Report{}}
		for _, name := range names {
			report, err := s.verifyOne(ctx, client, name)
			if err != nil {
				return err
			}
			if record != "" {
				report.Compare(requests)
			}
			out.Conversations = append(out.Conversations, report)
			out.Problems += len(report.Problems)
		}
		if err := s.print(out, func(w io.Writer) { s.showVerified(w, out) }); err != nil {
			return err
		}
		if out.Problems > 0 {
			return exit(api.ExitFailed)
		}
		return nil
	})
}

// verified is the document of verify.
type verified struct {
	Conversations []*audit.Report `json:"conversations"`
	// Problems of all of them.
	Problems int `json:"problems"`
}

func (s *session) verifyOne(ctx context.Context, c *api.Client, name string) (*audit.Report, error) {
	r, err := parseRef(name)
	if err == nil {
		err = r.whole()
	}
	if err != nil {
		return nil, err
	}
	var sealed [][]byte
	key, err := c.Log(ctx, r.conversation, 1, func(raw []byte) error {
		sealed = append(sealed, raw)
		return nil
	})
	if err != nil && !slices.Contains([]string{"log-broken", "log-tail-lost"}, api.AsRefusal(err).Code) {
		return nil, err
	}
	if key.Conversation == "" {
		key = domain.Key{Tenant: c.Tenant(), Conversation: r.conversation}
	}
	report := audit.Check(key, sealed, func(b *rollcallv1.Blob) ([]byte, error) {
		return c.Blob(ctx, key.Conversation, api.BlobRef{SHA256: b.GetSha256(), Size: b.GetSize()})
	})
	if err != nil { // the node itself refuses to read on
		broken := api.AsRefusal(err)
		report.Problems = append(report.Problems, audit.Problem{Version: uint64(len(sealed)) + 1, Code: broken.Code, What: broken.What + ": " + broken.Why})
	}
	return report, nil
}

func (s *session) showVerified(w io.Writer, v verified) {
	for _, r := range v.Conversations {
		fmt.Fprintf(w, "%s  %s\n", orDash(oneLine(r.Name, 80)), r.Conversation)
		fmt.Fprintf(w, "  %s, %s, chain %.12s, state %.12s\n", count(r.Version, "version"), count(r.Events, "event"), r.Hash, r.StateHash)
		fmt.Fprintf(w, "  %s computed again, byte for byte\n", count(r.Requests, "request"))
		if r.Recorded != nil {
			fmt.Fprintf(w, "  %s in the model server's own record\n", count(*r.Recorded, "call"))
		}
		for _, m := range r.Members {
			fmt.Fprintf(w, "  %s %s, %s: %d answered, %d unanswered; %s unknown\n",
				pad(oneLine(m.Name, 24), 12), count(len(m.Runs), "run"), count(m.Calls, "model call"), m.Answered, m.Unanswered, count(m.Unknown, "tool outcome"))
			for _, run := range m.Runs {
				fmt.Fprintf(w, "    %-6s woken by %s%s · %s%s · %s\n", run.ID, strings.Join(run.Started, ", "), read(run.Read), count(run.Calls, "call"), resumed(run.Resumed), run.Finish)
			}
		}
		for _, p := range r.Problems {
			fmt.Fprintf(w, "  ✗ %s\n", oneLine(p.String(), 300))
		}
		if len(r.Problems) == 0 {
			fmt.Fprintln(w, "  ✓ everything holds")
		}
	}
	if v.Problems > 0 {
		s.say("%s", count(v.Problems, "problem"))
	}
}

func read(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return ", read " + strings.Join(ids, ", ")
}

func resumed(n int) string {
	if n == 0 {
		return ""
	}
	return " · resumed " + count(n, "time")
}
