package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/audit"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// auditorSource reads the log's stream with an auditor's rights. The stream
// comes in one order, all conversations mixed: to find one it is read once,
// keeping only where each begins and ends, and to give all it is copied to a
// file, for the time of the command.
type auditorSource struct {
	log *eventstore.AuditLog
	// nodes gives bodies to an auditor of one tenant, who may not read the store
	// of all.
	nodes *api.Client
	done  func()

	directory *audit.Directory
	spans     map[domain.Key]span
	copied    *audit.Export
}

// span is where in the stream a conversation lies.
type span struct{ first, last uint64 }

var _ audit.Source = (*auditorSource)(nil)

// survey reads the stream from end to end, once; each, if not nil, sees it.
func (a *auditorSource) survey(ctx context.Context, each func(audit.Entry) error) error {
	directory, spans := &audit.Directory{}, map[domain.Key]span{}
	err := a.log.Read(ctx, 1, 0, func(r eventstore.Recorded) error {
		at := spans[r.Key]
		if directory.Add(r.Key, r.Raw) {
			at.first = r.Seq
		}
		at.last = r.Seq
		spans[r.Key] = at
		if each == nil {
			return nil
		}
		return each(entryOf(r))
	})
	if err == nil {
		a.directory, a.spans = directory, spans
	}
	return err
}

func entryOf(r eventstore.Recorded) audit.Entry {
	return audit.Entry{Key: r.Key, Seq: r.Seq, Header: r.Header, Sealed: r.Raw}
}

// Find implements audit.Source.
func (a *auditorSource) Find(ctx context.Context, tenant, ref string) (domain.Key, error) {
	if a.directory == nil {
		if err := a.survey(ctx, nil); err != nil {
			return domain.Key{}, err
		}
	}
	return a.directory.Find(tenant, ref)
}

// Conversations implements audit.Source.
func (a *auditorSource) Conversations(ctx context.Context, tenant string) ([]domain.Key, error) {
	if a.copied == nil {
		if err := a.copy(ctx); err != nil {
			return nil, err
		}
	}
	return a.copied.Conversations(ctx, tenant)
}

// copy puts the log into a file that goes when the command ends.
func (a *auditorSource) copy(ctx context.Context) (err error) {
	f, err := os.CreateTemp("", "rollcall-audit-*")
	if err != nil {
		return fmt.Errorf("copy the log: %w", err)
	}
	gone := func() error { return errors.Join(f.Close(), os.Remove(f.Name())) }
	defer func() {
		if err != nil {
			err = errors.Join(err, gone())
		}
	}()
	out := bufio.NewWriter(f)
	w, err := audit.NewWriter(out, "", time.Time{})
	if err == nil {
		err = a.survey(ctx, w.Commit)
	}
	if err == nil {
		err = errors.Join(w.Close(), out.Flush())
	}
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("copy the log: %w", err)
	}
	a.copied, err = audit.OpenExport(f, info.Size(), gone)
	return err
}

// Read implements audit.Source.
func (a *auditorSource) Read(ctx context.Context, key domain.Key, fn func(audit.Entry) error) error {
	if a.copied != nil {
		return a.copied.Read(ctx, key, fn)
	}
	at := a.spans[key]
	return a.log.Read(ctx, at.first, at.last, func(r eventstore.Recorded) error {
		if r.Key != key {
			return nil
		}
		return fn(entryOf(r))
	})
}

// Body implements audit.Source.
func (a *auditorSource) Body(ctx context.Context, key domain.Key, b *rollcallv1.Blob) ([]byte, error) {
	if a.log.Tenant() == "" {
		return a.log.Body(ctx, key, b)
	}
	return a.nodes.Blob(ctx, key.Conversation, api.BlobRef{SHA256: b.GetSha256(), Size: b.GetSize()})
}

// Close implements audit.Source.
func (a *auditorSource) Close() (err error) {
	if a.copied != nil {
		err = a.copied.Close()
	}
	a.log.Close()
	a.done()
	return err
}
