package eventstore

import (
	"crypto/sha256"
	"encoding/hex"

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
