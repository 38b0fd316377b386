package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Format is the version of the export format that is written, and the newest
// that is read. docs/audit.md describes it: JSON lines, so that anybody can
// read one with what every language has.
const Format = 1

// Types of lines of an export. Readers pass over types that they do not know.
const (
	lineHead    = "rollcall-export"
	lineCommit  = "commit"
	lineBody    = "body"
	lineMissing = "missing"
	lineEnd     = "end"
)

// Head is the first line of an export.
type Head struct {
	Type   string `json:"type"`
	Format int    `json:"format"`
	// Time when the export was begun, and the program that wrote it.
	Time time.Time `json:"time"`
	By   string    `json:"by"`
}

// line is any other line. A body comes in pieces, one after the other.
type line struct {
	Type string `json:"type"`

	Seq     uint64              `json:"seq,omitempty"`
	Subject string              `json:"subject,omitempty"`
	Header  map[string][]string `json:"headers,omitempty"`

	SHA256 string `json:"sha256,omitempty"`
	Size   uint64 `json:"size,omitempty"`
	Offset uint64 `json:"offset,omitempty"`
	Why    string `json:"why,omitempty"`

	Data []byte `json:"data,omitempty"`

	Conversations []Ending `json:"conversations,omitempty"`
	// Lines before this one, and the SHA-256 of all their bytes in Sum.
	Lines int    `json:"lines,omitempty"`
	Sum   string `json:"sum,omitempty"`
}

// Ending says where the log of a conversation ends in an export.
type Ending struct {
	Subject string `json:"subject"`
	Commits int    `json:"commits"`
	// Last is the hash of the last commit.
	Last string `json:"last"`
}

// bodyPiece is how much of a body one line has.
const bodyPiece = 512 << 10

// Writer writes an export. After Close it is whole; without, a reader sees that
// it was cut off.
type Writer struct {
	w     io.Writer
	sum   hash.Hash
	lines int
	ends  map[domain.Key]*Ending
	order []domain.Key
}

// NewWriter begins an export.
func NewWriter(w io.Writer, by string, now time.Time) (*Writer, error) {
	out := &Writer{w: w, sum: sha256.New(), ends: map[domain.Key]*Ending{}}
	return out, out.put(Head{Type: lineHead, Format: Format, Time: now.UTC(), By: by})
}

// Commit writes a commit. Those of a conversation must come in its order.
func (w *Writer) Commit(e Entry) error {
	end := w.ends[e.Key]
	if end == nil {
		end = &Ending{Subject: e.Subject()}
		w.ends[e.Key] = end
		w.order = append(w.order, e.Key)
	}
	end.Commits++
	end.Last = lastHash(e.Sealed)
	return w.put(line{Type: lineCommit, Seq: e.Seq, Subject: e.Subject(), Header: e.Header, Data: e.Sealed})
}

// lastHash is the hash that stands at the end of a sealed commit.
func lastHash(sealed []byte) string {
	return hex.EncodeToString(sealed[max(0, len(sealed)-sha256.Size):])
}

// Body writes a stored body of a conversation.
func (w *Writer) Body(key domain.Key, b *rollcallv1.Blob, data []byte) error {
	for offset := 0; offset == 0 || offset < len(data); offset += bodyPiece {
		piece := data[offset:min(len(data), offset+bodyPiece)]
		err := w.put(line{Type: lineBody, Subject: subject(key), SHA256: b.GetSha256(), Size: b.GetSize(), Offset: uint64(offset), Data: piece})
		if err != nil {
			return err
		}
	}
	return nil
}

// Missing notes that a body could not be had.
func (w *Writer) Missing(key domain.Key, b *rollcallv1.Blob, why string) error {
	return w.put(line{Type: lineMissing, Subject: subject(key), SHA256: b.GetSha256(), Size: b.GetSize(), Why: why})
}

// Close writes the last line. It does not close what is written to.
func (w *Writer) Close() error {
	end := line{Type: lineEnd, Lines: w.lines, Sum: hex.EncodeToString(w.sum.Sum(nil))}
	for _, key := range w.order {
		end.Conversations = append(end.Conversations, *w.ends[key])
	}
	return w.put(end)
}

func (w *Writer) put(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write an export: %w", err)
	}
	data = append(data, '\n')
	w.sum.Write(data)
	w.lines++
	if _, err := w.w.Write(data); err != nil {
		return fmt.Errorf("write an export: %w", err)
	}
	return nil
}
