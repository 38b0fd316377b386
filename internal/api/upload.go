package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
)

// MaxFile is the most bytes of one file.
const MaxFile = 32 << 20

// UploadRequest is a chunk of a file to store. Chunks come in order; the first
// may go to any node, the rest to the subject that its answer names.
type UploadRequest struct {
	// Conversation is a full id; it need not be open yet.
	Conversation string `json:"conversation"`
	BlobRef
	Offset uint64 `json:"offset"`
	// Data in base64.
	Data []byte `json:"data"`
}

// UploadAnswer says what is stored and where further chunks go.
type UploadAnswer struct {
	BlobRef
	// Received bytes so far; the file is stored when it is all of them.
	Received uint64 `json:"received"`
	Stored   bool   `json:"stored"`
	// Next is the subject for further chunks.
	Next string `json:"next,omitempty"`
}

// uploads are files whose chunks are still coming.
type uploads struct {
	mu   sync.Mutex
	open map[uploadKey]*partial
}

type uploadKey struct {
	key domain.Key
	sha string
}

type partial struct {
	data []byte
	used time.Time
}

const (
	maxUploads  = 16
	uploadGrace = time.Minute
)

func newUploads() *uploads { return &uploads{open: make(map[uploadKey]*partial)} }

// add takes in a chunk and returns the whole file once it is there.
func (u *uploads) add(k uploadKey, r UploadRequest, now time.Time) (received uint64, whole []byte, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	p := u.open[k]
	switch {
	case r.Offset == 0:
		for other, old := range u.open {
			if now.Sub(old.used) > uploadGrace {
				delete(u.open, other)
			}
		}
		if p == nil && len(u.open) >= maxUploads {
			return 0, nil, domain.Refuse("uploads-busy", "too many files are being stored at once",
				fmt.Sprintf("the limit is %d", maxUploads), "try again in a moment")
		}
		p = new(partial)
		u.open[k] = p
	case p == nil, uint64(len(p.data)) != r.Offset:
		return 0, nil, domain.Refuse("upload-lost", "the chunk does not follow the ones before",
			fmt.Sprintf("it starts at byte %d", r.Offset), "start again from byte 0")
	}
	p.used = now
	p.data = append(p.data, r.Data...)
	if uint64(len(p.data)) < r.Size {
		return uint64(len(p.data)), nil, nil
	}
	delete(u.open, k)
	return uint64(len(p.data)), p.data, nil
}

func (s *Server) upload(ctx context.Context, tenant string, r UploadRequest) (any, error) {
	k := uploadKey{domain.Key{Tenant: tenant, Conversation: r.Conversation}, r.SHA256}
	switch {
	case !IsID(r.Conversation):
		return nil, domain.Refuse("request-invalid", "an upload needs the full id of its conversation", quote(r.Conversation), "")
	case !isSHA(r.SHA256):
		return nil, domain.Refuse("request-invalid", "an upload needs the SHA-256 of the file", quote(r.SHA256), "")
	case r.Size > MaxFile:
		return nil, domain.Refuse("file-too-large", "the file is too large",
			fmt.Sprintf("%d MiB, the limit is %d MiB", r.Size>>20, MaxFile>>20), "split it")
	case r.Offset > r.Size || uint64(len(r.Data)) > r.Size-r.Offset || len(r.Data) == 0 && r.Size > 0:
		return nil, domain.Refuse("request-invalid", "the chunk does not fit into the file", "", "send what lies between offset and size")
	}
	received, whole, err := s.uploads.add(k, r, time.Now())
	if err != nil {
		return nil, err
	}
	out := UploadAnswer{BlobRef: r.BlobRef, Received: received}
	if received < r.Size {
		out.Next = prefixAPI + tenant + ".upload." + s.service.Info().ID
		return out, nil
	}
	if sum := sha256.Sum256(whole); hex.EncodeToString(sum[:]) != r.SHA256 {
		return nil, domain.Refuse("upload-damaged", "the bytes received are not those of the SHA-256", "", "send the file again")
	}
	if _, err := s.cfg.Store.PutBlob(ctx, k.key, whole); err != nil {
		return nil, fmt.Errorf("store a file of conversation %s: %w", r.Conversation, err)
	}
	out.Stored = true
	return out, nil
}
