package checker

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"google.golang.org/protobuf/proto"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// A sealed commit ends in its hash: field 15, of wire type 2 and 32 bytes, which
// is the SHA-256 of all bytes before it. docs/subjects.md says so.
var hashField = []byte{0x7a, 0x20}

const sealBytes = 2 + sha256.Size

// isSealed reports whether the bytes end as a sealed commit does.
func isSealed(raw []byte) bool {
	return len(raw) >= sealBytes && bytes.HasPrefix(raw[len(raw)-sealBytes:], hashField)
}

// follows is the rule chain: versions are contiguous from 1, each commit's bytes
// have the hash that they end in, and each names the hash of the one before, so
// that a gap, a flipped bit or an exchanged commit is noticed (promise 6). It
// says what is wrong, or nothing.
func follows(sealed []byte, version uint64, previous []byte) (c *rollcallv1.Commit, wrong string) {
	if !isSealed(sealed) {
		return nil, "the message is no sealed commit"
	}
	at := len(sealed) - sealBytes
	if sum := sha256.Sum256(sealed[:at]); !bytes.Equal(sum[:], sealed[at+len(hashField):]) {
		return nil, fmt.Sprintf("the bytes of the commit have the SHA-256 %x and say that they have %x", sum, sealed[at+len(hashField):])
	}
	c = new(rollcallv1.Commit)
	if err := proto.Unmarshal(sealed, c); err != nil {
		return nil, fmt.Sprintf("the commit cannot be decoded: %v", err)
	}
	if c.GetVersion() != version {
		return nil, fmt.Sprintf("version %d stands where %d must follow", c.GetVersion(), version)
	}
	if !bytes.Equal(c.GetPreviousHash(), previous) {
		return nil, fmt.Sprintf("the commit follows one with the hash %x, and the one before it has %x", c.GetPreviousHash(), previous)
	}
	return c, ""
}

// FromCommits is the log of commits that are at hand decoded, such as those of a
// store in memory. Each keeps the hash that it carries.
func FromCommits(tenant, conversation string, commits []*rollcallv1.Commit) (Log, error) {
	l := Log{Tenant: tenant, Conversation: conversation}
	for _, c := range commits {
		open := proto.CloneOf(c)
		open.Hash = nil
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(open)
		if err != nil {
			return Log{}, fmt.Errorf("encode version %d of %s: %w", c.GetVersion(), conversation, err)
		}
		l.Commits = append(l.Commits, Stored{Sealed: append(append(raw, hashField...), c.GetHash()...)})
	}
	return l, nil
}
