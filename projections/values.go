package projections

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// number is a count as SQLite keeps it. Nothing real comes near the limit; an
// absurd figure of a model server stays at it.
func number(n uint64) int64 {
	if n > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(n)
}

// count is the inverse of number.
func count(n int64) uint64 {
	if n < 0 {
		return 0
	}
	return uint64(n)
}

// nanos is a time as it is kept; 0 for none.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// moment is the inverse of nanos.
func moment(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// list keeps texts as a JSON array.
func list(texts []string) string {
	if len(texts) == 0 {
		return "[]"
	}
	data, err := json.Marshal(texts)
	if err != nil {
		panic(err) // strings always marshal
	}
	return string(data)
}

// unlist is the inverse of list; it never answers nil.
func unlist(data string) ([]string, error) {
	texts := []string{}
	if err := json.Unmarshal([]byte(data), &texts); err != nil {
		return nil, fmt.Errorf("read a list: %w", err)
	}
	return texts, nil
}

// body is a text, or the address of one that lies in the object store.
func body(b *rollcallv1.Body) (text, hash string, size int64) {
	if blob := b.GetBlob(); blob != nil {
		return "", blob.GetSha256(), number(blob.GetSize())
	}
	return b.GetText(), "", int64(len(b.GetText()))
}

// textOf is the inverse of body.
func textOf(text, hash string, size int64) Text {
	if hash != "" {
		return Text{Blob: &BlobRef{SHA256: hash, Size: count(size)}}
	}
	return Text{Text: text}
}

// Money is an amount in millionths of the installation's currency. In JSON it
// is an exact decimal number of whole units, such as 0.031.
type Money uint64

func (m Money) String() string {
	const unit = 1_000_000
	if m%unit == 0 {
		return strconv.FormatUint(uint64(m/unit), 10)
	}
	return strings.TrimRight(fmt.Sprintf("%d.%06d", m/unit, m%unit), "0")
}

// MarshalJSON writes the exact decimal.
func (m Money) MarshalJSON() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Money) UnmarshalJSON(data []byte) error {
	whole, part, _ := strings.Cut(string(data), ".")
	if len(part) > 6 {
		return fmt.Errorf("%q is not an amount in millionths", data)
	}
	n, err := strconv.ParseUint(whole+part+strings.Repeat("0", 6-len(part)), 10, 64)
	if err != nil {
		return fmt.Errorf("%q is not an amount in millionths", data)
	}
	*m = Money(n)
	return nil
}
