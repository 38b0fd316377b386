package eventstore

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// SealAfter makes c the commit that follows the position and returns its
// sealed bytes. A missing version, previous hash or id is filled in, so the
// same c, appended again, is the same bytes; one that contradicts the position
// is a bug and an error. It returns ErrTooLarge over MaxCommit.
func SealAfter(key domain.Key, after Position, c *rollcallv1.Commit) ([]byte, error) {
	if !key.Valid() {
		return nil, fmt.Errorf("append to %q: not a valid conversation key", key)
	}
	if c.GetVersion() == 0 {
		c.Version = after.Version + 1
	}
	if len(c.GetPreviousHash()) == 0 {
		c.PreviousHash = after.Hash
	}
	if c.GetId() == "" {
		c.Id = strings.ToLower(rand.Text())
	}
	if c.GetVersion() != after.Version+1 || !bytes.Equal(c.GetPreviousHash(), after.Hash) {
		return nil, fmt.Errorf("append to %s: version %d does not follow the position at version %d", key, c.GetVersion(), after.Version)
	}
	raw, err := domain.Seal(c)
	if err != nil {
		return nil, fmt.Errorf("append to %s: %w", key, err)
	}
	if len(raw) > MaxCommit {
		return nil, fmt.Errorf("append to %s: version %d has %d bytes, the limit is %d: %w", key, c.GetVersion(), len(raw), MaxCommit, ErrTooLarge)
	}
	return raw, nil
}

// Check reports whether the envelope can be stored. It returns ErrTooLarge
// over MaxInbox.
func (e Envelope) Check() error {
	if !e.Key.Valid() || !domain.ValidToken(e.To) {
		return fmt.Errorf("publish to %s.%s: tenant, conversation and recipient are lower-case letters, digits, '-' and '_', at most 64 of them", e.Key, e.To)
	}
	if len(e.Data) > MaxInbox {
		return fmt.Errorf("publish to %s.%s: %d bytes, the limit is %d: %w", e.Key, e.To, len(e.Data), MaxInbox, ErrTooLarge)
	}
	return nil
}
