package eventstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// At implements Log.
func (j *JetStream) At(ctx context.Context, key domain.Key, versions []uint64) (map[uint64]*rollcallv1.Commit, error) {
	found := make(map[uint64]*rollcallv1.Commit, len(versions))
	wanted := slices.Compact(slices.Sorted(slices.Values(versions)))
	s := &search{j: j, ctx: ctx, key: key, subject: EventSubject(key), found: found}
	for i, v := range wanted {
		if found[v] != nil {
			continue
		}
		if c, ok := j.recent.get(key, v); ok {
			found[v] = c
			continue
		}
		if err := s.find(v, reach(wanted[i:])); err != nil {
			return nil, fmt.Errorf("version %d of %s: %w", v, key, err)
		}
	}
	for v := range found {
		if _, ok := slices.BinarySearch(wanted, v); !ok {
			delete(found, v)
		}
	}
	return found, nil
}

// reach is how far to read on from the first version: to the last one that is
// wanted too and costs less to read along than to look for.
func reach(wanted []uint64) uint64 {
	far := wanted[0]
	for _, v := range wanted[1:] {
		if v-far > searchAbove || v-wanted[0] >= batchMessages {
			break
		}
		far = v
	}
	return far
}

// searchAbove is the distance in versions above which halving is cheaper than
// reading on.
const searchAbove = 32

// search looks for versions in the stream: sequences of a conversation rise
// with its versions, so it halves the range between two known places until
// what is left is read at once.
type search struct {
	j       *JetStream
	ctx     context.Context
	key     domain.Key
	subject string
	found   map[uint64]*rollcallv1.Commit
}

func (s *search) find(version, far uint64) error {
	if version == 0 {
		return ErrNotFound
	}
	below, above, ok := s.j.recent.around(s.key, version)
	if !ok {
		last, err := s.reaching(version)
		if err != nil {
			return err
		}
		above = last
	}
	for s.found[version] == nil {
		if above.version-below.version <= searchAbove {
			return s.scan(below, version, far)
		}
		if above.seq <= below.seq+1 {
			return domain.ErrGap
		}
		mid := below.seq + 1 + (above.seq-below.seq-1)/2
		m, err := s.probe(mid)
		switch {
		case err != nil:
			return err
		case m.version >= above.version:
			// Nothing of this conversation between mid and above.
			above.seq = mid
		case m.version >= version:
			above = m
		default:
			below = m
		}
	}
	return nil
}

// doubt is how long a version that a leader does not have is looked for again. A
// leader that was just elected answers before it has caught up with what the
// last one acknowledged.
const doubt = time.Second

// reaching finds the newest commit, which is not before the version. Errors:
// ErrNotFound.
func (s *search) reaching(version uint64) (mark, error) {
	begun := time.Now()
	for wait := newBackoff(); ; {
		last, exists, err := s.lastCommit()
		if err != nil || exists && version <= last.version {
			return last, err
		}
		if !s.j.replicated || time.Since(begun) > doubt || wait.sleep(s.ctx) != nil {
			return last, ErrNotFound
		}
	}
}

// scan reads on from a known place until it meets the version, and far beyond
// it if the first batch holds that.
func (s *search) scan(below mark, version, far uint64) error {
	batch := int(min(far-below.version, batchMessages))
	for next := below.seq + 1; ; {
		n, err := s.read(getRequest{Seq: next, NextFor: s.subject, Batch: batch}, func(m mark) { next = m.seq + 1 })
		if err != nil {
			return err
		}
		if s.found[version] != nil {
			return nil
		}
		if n == 0 {
			return domain.ErrGap
		}
	}
}

// probe reads the first commit at or after a sequence.
func (s *search) probe(seq uint64) (at mark, err error) {
	for at.version == 0 {
		n, err := s.read(getRequest{Seq: seq, NextFor: s.subject, Batch: 1}, func(m mark) { at, seq = m, m.seq+1 })
		if err != nil {
			return at, err
		}
		if n == 0 {
			return at, domain.ErrGap
		}
	}
	return at, nil
}

// read gets messages and keeps the commits among them. Each passes seen, those
// that are no commit with version 0. When a replica has nothing, the leader is
// asked.
func (s *search) read(q getRequest, seen func(mark)) (int, error) {
	keep := func(m stored) error {
		c, err := openCommit(m)
		if errors.Is(err, domain.ErrNotCommit) {
			seen(mark{0, m.seq})
			return nil
		}
		if err != nil {
			return fmt.Errorf("stream sequence %d: %w", m.seq, err)
		}
		s.found[c.GetVersion()] = c
		s.j.recent.add(Recorded{Key: s.key, Seq: m.seq, Commit: c, Raw: m.data})
		seen(mark{c.GetVersion(), m.seq})
		return nil
	}
	n, err := s.j.directGet(s.ctx, StreamEvents, q, keep)
	if n > 0 && err == nil || err != nil && !passing(err) && !broken(err) {
		return n, err
	}
	q.Batch = 0
	var m stored
	var ok bool
	err = persist(s.ctx, func() (err error) {
		m, ok, err = s.j.leaderGet(s.ctx, StreamEvents, q)
		return err
	})
	if err != nil || !ok {
		return 0, err
	}
	return 1, keep(m)
}

// lastCommit finds the newest commit, and reports whether there is one. A
// message behind it that is no commit hides it from a look at the last
// message alone; then the log is read through.
func (s *search) lastCommit() (last mark, ok bool, err error) {
	var m stored
	err = persist(s.ctx, func() (err error) {
		m, ok, err = s.j.leaderGet(s.ctx, StreamEvents, getRequest{LastFor: s.subject})
		return err
	})
	if err != nil || !ok {
		return last, false, err
	}
	c, err := openCommit(m)
	if err == nil {
		s.found[c.GetVersion()] = c
		return mark{c.GetVersion(), m.seq}, true, nil
	}
	if !errors.Is(err, domain.ErrNotCommit) {
		return last, false, err
	}
	err = s.j.Load(s.ctx, s.key, Position{}, func(r Recorded) error {
		last, ok = mark{r.Commit.GetVersion(), r.Seq}, true
		return nil
	})
	return last, last.version > 0, err
}
