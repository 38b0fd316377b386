package api

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// blobCache keeps the last blob that was asked for: a file is read in chunks
// that follow each other.
type blobCache struct {
	store eventstore.Blobs

	mu   sync.Mutex
	key  domain.Key
	sha  string
	data []byte
}

func newBlobCache(s eventstore.Blobs) *blobCache { return &blobCache{store: s} }

func (b *blobCache) get(ctx context.Context, key domain.Key, blob *rollcallv1.Blob) ([]byte, error) {
	b.mu.Lock()
	if b.key == key && b.sha == blob.GetSha256() {
		data := b.data
		b.mu.Unlock()
		return data, nil
	}
	b.mu.Unlock()
	if !isSHA(blob.GetSha256()) {
		return nil, domain.Refuse("request-invalid", "the address is no SHA-256", quote(blob.GetSha256()), "take it from files or mail")
	}
	data, err := b.store.GetBlob(ctx, key, blob)
	if errors.Is(err, eventstore.ErrMissingBlob) {
		return nil, domain.Refuse("blob-not-found", "conversation "+key.Conversation+" holds no such bytes",
			blob.GetSha256(), "take the address from files or mail; if it is from there, run rollcall doctor")
	}
	if err != nil {
		return nil, fmt.Errorf("read a stored text of conversation %s: %w", key.Conversation, err)
	}
	b.mu.Lock()
	b.key, b.sha, b.data = key, blob.GetSha256(), data
	b.mu.Unlock()
	return data, nil
}

func isSHA(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 32
}
