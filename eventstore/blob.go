package eventstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Address is where bytes stand in the object store: their hash and length.
func Address(data []byte) *rollcallv1.Blob {
	sum := sha256.Sum256(data)
	return &rollcallv1.Blob{Sha256: hex.EncodeToString(sum[:]), Size: uint64(len(data))}
}

// BlobName is the name of a blob in its bucket.
func BlobName(key domain.Key, b *rollcallv1.Blob) string {
	return key.String() + "." + b.GetSha256()
}

func (j *JetStream) blobs() bucket { return bucket{j, BucketBlobs} }

// PutBlob implements Blobs. What is there already is not sent again, unless it
// cannot be read back: then this put repairs it.
func (j *JetStream) PutBlob(ctx context.Context, key domain.Key, data []byte) (*rollcallv1.Blob, error) {
	b := Address(data)
	if !key.Valid() {
		return nil, fmt.Errorf("put blob of %s: not a valid conversation key", key)
	}
	name := BlobName(key, b)
	if _, _, ok, err := j.blobs().get(ctx, name); ok && err == nil {
		return b, nil
	} else if err != nil && !errors.Is(err, errGone) && !errors.Is(err, errDamaged) {
		return nil, fmt.Errorf("put blob %s: %w", name, err)
	}
	if err := j.blobs().put(ctx, name, data, nil); err != nil {
		return nil, fmt.Errorf("put blob %s: %w", name, err)
	}
	return b, nil
}

// GetBlob implements Blobs.
func (j *JetStream) GetBlob(ctx context.Context, key domain.Key, b *rollcallv1.Blob) ([]byte, error) {
	data, _, ok, err := j.blobs().get(ctx, BlobName(key, b))
	switch {
	case errors.Is(err, errGone):
		return nil, fmt.Errorf("get blob %s of %s: %w: %w", b.GetSha256(), key, ErrMissingBlob, err)
	case errors.Is(err, errDamaged):
		return nil, fmt.Errorf("get blob %s of %s: %w: %w", b.GetSha256(), key, domain.ErrHash, err)
	case err != nil:
		return nil, fmt.Errorf("get blob %s of %s: %w", b.GetSha256(), key, err)
	case !ok:
		return nil, fmt.Errorf("get blob %s of %s: %w", b.GetSha256(), key, ErrMissingBlob)
	case !proto.Equal(Address(data), b):
		return nil, fmt.Errorf("get blob %s of %s: %w: these are other bytes", b.GetSha256(), key, domain.ErrHash)
	}
	return data, nil
}
