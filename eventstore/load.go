package eventstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/rollcall-dev/rollcall/domain"
)

// Load implements Log. It asks the leader how far the log goes, then reads in
// batches from any replica. What a replica lacks, or has wrong, is read from
// the leader before the log is called broken.
func (j *JetStream) Load(ctx context.Context, key domain.Key, after Position, fn func(Recorded) error) error {
	subject := EventSubject(key)
	r := &reader{j: j, key: key, subject: subject, version: after.Version, hash: after.Hash, next: after.Seq + 1, fn: fn}
	if after.Seq == 0 && !j.replicated {
		// The only copy knows by itself where it ends.
		if whole, err := r.toEnd(ctx); whole || err != nil && !passing(err) {
			return err
		}
	}
	last, ok, err := j.last(ctx, subject)
	if err != nil {
		return fmt.Errorf("load %s: %w", key, err)
	}
	if !ok && r.version == 0 {
		return nil
	}
	if !ok || last < r.next-1 {
		return fmt.Errorf("load %s after version %d: the log ends before it: %w", key, after.Version, domain.ErrGap)
	}
	for r.next <= last {
		from := r.next
		_, err := j.directGet(ctx, StreamEvents, getRequest{Seq: r.next, NextFor: subject, Batch: batchMessages}, r.read)
		if err == nil && r.next > from {
			continue
		}
		if err != nil && !passing(err) && !broken(err) {
			return err
		}
		// No progress: a lagging replica, or one whose copy is damaged.
		if err := r.fromLeader(ctx); err != nil {
			return err
		}
	}
	return nil
}

// last is the last sequence of a subject, as the leader has it.
func (j *JetStream) last(ctx context.Context, subject string) (seq uint64, ok bool, err error) {
	err = persist(ctx, func() (err error) {
		var m stored
		m, ok, err = j.leaderGet(ctx, StreamEvents, getRequest{LastFor: subject})
		seq = m.seq
		return err
	})
	return seq, ok, err
}

func broken(err error) bool {
	return errors.Is(err, domain.ErrGap) || errors.Is(err, domain.ErrHash)
}

// reader checks messages one by one as they come.
type reader struct {
	j       *JetStream
	key     domain.Key
	subject string
	// version and hash of the last commit read; next is the first sequence not
	// yet read.
	version uint64
	hash    []byte
	next    uint64
	fn      func(Recorded) error
}

func (r *reader) read(m stored) error {
	c, err := openCommit(m)
	if errors.Is(err, domain.ErrNotCommit) {
		r.next = m.seq + 1
		return nil
	}
	if err == nil {
		err = domain.CheckNext(r.version, r.hash, c)
	}
	if err != nil {
		return fmt.Errorf("load %s at version %d (stream sequence %d): %w", r.key, r.version+1, m.seq, err)
	}
	r.version, r.hash, r.next = c.GetVersion(), c.GetHash(), m.seq+1
	rec := Recorded{Key: r.key, Seq: m.seq, Commit: c, Raw: m.data}
	r.j.recent.add(rec)
	rec.Header = m.header
	return r.fn(rec)
}

// toEnd reads batch by batch until there is no more. It is not whole when there
// is more that does not come: damage, or an answer that was lost.
func (r *reader) toEnd(ctx context.Context) (whole bool, err error) {
	for {
		n, more, err := r.j.directBatch(ctx, StreamEvents, getRequest{Seq: r.next, NextFor: r.subject, Batch: batchMessages}, r.read)
		if err != nil || n == 0 && more > 0 {
			return false, err
		}
		if more == 0 {
			return true, nil
		}
	}
}

// fromLeader reads one message from the leader.
func (r *reader) fromLeader(ctx context.Context) error {
	var m stored
	var ok bool
	err := persist(ctx, func() (err error) {
		m, ok, err = r.j.leaderGet(ctx, StreamEvents, getRequest{Seq: r.next, NextFor: r.subject})
		return err
	})
	if err != nil {
		return fmt.Errorf("load %s: %w", r.key, err)
	}
	if !ok {
		return fmt.Errorf("load %s after version %d: the log became shorter: %w", r.key, r.version, domain.ErrGap)
	}
	return r.read(m)
}
