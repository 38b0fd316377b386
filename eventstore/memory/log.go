package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// entry is one message of the stream; its sequence is its index plus one.
type entry struct {
	key domain.Key
	raw []byte
	// claims is set when the message presents itself as a commit.
	claims bool
}

// Append implements eventstore.Log.
func (s *Store) Append(ctx context.Context, key domain.Key, after eventstore.Position, c *rollcallv1.Commit) (eventstore.Recorded, error) {
	raw, err := eventstore.SealAfter(key, after, c)
	if err != nil {
		return eventstore.Recorded{}, err
	}
	if err := ctx.Err(); err != nil {
		return eventstore.Recorded{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, e := range s.entries[min(after.Seq, uint64(len(s.entries))):] {
		if e.key != key || notCommit(e) {
			continue
		}
		if bytes.Equal(e.raw, raw) {
			return recorded(key, after.Seq+uint64(i)+1, raw)
		}
		return eventstore.Recorded{}, fmt.Errorf("append version %d to %s: %w", c.GetVersion(), key, eventstore.ErrConflict)
	}
	if head := s.heads[key]; head.Seq != after.Seq {
		return eventstore.Recorded{}, fmt.Errorf("append version %d to %s: %w", c.GetVersion(), key, eventstore.ErrConflict)
	}
	seq := s.store(entry{key: key, raw: raw, claims: true})
	s.heads[key] = eventstore.Position{Version: c.GetVersion(), Seq: seq, Hash: c.GetHash()}
	return recorded(key, seq, raw)
}

// Inject stores raw bytes on a conversation's log as a stranger with the right
// to publish would: for tests of a log that is not what it says it is. With
// claims the message presents itself as a commit.
func (s *Store) Inject(_ context.Context, key domain.Key, raw []byte, claims bool) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store(entry{key: key, raw: bytes.Clone(raw), claims: claims}), nil
}

func (s *Store) store(e entry) uint64 {
	s.entries = append(s.entries, e)
	close(s.changed)
	s.changed = make(chan struct{})
	return uint64(len(s.entries))
}

// notCommit reports a message that does not even claim to be a commit; it is
// passed over. What claims to be one and is not fails closed.
func notCommit(e entry) bool {
	_, err := domain.Unseal(e.raw)
	return !e.claims && errors.Is(err, domain.ErrNotCommit)
}

func recorded(key domain.Key, seq uint64, raw []byte) (eventstore.Recorded, error) {
	c, err := domain.Unseal(raw)
	if err != nil {
		return eventstore.Recorded{}, err
	}
	return eventstore.Recorded{Key: key, Seq: seq, Commit: c, Raw: raw}, nil
}

// Load implements eventstore.Log.
func (s *Store) Load(ctx context.Context, key domain.Key, after eventstore.Position, fn func(eventstore.Recorded) error) error {
	s.mu.Lock()
	entries := s.entries
	s.mu.Unlock()
	if after.Seq > uint64(len(entries)) {
		return fmt.Errorf("load %s after version %d: the log ends before it: %w", key, after.Version, domain.ErrGap)
	}
	version, hash := after.Version, after.Hash
	for i, e := range entries[after.Seq:] {
		if e.key != key || notCommit(e) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := recorded(key, after.Seq+uint64(i)+1, e.raw)
		if errors.Is(err, domain.ErrNotCommit) {
			err = fmt.Errorf("%w: %w", domain.ErrHash, err)
		}
		if err == nil {
			err = domain.CheckNext(version, hash, r.Commit)
		}
		if err != nil {
			return fmt.Errorf("load %s at version %d: %w", key, version+1, err)
		}
		version, hash = r.Commit.GetVersion(), r.Commit.GetHash()
		if err := fn(r); err != nil {
			return err
		}
	}
	return nil
}

// At implements eventstore.Log.
func (s *Store) At(ctx context.Context, key domain.Key, versions []uint64) (map[uint64]*rollcallv1.Commit, error) {
	found := make(map[uint64]*rollcallv1.Commit, len(versions))
	err := s.Load(ctx, key, eventstore.Position{}, func(r eventstore.Recorded) error {
		if slices.Contains(versions, r.Commit.GetVersion()) {
			found[r.Commit.GetVersion()] = r.Commit
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, v := range versions {
		if found[v] == nil {
			return nil, fmt.Errorf("version %d of %s: %w", v, key, eventstore.ErrNotFound)
		}
	}
	return found, nil
}

// Follow implements eventstore.Log.
func (s *Store) Follow(ctx context.Context, seq uint64, fn func(eventstore.Recorded) error, skipped func(uint64, string, error)) error {
	for {
		s.mu.Lock()
		entries, changed := s.entries, s.changed
		s.mu.Unlock()
		for ; seq < uint64(len(entries)); seq++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			e := entries[seq]
			r, err := recorded(e.key, seq+1, e.raw)
			if err != nil {
				if skipped != nil {
					skipped(seq+1, eventstore.EventSubject(e.key), err)
				}
				continue
			}
			if err := fn(r); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// Current implements eventstore.Log: there is nobody who could lag.
func (s *Store) Current(ctx context.Context) error { return ctx.Err() }

// LastSeq implements eventstore.Log.
func (s *Store) LastSeq(context.Context) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return uint64(len(s.entries)), nil
}

// Conversations implements eventstore.Log.
func (s *Store) Conversations(_ context.Context, partitions []int) ([]domain.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []domain.Key
	for k := range s.heads {
		if slices.Contains(partitions, k.Partition()) {
			keys = append(keys, k)
		}
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
	return keys, nil
}

// SaveSnapshot implements eventstore.Snapshots.
func (s *Store) SaveSnapshot(_ context.Context, key domain.Key, snap eventstore.Snapshot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap.Data = bytes.Clone(snap.Data)
	s.snapshots[key] = snap
	return nil
}

// LoadSnapshot implements eventstore.Snapshots.
func (s *Store) LoadSnapshot(_ context.Context, key domain.Key, evolveVersion uint32) (eventstore.Snapshot, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap, ok := s.snapshots[key]
	if !ok || snap.EvolveVersion != evolveVersion || snap.Position.Seq < 1 || snap.Position.Seq > uint64(len(s.entries)) {
		return eventstore.Snapshot{}, false, nil
	}
	e := s.entries[snap.Position.Seq-1]
	c, err := domain.Unseal(e.raw)
	if err != nil || e.key != key || c.GetVersion() != snap.Position.Version || !bytes.Equal(c.GetHash(), snap.Position.Hash) {
		return eventstore.Snapshot{}, false, nil
	}
	snap.Data = bytes.Clone(snap.Data)
	return snap, true, nil
}

// PutBlob implements eventstore.Blobs.
func (s *Store) PutBlob(_ context.Context, key domain.Key, data []byte) (*rollcallv1.Blob, error) {
	b := eventstore.Address(data)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs[eventstore.BlobName(key, b)] = bytes.Clone(data)
	return b, nil
}

// GetBlob implements eventstore.Blobs.
func (s *Store) GetBlob(_ context.Context, key domain.Key, b *rollcallv1.Blob) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.blobs[eventstore.BlobName(key, b)]
	if !ok {
		return nil, fmt.Errorf("get blob %s of %s: %w", b.GetSha256(), key, eventstore.ErrMissingBlob)
	}
	if !proto.Equal(eventstore.Address(data), b) {
		return nil, fmt.Errorf("get blob %s of %s: %w", b.GetSha256(), key, domain.ErrHash)
	}
	return bytes.Clone(data), nil
}
