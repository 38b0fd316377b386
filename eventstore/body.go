package eventstore

import (
	"context"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// StoreBody puts a text of more than InlineBody bytes into the object store and
// leaves its address in the body; a shorter one stays where it is.
func StoreBody(ctx context.Context, blobs Blobs, key domain.Key, b *rollcallv1.Body) error {
	if len(b.GetText()) <= InlineBody {
		return nil
	}
	blob, err := blobs.PutBlob(ctx, key, []byte(b.GetText()))
	if err != nil {
		return err
	}
	b.Text, b.Blob = "", blob
	return nil
}
