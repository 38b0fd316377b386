package faulty

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Append implements eventstore.Log.
func (s *Store) Append(ctx context.Context, key domain.Key, after eventstore.Position, c *rollcallv1.Commit) (r eventstore.Recorded, err error) {
	err = s.Do(Append, func() (err error) { r, err = s.inner.Append(ctx, key, after, c); return err })
	if errors.Is(err, ErrFault) {
		// Whether it was stored is exactly what the caller cannot know.
		err = fmt.Errorf("%w: %w", eventstore.ErrUnknown, err)
	}
	if err != nil {
		return eventstore.Recorded{}, err
	}
	return r, nil
}

// Load implements eventstore.Log.
func (s *Store) Load(ctx context.Context, key domain.Key, after eventstore.Position, fn func(eventstore.Recorded) error) error {
	if err := s.alive(); err != nil {
		return err
	}
	return s.inner.Load(ctx, key, after, func(r eventstore.Recorded) error {
		if err := s.alive(); err != nil {
			return err
		}
		return fn(r)
	})
}

// At implements eventstore.Log.
func (s *Store) At(ctx context.Context, key domain.Key, versions []uint64) (map[uint64]*rollcallv1.Commit, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	return s.inner.At(ctx, key, versions)
}

// Follow implements eventstore.Log.
func (s *Store) Follow(ctx context.Context, seq uint64, fn func(eventstore.Recorded) error, skipped func(uint64, string, error)) error {
	ctx, done := s.bound(ctx)
	defer done()
	return s.fate(s.inner.Follow(ctx, seq, fn, skipped))
}

// Current implements eventstore.Log.
func (s *Store) Current(ctx context.Context) error {
	if err := s.alive(); err != nil {
		return err
	}
	return s.inner.Current(ctx)
}

// LastSeq implements eventstore.Log.
func (s *Store) LastSeq(ctx context.Context) (uint64, error) {
	if err := s.alive(); err != nil {
		return 0, err
	}
	return s.inner.LastSeq(ctx)
}

// Conversations implements eventstore.Log.
func (s *Store) Conversations(ctx context.Context, partitions []int) ([]domain.Key, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	return s.inner.Conversations(ctx, partitions)
}

// SaveSnapshot implements eventstore.Snapshots.
func (s *Store) SaveSnapshot(ctx context.Context, key domain.Key, snap eventstore.Snapshot) error {
	return s.Do(Snapshot, func() error { return s.inner.SaveSnapshot(ctx, key, snap) })
}

// LoadSnapshot implements eventstore.Snapshots.
func (s *Store) LoadSnapshot(ctx context.Context, key domain.Key, evolveVersion uint32) (eventstore.Snapshot, bool, error) {
	if err := s.alive(); err != nil {
		return eventstore.Snapshot{}, false, err
	}
	return s.inner.LoadSnapshot(ctx, key, evolveVersion)
}

// PutBlob implements eventstore.Blobs.
func (s *Store) PutBlob(ctx context.Context, key domain.Key, data []byte) (b *rollcallv1.Blob, err error) {
	err = s.Do(PutBlob, func() (err error) { b, err = s.inner.PutBlob(ctx, key, data); return err })
	if err != nil {
		return nil, err
	}
	return b, nil
}

// GetBlob implements eventstore.Blobs.
func (s *Store) GetBlob(ctx context.Context, key domain.Key, b *rollcallv1.Blob) ([]byte, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	return s.inner.GetBlob(ctx, key, b)
}

// Publish implements eventstore.Inbox.
func (s *Store) Publish(ctx context.Context, e eventstore.Envelope) (seq uint64, duplicate bool, err error) {
	err = s.Do(Publish, func() (err error) { seq, duplicate, err = s.inner.Publish(ctx, e); return err })
	if err != nil {
		return 0, false, err
	}
	return seq, duplicate, nil
}

// twoSteps is a store whose Receive can be broken off between its halves.
type twoSteps interface {
	DeleteConsumers(ctx context.Context, l eventstore.Lease) error
}

// Receive implements eventstore.Inbox.
func (s *Store) Receive(ctx context.Context, l eventstore.Lease) (r eventstore.Receiver, err error) {
	if inner, ok := s.inner.(twoSteps); ok {
		if err := s.Do(ConsumerDelete, func() error { return inner.DeleteConsumers(ctx, l) }); err != nil {
			return nil, err
		}
	}
	err = s.Do(ConsumerCreate, func() (err error) { r, err = s.inner.Receive(ctx, l); return err })
	if err != nil {
		if r != nil {
			r.Close()
		}
		return nil, err
	}
	return &receiver{s, r}, nil
}

// DeadLetters implements eventstore.Inbox.
func (s *Store) DeadLetters(ctx context.Context, limit int) ([]eventstore.DeadLetter, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	return s.inner.DeadLetters(ctx, limit)
}

type receiver struct {
	store *Store
	inner eventstore.Receiver
}

func (r *receiver) Next(ctx context.Context) (eventstore.Delivery, error) {
	ctx, done := r.store.bound(ctx)
	defer done()
	d, err := r.inner.Next(ctx)
	if err := r.store.fate(err); err != nil {
		return nil, err
	}
	if isTimer(d.Envelope()) {
		if err := r.store.Do(Fire, func() error { return nil }); err != nil {
			return nil, err
		}
	}
	return &delivery{d, r.store}, nil
}

func isTimer(e eventstore.Envelope) bool {
	var c rollcallv1.Command
	return e.Header[eventstore.HeaderContentType] == eventstore.ContentTypeProtobuf && proto.Unmarshal(e.Data, &c) == nil && c.GetFireTimer() != nil
}

func (r *receiver) Close() { r.inner.Close() }

type delivery struct {
	eventstore.Delivery
	store *Store
}

func (d *delivery) Ack(ctx context.Context) error {
	return d.store.Do(Ack, func() error { return d.Delivery.Ack(ctx) })
}

func (d *delivery) Hold() error {
	if err := d.store.alive(); err != nil {
		return err
	}
	return d.Delivery.Hold()
}

func (d *delivery) Dead(ctx context.Context, reason string) error {
	return d.store.Do(DeadLetter, func() error { return d.Delivery.Dead(ctx, reason) })
}

// Claim implements eventstore.Leases.
func (s *Store) Claim(ctx context.Context, node string, partition int) (l eventstore.Lease, err error) {
	err = s.Do(Claim, func() (err error) { l, err = s.inner.Claim(ctx, node, partition); return err })
	if err != nil {
		return eventstore.Lease{}, err
	}
	return l, nil
}

// Renew implements eventstore.Leases.
func (s *Store) Renew(ctx context.Context, l eventstore.Lease) error {
	return s.Do(Renew, func() error { return s.inner.Renew(ctx, l) })
}

// Release implements eventstore.Leases.
func (s *Store) Release(ctx context.Context, l eventstore.Lease) error {
	return s.Do(Release, func() error { return s.inner.Release(ctx, l) })
}

// Announce implements eventstore.Nodes. Nothing durable hangs on it: a crash
// here is no other than one at the next point.
func (s *Store) Announce(ctx context.Context, n eventstore.NodeInfo) (time.Duration, error) {
	if err := s.alive(); err != nil {
		return 0, err
	}
	return s.inner.Announce(ctx, n)
}

// Withdraw implements eventstore.Nodes.
func (s *Store) Withdraw(ctx context.Context, node string) error {
	if err := s.alive(); err != nil {
		return err
	}
	return s.inner.Withdraw(ctx, node)
}

// Cluster implements eventstore.Nodes.
func (s *Store) Cluster(ctx context.Context) (eventstore.Cluster, error) {
	if err := s.alive(); err != nil {
		return eventstore.Cluster{}, err
	}
	return s.inner.Cluster(ctx)
}

// Drain implements eventstore.Nodes.
func (s *Store) Drain(ctx context.Context, node string, on bool) error {
	if err := s.alive(); err != nil {
		return err
	}
	return s.inner.Drain(ctx, node, on)
}

// ArmTimer implements eventstore.Timers.
func (s *Store) ArmTimer(ctx context.Context, key domain.Key, timer string, due time.Time) error {
	return s.Do(Arm, func() error { return s.inner.ArmTimer(ctx, key, timer, due) })
}

// CancelTimer implements eventstore.Timers.
func (s *Store) CancelTimer(ctx context.Context, key domain.Key, timer string) error {
	return s.Do(Cancel, func() error { return s.inner.CancelTimer(ctx, key, timer) })
}
