package scrub

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/klauspost/compress/s2"
)

// A block that is full is compressed, where its stream says so:
//
//	"cmp" · algorithm 1 · size of the content, a varint
//	the content but its last 8 bytes, as an S2 stream · its last 8 bytes

// content unpacks a block. whole is false when a part could not be unpacked, or
// not to what was packed; then the content is what is left.
func content(b []byte) (raw []byte, whole bool) {
	at := packedAt(b)
	if at < len(packedMark) || len(b) < at+sumBytes {
		return b, true
	}
	if raw, ok := writtenBehind(b, at); ok {
		return raw, false
	}
	size, n := binary.Uvarint(b[len(packedMark):at])
	marked := bytes.HasPrefix(b, packedMark) && n == at-len(packedMark) && bytes.HasPrefix(b[at:], s2Magic)
	raw, whole = unpack(make([]byte, 0, min(size+sumBytes, maxContent)), b[min(at+len(s2Magic), len(b)-sumBytes):len(b)-sumBytes])
	whole = whole && marked
	return append(raw, b[len(b)-sumBytes:]...), whole
}

// writtenBehind unpacks a block that the server packed while it was still
// writing to it: it went on where the content ended before it was packed. So the
// packed content is followed by zeros up to its size, and then by plain records.
// nats-server 2.15.3 does that to a replica that was killed; it cannot read the
// block any more (docs/storage.md). Nothing is lost.
func writtenBehind(b []byte, at int) (raw []byte, ok bool) {
	size, n := binary.Uvarint(b[len(packedMark):at])
	if !bytes.HasPrefix(b, packedMark) || n <= 0 || !bytes.HasPrefix(b[at:], s2Magic) ||
		size > maxContent || size < sumBytes || int(size) >= len(b) {
		return nil, false
	}
	end, want := at+len(s2Magic), int(size)-sumBytes
	for len(raw) < want && end < len(b) {
		data, n, sound := chunk(b[end:])
		if !sound {
			return nil, false
		}
		raw, end = append(raw, data...), end+n
	}
	hole := end + sumBytes
	if len(raw) != want || hole > int(size) || len(bytes.Trim(b[hole:size], "\x00")) > 0 {
		return nil, false
	}
	return append(append(raw, b[end:hole]...), b[size:]...), true
}

// packedMark begins a compressed block, s2Magic an S2 stream.
var (
	packedMark = []byte("cmp\x01")
	s2Magic    = []byte("\xff\x06\x00\x00S2sTwO")
)

// packedAt is where the S2 stream of a block begins; -1 when the block is not
// compressed. Either of the two marks is enough: the other may be damaged.
func packedAt(b []byte) int {
	if at := bytes.Index(b[:min(len(b), 64)], s2Magic); at >= 0 && at <= 4+binary.MaxVarintLen64 {
		return at
	}
	if len(b) < 5 || !bytes.HasPrefix(b, packedMark) {
		return -1
	}
	_, n := binary.Uvarint(b[4:min(len(b), 4+binary.MaxVarintLen64)])
	return 4 + max(n, 0)
}

// Kinds of chunks of an S2 stream; those from 0x80 on hold no content.
const (
	chunkPacked = 0x00
	chunkPlain  = 0x01
	chunkSkip   = 0x80

	chunkHead = 4
	chunkSum  = 4
	// maxChunk is the most that a chunk unpacks to, maxContent what a block is
	// expected to hold at most.
	maxChunk   = 4 << 20
	maxContent = 16 << 20
)

// unpack appends what the chunks of an S2 stream hold and leaves out what cannot be read. A
// chunk whose checksum fails but which can be unpacked is taken: which of its
// records are damaged is told by their own checksums.
func unpack(raw, b []byte) (_ []byte, whole bool) {
	whole = true
	for len(b) > 0 {
		data, size, sound := chunk(b)
		if !sound && (size == 0 || !fits(b[size:])) {
			// Its kind or length is damaged: it ends where a sound chunk begins.
			for size = 1; size < len(b) && !begins(b[size:]); size++ {
				continue
			}
			data = b[min(chunkHead+chunkSum, size):size]
			if packed, ok := unpacked(data); ok {
				data = packed
			}
		}
		raw, b = append(raw, data...), b[size:]
		whole = whole && sound
	}
	return raw, whole
}

// fits reports whether b can be what follows a chunk.
func fits(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	_, size, _ := chunk(b)
	return size > 0
}

// begins reports whether a sound chunk with content begins b.
func begins(b []byte) bool {
	data, _, sound := chunk(b)
	return sound && len(data) > 0
}

// chunk reads the chunk that begins b: what it holds, its size in b (0 when it
// can be none), and whether it is sound.
func chunk(b []byte) (data []byte, size int, sound bool) {
	if len(b) < chunkHead {
		return nil, 0, false
	}
	size = chunkHead + int(b[1]) + int(b[2])<<8 + int(b[3])<<16
	kind := b[0]
	if size > len(b) || kind > chunkPlain && kind < chunkSkip {
		return nil, 0, false
	}
	if kind >= chunkSkip { // the server writes none
		return nil, size, false
	}
	if size < chunkHead+chunkSum {
		return nil, 0, false
	}
	sum := binary.LittleEndian.Uint32(b[chunkHead:])
	data = b[chunkHead+chunkSum : size]
	if kind == chunkPacked {
		if data, sound = unpacked(data); !sound {
			return nil, size, false
		}
	}
	return data, size, sum == chunkChecksum(data)
}

// unpacked decodes one block of S2.
func unpacked(b []byte) (data []byte, ok bool) {
	if n, err := s2.DecodedLen(b); err != nil || n > maxChunk {
		return nil, false
	}
	data, err := s2.Decode(nil, b)
	return data, err == nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chunkChecksum is the checksum that S2 and Snappy put before a chunk.
func chunkChecksum(data []byte) uint32 {
	c := crc32.Checksum(data, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}
