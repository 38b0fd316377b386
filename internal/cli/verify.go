package cli

import (
	"context"
	"errors"
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
	var where source
	c := &cobra.Command{
		Use:   "verify [CONV] [flags]",
		Short: "Check a log: hashes, runs and their reasons, requests",
		Long: `Verify reads the raw log of a conversation, or of all, checks every hash and the order
of commits, folds them anew, and tells for every run which messages justify it and
how many model calls it made. The bytes of each request are computed again and
compared with what was recorded. No model is called. It fails (exit 1) when anything
is not as it must be.

It reads from a node; from NATS itself with an auditor's credentials, or as --auditor;
or from a file of rollcall export. Then "all" is all of every tenant that these hold,
and --tenant limits it.`,
		Example: `  rollcall verify harbor
  rollcall verify
  rollcall verify harbor --model-record calls.jsonl --json
  rollcall verify --export harbor.jsonl`,
		GroupID: groupTime, Args: args(0, 1), ValidArgsFunction: s.completeConversation,
	}
	c.Flags().StringVar(&record, "model-record", "", "record file of a scripted model server, to compare with")
	where.flags(c)
	return s.command(c, func(ctx context.Context, args []string) error {
		var requests []scripted.Request
		if record != "" {
			var err error
			if requests, err = scripted.ReadRecord(s.path(record)); err != nil {
				return domain.Refuse("input-unreadable", "the record "+printable(record)+" cannot be read", err.Error(), "name the file that the scripted model server wrote")
			}
		}
		src, err := s.open(ctx, where)
		if err != nil {
			return err
		}
		out, err := s.verifyAll(ctx, src, where.tenant(), args, record != "", requests)
		if err = errors.Join(err, src.Close()); err != nil {
			return err
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

// verifyAll checks the named conversation, or all.
func (s *session) verifyAll(ctx context.Context, src audit.Source, tenant string, names []string, compare bool, record []scripted.Request) (verified, error) {
	out := verified{Conversations: []*audit.Report{}}
	keys, err := toVerify(ctx, src, tenant, names)
	if err != nil {
		return out, err
	}
	for _, key := range keys {
		report, err := verifyOne(ctx, src, key)
		if err != nil {
			return out, err
		}
		if compare {
			report.Compare(record)
		}
		out.Conversations = append(out.Conversations, report)
		out.Problems += len(report.Problems)
	}
	return out, nil
}

func toVerify(ctx context.Context, src audit.Source, tenant string, names []string) ([]domain.Key, error) {
	if len(names) == 0 {
		return src.Conversations(ctx, tenant)
	}
	r, err := parseRef(names[0])
	if err == nil {
		err = r.whole()
	}
	if err != nil {
		return nil, err
	}
	key, err := src.Find(ctx, tenant, r.conversation)
	return []domain.Key{key}, err
}

func verifyOne(ctx context.Context, src audit.Source, key domain.Key) (*audit.Report, error) {
	var sealed [][]byte
	err := src.Read(ctx, key, func(e audit.Entry) error {
		sealed = append(sealed, e.Sealed)
		return nil
	})
	if err != nil && !refusesDamage(err) {
		return nil, err
	}
	report := audit.Check(key, sealed, func(b *rollcallv1.Blob) ([]byte, error) { return src.Body(ctx, key, b) })
	if err != nil {
		broken := api.AsRefusal(err)
		report.Problems = append(report.Problems, audit.Problem{Version: uint64(len(sealed)) + 1, Code: broken.Code, What: broken.What + ": " + broken.Why})
	}
	return report, nil
}

// refusesDamage reports whether a node refuses to read on because of damage.
func refusesDamage(err error) bool {
	return err != nil && slices.Contains([]string{"log-broken", "log-tail-lost"}, api.AsRefusal(err).Code)
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
			p.What = oneLine(p.What, 280)
			fmt.Fprintf(w, "  ✗ %s\n", p)
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
