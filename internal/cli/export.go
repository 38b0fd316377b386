package cli

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/audit"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func (s *session) export() *cobra.Command {
	var where source
	var output string
	c := &cobra.Command{
		Use:   "export [CONV] [flags]",
		Short: "Write a log into a file that can be checked anywhere",
		Long: `Export writes the log of a conversation, or of all, as it is stored, with all that is
needed to check it: sealed commits byte for byte with their sequence, subject and
headers, and the large texts and files that they name. rollcall log, replay and verify
read it with --export, where there is neither a node nor NATS. The format is JSON
lines; docs/audit.md describes it.

What is damaged or missing is exported as far as it goes, is said, and fails (exit 1).`,
		Example: `  rollcall export harbor --output harbor.jsonl
  rollcall export | gzip > all.jsonl.gz
  rollcall export harbor -o harbor.jsonl && rollcall verify --export harbor.jsonl`,
		GroupID: groupTime, Args: args(0, 1), ValidArgsFunction: s.completeConversation,
	}
	where.auditorFlag(c)
	c.Flags().StringVarP(&output, "output", "o", "", "file to write; without it, stdout")
	return s.command(c, func(ctx context.Context, names []string) error {
		if s.flags.json && output == "" {
			return domain.Refuse("usage", "one stdout cannot hold two documents", "with --json the summary goes there, without --output the export does", "name a file with --output")
		}
		src, err := s.open(ctx, where)
		if err != nil {
			return err
		}
		if n, ok := src.(*nodeSource); ok {
			n.whole = true
		}
		doc, err := s.exportTo(ctx, src, where.tenant(), names, output)
		if err = errors.Join(err, src.Close()); err != nil {
			return err
		}
		for _, p := range doc.Problems {
			s.say("✗ %s", oneLine(p, 300))
		}
		if s.flags.json {
			s.line(s.Out, doc)
		} else {
			s.say("exported %s, %s, %s to %s", count(len(doc.Conversations), "conversation"), count(doc.Commits, "commit"), count(doc.Bodies, "large body"), printable(orStdout(output)))
		}
		if len(doc.Problems) > 0 {
			return exit(api.ExitFailed)
		}
		return nil
	})
}

func orStdout(output string) string {
	if output == "" {
		return "stdout"
	}
	return output
}

// exported is the document of export.
type exported struct {
	Output        string        `json:"output"`
	Conversations []exportedLog `json:"conversations"`
	Commits       int           `json:"commits"`
	// Bodies are the large texts and files beside the commits.
	Bodies int `json:"bodies"`
	// Problems say what is missing or damaged; empty when all is there.
	Problems []string `json:"problems"`
}

// exportedLog is one conversation in an export.
type exportedLog struct {
	Conversation string `json:"conversation"`
	Tenant       string `json:"tenant"`
	// Version and Hash of the last commit that was exported. Who keeps them apart
	// from the file can tell later that nothing was cut off or made anew.
	Version uint64 `json:"version"`
	Hash    string `json:"hash"`
}

// exportTo writes the file whole or not at all.
func (s *session) exportTo(ctx context.Context, src audit.Source, tenant string, names []string, output string) (exported, error) {
	keys, err := toVerify(ctx, src, tenant, names)
	if err != nil {
		return exported{}, err
	}
	if output == "" {
		return s.exportLogs(ctx, src, keys, s.Out)
	}
	path := s.path(output)
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // made with mode 0600
	if err != nil {
		return exported{}, exportUnwritable(output, err)
	}
	doc, err := s.exportLogs(ctx, src, keys, f)
	if err == nil {
		if err = errors.Join(f.Sync(), f.Close()); err == nil {
			err = os.Rename(f.Name(), path)
		}
		if err != nil {
			err = exportUnwritable(output, err)
		}
	}
	if err != nil {
		_, _ = f.Close(), os.Remove(f.Name()) // the export failed already
	}
	doc.Output = output
	return doc, err
}

func exportUnwritable(output string, err error) error {
	return domain.Refuse("output-unwritable", "the export cannot be written to "+printable(output), err.Error(), "name a file in a directory that can be written")
}

func (s *session) exportLogs(ctx context.Context, src audit.Source, keys []domain.Key, to io.Writer) (exported, error) {
	out := bufio.NewWriter(to)
	w, err := audit.NewWriter(out, "rollcall "+s.Version, time.Now())
	e := exporter{src: src, w: w, doc: exported{Conversations: []exportedLog{}, Problems: []string{}}}
	for _, key := range keys {
		if err == nil {
			err = e.conversation(ctx, key)
		}
	}
	if err == nil {
		err = errors.Join(w.Close(), out.Flush())
	}
	return e.doc, err
}

type exporter struct {
	src audit.Source
	w   *audit.Writer
	doc exported
}

func (x *exporter) problem(key domain.Key, err error) {
	r := api.AsRefusal(err)
	x.doc.Problems = append(x.doc.Problems, fmt.Sprintf("%s: %s: %s [%s]", key.Conversation, r.What, r.Why, r.Code))
}

func (x *exporter) conversation(ctx context.Context, key domain.Key) error {
	log, had := exportedLog{Conversation: key.Conversation, Tenant: key.Tenant}, map[string]bool{}
	var hash []byte
	sound := true
	err := x.src.Read(ctx, key, func(e audit.Entry) error {
		c, err := domain.Unseal(e.Sealed)
		if err == nil {
			err = domain.CheckNext(log.Version, hash, c)
		}
		switch {
		case err == nil && sound:
			log.Version, hash = c.GetVersion(), c.GetHash()
		case sound: // it is put down as it is: a damaged log is what one wants to look into
			sound = false
			x.problem(key, api.BrokenLog(key.Conversation, log.Version+1, err))
		}
		x.doc.Commits++
		if err := x.w.Commit(e); err != nil {
			return err
		}
		for _, b := range audit.Blobs(c) {
			if !had[b.GetSha256()] {
				had[b.GetSha256()] = true
				if err := x.body(ctx, key, b); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if refusesDamage(err) {
		x.problem(key, err)
		err = nil
	}
	log.Hash = hex.EncodeToString(hash)
	x.doc.Conversations = append(x.doc.Conversations, log)
	return err
}

func (x *exporter) body(ctx context.Context, key domain.Key, b *rollcallv1.Blob) error {
	data, err := x.src.Body(ctx, key, b)
	if err == nil {
		x.doc.Bodies++
		return x.w.Body(key, b, data)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	x.problem(key, err)
	return x.w.Missing(key, b, err.Error())
}
