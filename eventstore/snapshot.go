package eventstore

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Metadata of a snapshot's object.
const (
	metaVersion = "version"
	metaSeq     = "seq"
	metaHash    = "hash"
	metaEvolve  = "evolve"
)

// maxSnapshot bounds what a snapshot may unpack to.
const maxSnapshot = 512 << 20

func (j *JetStream) snapshots() bucket { return bucket{j, BucketSnapshots} }

// SaveSnapshot implements Snapshots. Only the newest is kept.
func (j *JetStream) SaveSnapshot(ctx context.Context, key domain.Key, s Snapshot) error {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if _, err := w.Write(s.Data); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	err = j.snapshots().put(ctx, key.String(), packed.Bytes(), map[string]string{
		metaVersion: strconv.FormatUint(s.Position.Version, 10),
		metaSeq:     strconv.FormatUint(s.Position.Seq, 10),
		metaHash:    hex.EncodeToString(s.Position.Hash),
		metaEvolve:  strconv.FormatUint(uint64(s.EvolveVersion), 10),
	})
	if err != nil {
		return fmt.Errorf("save the snapshot of %s at version %d: %w", key, s.Position.Version, err)
	}
	return nil
}

// LoadSnapshot implements Snapshots. A snapshot is a cache: whatever is wrong
// with it is a line in the log and no snapshot. A sound one that was taken
// later than the log goes says that the log lost its tail.
func (j *JetStream) LoadSnapshot(ctx context.Context, key domain.Key, evolveVersion uint32) (Snapshot, bool, error) {
	packed, info, ok, err := j.snapshots().get(ctx, key.String())
	if err == nil && !ok {
		return Snapshot{}, false, nil
	}
	var s Snapshot
	if err == nil {
		s, err = unpackSnapshot(packed, info.Metadata)
	}
	if err == nil {
		ok, err = j.holds(ctx, key, s.Position)
	}
	if err == nil && !ok {
		if err := j.reaches(ctx, key, s.Position.Version); errors.Is(err, ErrTailLost) {
			return Snapshot{}, false, fmt.Errorf("load the snapshot of %s: %w", key, err)
		}
	}
	ok = ok && s.EvolveVersion == evolveVersion
	if err != nil && ctx.Err() != nil {
		return Snapshot{}, false, fmt.Errorf("load the snapshot of %s: %w", key, ctx.Err())
	}
	if err != nil {
		j.log.Warn("a snapshot is ignored", "conversation", key, "error", err)
		return Snapshot{}, false, nil
	}
	return s, ok, nil
}

func unpackSnapshot(packed []byte, meta map[string]string) (s Snapshot, err error) {
	evolve, err1 := strconv.ParseUint(meta[metaEvolve], 10, 32)
	version, err2 := strconv.ParseUint(meta[metaVersion], 10, 64)
	seq, err3 := strconv.ParseUint(meta[metaSeq], 10, 64)
	hash, err4 := hex.DecodeString(meta[metaHash])
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return s, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return s, err
	}
	data, err := io.ReadAll(io.LimitReader(r, maxSnapshot+1))
	if err == nil && len(data) > maxSnapshot {
		err = fmt.Errorf("it unpacks to more than %d bytes", maxSnapshot)
	}
	if err != nil {
		return s, err
	}
	return Snapshot{Position: Position{Version: version, Seq: seq, Hash: hash}, EvolveVersion: uint32(evolve), Data: data}, nil
}

// reaches checks that the log goes as far as a version that was once read from
// it. What else is wrong with the log is told where it is read.
func (j *JetStream) reaches(ctx context.Context, key domain.Key, version uint64) error {
	s := &search{j: j, ctx: ctx, key: key, subject: EventSubject(key), found: make(map[uint64]*rollcallv1.Commit)}
	last, _, err := s.lastCommit()
	if err == nil && last.version < version {
		err = tailLost(key, last.version, version)
	}
	return err
}

// holds reports whether the log has that version, with that hash, at that place.
func (j *JetStream) holds(ctx context.Context, key domain.Key, p Position) (bool, error) {
	if p.Seq == 0 {
		return false, nil
	}
	m, ok, err := j.leaderGet(ctx, StreamEvents, getRequest{Seq: p.Seq})
	if err != nil || !ok || m.subject != EventSubject(key) {
		return false, err
	}
	c, err := openCommit(m)
	return err == nil && c.GetVersion() == p.Version && bytes.Equal(c.GetHash(), p.Hash), nil
}
