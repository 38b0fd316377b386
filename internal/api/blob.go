package api

import (
	"context"
	"fmt"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// BlobRef is the address of stored bytes.
type BlobRef struct {
	SHA256 string `json:"sha256"`
	Size   uint64 `json:"size"`
}

// BlobRequest asks for a chunk of stored bytes.
type BlobRequest struct {
	Conversation string `json:"conversation"`
	BlobRef
	Offset uint64 `json:"offset,omitempty"`
	// Limit is the most bytes wanted; 0: as many as fit.
	Limit uint64 `json:"limit,omitempty"`
}

// BlobAnswer is a chunk of stored bytes.
type BlobAnswer struct {
	BlobRef
	Offset uint64 `json:"offset"`
	// Data in base64.
	Data []byte `json:"data"`
	More bool   `json:"more"`
}

// chunkBytes is how much of a file one message carries: in base64 it fits
// under NATS's usual limit of 1 MiB.
const chunkBytes = 512 << 10

func (s *Server) blob(ctx context.Context, tenant string, r BlobRequest) (any, error) {
	key, err := s.resolve(ctx, tenant, r.Conversation)
	if err != nil {
		return nil, err
	}
	data, err := s.blobs.get(ctx, key, &rollcallv1.Blob{Sha256: r.SHA256, Size: r.Size})
	if err != nil {
		return nil, err
	}
	size := uint64(len(data))
	if r.Offset > size {
		return nil, domain.Refuse("request-invalid", "the offset is behind the end",
			fmt.Sprintf("offset %d of %d bytes", r.Offset, size), "")
	}
	limit := uint64(chunkBytes)
	if r.Limit > 0 {
		limit = min(limit, r.Limit)
	}
	end := min(size, r.Offset+limit)
	return BlobAnswer{
		BlobRef: BlobRef{SHA256: r.SHA256, Size: size}, Offset: r.Offset, Data: data[r.Offset:end], More: end < size,
	}, nil
}
