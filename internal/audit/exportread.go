package audit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Export is an export, opened: it was read once from end to end, so its parts
// are there and in order. It keeps only where they are. What a commit holds is
// not looked at: like every [Source], it leaves hashes to its reader.
type Export struct {
	Head Head

	file      io.ReaderAt
	directory Directory
	shelves   map[domain.Key]*shelf
	close     func() error
}

// shelf is where a conversation's lines are.
type shelf struct {
	commits []place
	bodies  map[string][]place
	missing map[string]string
	// seq of the last commit; ended is set when the last line tells of it.
	seq   uint64
	ended bool
}

// place is a line in the file.
type place struct {
	offset int64
	length int
	line   int
}

// OpenExport reads an export through. An export that was cut off, changed or
// put into another order is a *domain.Refusal that says where. close, which may
// be nil, is what Close calls.
func OpenExport(r io.ReaderAt, size int64, close func() error) (*Export, error) {
	x := &Export{file: r, shelves: map[domain.Key]*shelf{}, close: close}
	in := bufio.NewReaderSize(io.NewSectionReader(r, 0, size), 64<<10)
	s := scan{Export: x, in: in}
	if err := s.run(); err != nil {
		return nil, err
	}
	return x, nil
}

func broken(line int, format string, args ...any) error {
	return domain.Refuse("export-broken", "the export cannot be trusted", fmt.Sprintf("line %d: ", line)+fmt.Sprintf(format, args...),
		"export again, or get another copy; rollcall verify on the log itself says more")
}

// Find implements Source.
func (x *Export) Find(_ context.Context, tenant, ref string) (domain.Key, error) {
	return x.directory.Find(tenant, ref)
}

// Conversations implements Source.
func (x *Export) Conversations(_ context.Context, tenant string) ([]domain.Key, error) {
	return x.directory.Keys(tenant), nil
}

// Read implements Source.
func (x *Export) Read(ctx context.Context, key domain.Key, fn func(Entry) error) error {
	shelf := x.shelves[key]
	if shelf == nil {
		return nil
	}
	for _, p := range shelf.commits {
		if err := ctx.Err(); err != nil {
			return err
		}
		l, err := x.line(p)
		if err != nil {
			return err
		}
		if err := fn(Entry{Key: key, Seq: l.Seq, Header: l.Header, Sealed: l.Data}); err != nil {
			return err
		}
	}
	return nil
}

func (x *Export) line(p place) (l line, err error) {
	raw := make([]byte, p.length)
	if _, err := x.file.ReadAt(raw, p.offset); err != nil && !errors.Is(err, io.EOF) {
		return l, fmt.Errorf("read line %d of the export: %w", p.line, err)
	}
	if err := json.Unmarshal(raw, &l); err != nil {
		return l, broken(p.line, "it was changed while it was read")
	}
	return l, nil
}

// Body implements Source.
func (x *Export) Body(_ context.Context, key domain.Key, b *rollcallv1.Blob) ([]byte, error) {
	what := "stored text " + b.GetSha256() + " of " + key.String()
	shelf := x.shelves[key]
	if shelf == nil || len(shelf.bodies[b.GetSha256()]) == 0 {
		why := "the export does not hold it"
		if shelf != nil && shelf.missing[b.GetSha256()] != "" {
			why = "it was missing when the export was written: " + short(shelf.missing[b.GetSha256()])
		}
		return nil, domain.Refuse("blob-not-found", what+" is missing", why, "export again from where it is")
	}
	var data bytes.Buffer
	for _, p := range shelf.bodies[b.GetSha256()] {
		l, err := x.line(p)
		if err != nil {
			return nil, err
		}
		data.Write(l.Data)
	}
	if sum := sha256.Sum256(data.Bytes()); hex.EncodeToString(sum[:]) != b.GetSha256() || uint64(data.Len()) != b.GetSize() {
		return nil, broken(shelf.bodies[b.GetSha256()][0].line, "%s was changed", what)
	}
	return data.Bytes(), nil
}

// Close implements Source.
func (x *Export) Close() error {
	if x.close == nil {
		return nil
	}
	return x.close()
}
