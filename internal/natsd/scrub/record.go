package scrub

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"time"

	"github.com/minio/highwayhash"
)

// A record is one message in a block, as nats-server 2.10 and later write it:
//
//	length 4 · sequence 8 · time 8 · subject length 2
//	subject · [length of the headers 4 · headers] · body · checksum 8
//
// all little-endian. The highest bit of the length says that there are headers.
const (
	headBytes = 22
	sumBytes  = 8
	minRecord = headBytes + sumBytes

	hasHeaders = 1 << 31
	// Bits of a sequence: an erased message, and a tombstone, which says that
	// the message of that sequence was deleted.
	erased    = 1 << 63
	tombstone = 1 << 62

	// maxRecord is what the server itself takes for too long.
	maxRecord = 32 << 20
	// maxSubject is above any of ours.
	maxSubject = 4 << 10
)

// records reads the records of one block.
type records struct {
	sum hash.Hash
	buf [sumBytes]byte
}

// newRecords prepares for a block: the checksums are keyed by its place.
func newRecords(stream string, block int) (*records, error) {
	key := sha256.Sum256(fmt.Appendf(nil, "%s-%d", stream, block))
	sum, err := highwayhash.New64(key[:])
	if err != nil {
		return nil, fmt.Errorf("checksum of %s block %d: %w", stream, block, err)
	}
	return &records{sum: sum}, nil
}

// record is one sound record.
type record struct {
	size int
	seq  uint64 // without its bits
	dead bool   // a tombstone or an erased message: nothing that could be lost
}

// Times that a record can have: a quick test before the costly one, needed
// where a record is looked for at every byte.
var (
	earliest = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
)

// at reads the record that begins b, and reports whether it is sound.
func (r *records) at(b []byte) (record, bool) {
	size, subject, ok := bounds(b)
	if !ok {
		return record{}, false
	}
	raw := binary.LittleEndian.Uint64(b[4:])
	seq := raw &^ (erased | tombstone)
	at := int64(binary.LittleEndian.Uint64(b[12:])) //nolint:gosec // a time is stored so
	if seq>>48 != 0 || at != 0 && (at < earliest || at > latest) {
		return record{}, false
	}
	body := b[headBytes : size-sumBytes]
	r.sum.Reset()
	_, _ = r.sum.Write(b[4:20])
	_, _ = r.sum.Write(body[:subject])
	if binary.LittleEndian.Uint32(b)&hasHeaders != 0 {
		subject += 4
		if !headed(body[subject-4:]) {
			return record{}, false
		}
	}
	_, _ = r.sum.Write(body[subject:])
	if !bytes.Equal(r.sum.Sum(r.buf[:0]), b[size-sumBytes:size]) {
		return record{}, false
	}
	return record{size: size, seq: seq, dead: raw != seq}, true
}

// headed reports whether the headers end where their length says: the checksum
// does not cover that length.
func headed(b []byte) bool {
	n := int(binary.LittleEndian.Uint32(b))
	b = b[4:]
	return n <= len(b) && bytes.HasPrefix(b[:n], []byte("NATS/1.0")) && bytes.HasSuffix(b[:n], []byte("\r\n\r\n"))
}

// bounds reads the length of a record and of its subject, and reports whether
// they can be.
func bounds(b []byte) (size, subject int, ok bool) {
	if len(b) < minRecord {
		return 0, 0, false
	}
	length := binary.LittleEndian.Uint32(b)
	size = int(length &^ hasHeaders)
	subject = int(binary.LittleEndian.Uint16(b[20:]))
	rest := size - minRecord - subject
	if length&hasHeaders != 0 {
		rest -= 4
	}
	return size, subject, size <= len(b) && size <= maxRecord && subject <= maxSubject && rest >= 0
}

// subjectOf is what a damaged record says its subject is, if that can be read.
func subjectOf(b []byte) string {
	if len(b) < headBytes {
		return ""
	}
	n := int(binary.LittleEndian.Uint16(b[20:]))
	if n == 0 || n > maxSubject || headBytes+n > len(b) {
		return ""
	}
	s := b[headBytes : headBytes+n]
	for _, c := range s {
		if c <= ' ' || c > '~' {
			return ""
		}
	}
	return string(s)
}

// gap is a part of a block that is no record.
type gap struct {
	from, to int
	// after is the sequence of the sound message before it, before that of the
	// one behind it; 0 where there is none.
	after, before uint64
	subject       string
}

// gaps finds what is damaged in the content of a block, and tells how many sound
// records there are.
func (r *records) gaps(b []byte) (found []gap, sound int) {
	last := uint64(0)
	open := -1
	for i := 0; i < len(b); {
		rec, ok := r.at(b[i:])
		if !ok {
			if open < 0 {
				open = i
				found = append(found, gap{from: i, after: last, subject: subjectOf(b[i:])})
			}
			i++
			continue
		}
		if open >= 0 {
			found[len(found)-1].to = i
			open = -1
		}
		sound++
		if !rec.dead {
			last = rec.seq
			for j := len(found) - 1; j >= 0 && found[j].before == 0; j-- {
				found[j].before = rec.seq
			}
		}
		i += rec.size
	}
	if open >= 0 {
		found[len(found)-1].to = len(b)
	}
	return found, sound
}

// without returns the content of a block without its gaps.
func without(b []byte, gaps []gap) []byte {
	out := make([]byte, 0, len(b))
	at := 0
	for _, g := range gaps {
		out = append(out, b[at:g.from]...)
		at = g.to
	}
	return append(out, b[at:]...)
}
