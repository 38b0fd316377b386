package domain

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Errors of a log that is not what it says it is. Readers fail closed on them.
var (
	// ErrNotCommit: the bytes are no sealed commit at all.
	ErrNotCommit = errors.New("not a commit")
	// ErrHash: the bytes of a commit do not match its hash, or its previous
	// hash is not the hash of the commit before.
	ErrHash = errors.New("hash chain broken")
	// ErrGap: versions are not contiguous.
	ErrGap = errors.New("gap in versions")
)

// The hash is field 15, bytes, of length 32, and ends the message.
var sealTag = []byte{15<<3 | 2, sha256.Size}

// Seal sets the commit's hash and returns the bytes to store.
func Seal(c *rollcallv1.Commit) ([]byte, error) {
	c.Hash = nil
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("seal commit %d: %w", c.GetVersion(), err)
	}
	sum := sha256.Sum256(body)
	c.Hash = sum[:]
	return append(append(body, sealTag...), sum[:]...), nil
}

// Unseal decodes sealed bytes and checks their hash. It returns ErrNotCommit
// or ErrHash.
func Unseal(raw []byte) (*rollcallv1.Commit, error) {
	body := len(raw) - len(sealTag) - sha256.Size
	if body < 0 || !bytes.Equal(raw[body:body+len(sealTag)], sealTag) {
		return nil, ErrNotCommit
	}
	sum := sha256.Sum256(raw[:body])
	if !bytes.Equal(sum[:], raw[body+len(sealTag):]) {
		return nil, ErrHash
	}
	c := new(rollcallv1.Commit)
	if err := proto.Unmarshal(raw, c); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotCommit, err)
	}
	return c, nil
}

// CheckNext reports whether next may follow a commit of the given version and
// hash (0 and nil before the first). It returns ErrGap or ErrHash.
func CheckNext(version uint64, hash []byte, next *rollcallv1.Commit) error {
	if next.GetVersion() != version+1 {
		return fmt.Errorf("%w: %d follows %d", ErrGap, next.GetVersion(), version)
	}
	if !bytes.Equal(next.GetPreviousHash(), hash) {
		return fmt.Errorf("%w: version %d does not follow the stored version %d", ErrHash, next.GetVersion(), version)
	}
	return nil
}
