package prompt

import (
	"fmt"
	"time"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Commits is a Source over commits that were fetched before, by version (as
// Needs lists them).
type Commits struct {
	ByVersion map[uint64]*rollcallv1.Commit
	// Blob fetches a body from the object store; nil when there are none.
	Blob func(*rollcallv1.Blob) ([]byte, error)
}

// Event implements Source.
func (c Commits) Event(ref *rollcallv1.Ref) (*rollcallv1.Event, time.Time, error) {
	commit, ok := c.ByVersion[ref.GetVersion()]
	if !ok || int(ref.GetIndex()) >= len(commit.GetEvents()) {
		return nil, time.Time{}, fmt.Errorf("%w: version %d, event %d", ErrMissing, ref.GetVersion(), ref.GetIndex())
	}
	return commit.GetEvents()[ref.GetIndex()], commit.GetTime().AsTime(), nil
}

// Body implements Source.
func (c Commits) Body(b *rollcallv1.Body) (string, error) {
	blob := b.GetBlob()
	if blob == nil {
		return b.GetText(), nil
	}
	if c.Blob == nil {
		return "", fmt.Errorf("%w: body %s", ErrMissing, blob.GetSha256())
	}
	data, err := c.Blob(blob)
	if err != nil {
		return "", fmt.Errorf("read body %s: %w", blob.GetSha256(), err)
	}
	return string(data), nil
}
