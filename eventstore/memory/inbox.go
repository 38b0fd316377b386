package memory

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/rollcall-dev/rollcall/eventstore"
)

type message struct {
	seq      uint64
	time     time.Time
	envelope eventstore.Envelope
}

type recentID struct {
	seq  uint64
	time time.Time
}

// Publish implements eventstore.Inbox.
func (s *Store) Publish(ctx context.Context, e eventstore.Envelope) (uint64, bool, error) {
	if err := e.Check(); err != nil {
		return 0, false, err
	}
	if err := ctx.Err(); err != nil {
		return 0, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if id := e.Header[eventstore.HeaderMsgID]; id != "" {
		if r, ok := s.recent[id]; ok && now.Sub(r.time) < eventstore.InboxDuplicates {
			return r.seq, true, nil
		}
		s.recent[id] = recentID{seq: s.inboxSeq + 1, time: now}
	}
	return s.enqueue(e, now), false, nil
}

func (s *Store) enqueue(e eventstore.Envelope, now time.Time) uint64 {
	s.inboxSeq++
	p := e.Key.Partition()
	s.inbox[p] = append(s.inbox[p], &message{seq: s.inboxSeq, time: now, envelope: cloneEnvelope(e)})
	if r := s.receivers[p]; r != nil {
		r.wake()
	}
	return s.inboxSeq
}

// Pending counts the unacknowledged messages of a partition, for tests of
// what is due and what is quiescent.
func (s *Store) Pending(partition int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.inbox[partition])
}

// DeleteConsumers is the first half of Receive: whoever received the partition
// for an older lease does so no more, and nobody else does yet.
func (s *Store) DeleteConsumers(_ context.Context, l eventstore.Lease) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deleteConsumers(l)
}

func (s *Store) deleteConsumers(l eventstore.Lease) error {
	old := s.receivers[l.Partition]
	switch {
	case old == nil:
		return nil
	case old.lease.Epoch > l.Epoch:
		return lost(l)
	}
	s.receivers[l.Partition] = nil
	old.end()
	return nil
}

// Receive implements eventstore.Inbox.
func (s *Store) Receive(_ context.Context, l eventstore.Lease) (eventstore.Receiver, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.deleteConsumers(l); err != nil {
		return nil, err
	}
	r := &receiver{
		store: s, lease: l,
		woken: make(chan struct{}, 1), ended: make(chan struct{}),
		deadline: make(map[uint64]time.Time),
	}
	s.receivers[l.Partition] = r
	return r, nil
}

func lost(l eventstore.Lease) error {
	return fmt.Errorf("partition %d at epoch %d: %w", l.Partition, l.Epoch, eventstore.ErrPartitionLost)
}

// DeadLetters implements eventstore.Inbox.
func (s *Store) DeadLetters(_ context.Context, limit int) ([]eventstore.DeadLetter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := slices.Clone(s.dead)
	slices.Reverse(newest)
	return newest[:min(limit, len(newest))], nil
}

type receiver struct {
	store *Store
	lease eventstore.Lease
	woken chan struct{}
	// ended is closed when the receiver is closed or replaced.
	ended  chan struct{}
	closed bool

	// last is the highest sequence delivered; deadline holds when a delivered
	// message comes again.
	last     uint64
	deadline map[uint64]time.Time
	// earliest is no later than the earliest deadline; zero: none.
	earliest time.Time
}

func (r *receiver) wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

// end wakes whoever waits; the store's lock is held.
func (r *receiver) end() {
	if !r.closed {
		r.closed = true
		close(r.ended)
	}
}

// Next implements eventstore.Receiver.
func (r *receiver) Next(ctx context.Context) (eventstore.Delivery, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m, again, err := r.take()
		if err != nil {
			return nil, err
		}
		if m != nil {
			return &delivery{r, m}, nil
		}
		var timer *time.Timer
		var due <-chan time.Time
		if !again.IsZero() {
			timer = time.NewTimer(time.Until(again))
			due = timer.C
		}
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-r.ended:
		case <-r.woken:
		case <-due:
		}
		if timer != nil {
			timer.Stop()
		}
		if err != nil {
			return nil, err
		}
	}
}

// take returns the next message, or when the earliest delivered one is to come
// again: zero for never.
func (r *receiver) take() (*message, time.Time, error) {
	s := r.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.closed {
		return nil, time.Time{}, lost(r.lease)
	}
	queue := s.inbox[r.lease.Partition]
	now := time.Now()
	if !r.earliest.IsZero() && !r.earliest.After(now) {
		r.earliest = time.Time{}
		for _, m := range queue {
			at, ok := r.deadline[m.seq]
			if !ok {
				break
			}
			if !at.After(now) {
				r.earliest = now // there may be more of them
				return r.deliver(m, now), time.Time{}, nil
			}
			r.expect(at)
		}
	}
	i := sort.Search(len(queue), func(i int) bool { return queue[i].seq > r.last })
	if i == len(queue) {
		return nil, r.earliest, nil
	}
	r.last = queue[i].seq
	return r.deliver(queue[i], now), time.Time{}, nil
}

func (r *receiver) deliver(m *message, now time.Time) *message {
	r.deadline[m.seq] = now.Add(eventstore.AckWait)
	r.expect(r.deadline[m.seq])
	return m
}

func (r *receiver) expect(at time.Time) {
	if r.earliest.IsZero() || at.Before(r.earliest) {
		r.earliest = at
	}
}

// Close implements eventstore.Receiver.
func (r *receiver) Close() {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	r.end()
}

type delivery struct {
	receiver *receiver
	message  *message
}

func (d *delivery) Envelope() eventstore.Envelope { return cloneEnvelope(d.message.envelope) }
func (d *delivery) Seq() uint64                   { return d.message.seq }
func (d *delivery) Time() time.Time               { return d.message.time }

// held reports whether the delivery still counts; the store's lock is held.
// A closed receiver's acknowledgements still count, a replaced one's do not.
func (d *delivery) held() error {
	r := d.receiver
	if r.store.receivers[r.lease.Partition] != r {
		return lost(r.lease)
	}
	return nil
}

// Ack implements eventstore.Delivery.
func (d *delivery) Ack(context.Context) error {
	s := d.receiver.store
	s.mu.Lock()
	defer s.mu.Unlock()
	return d.ack()
}

func (d *delivery) ack() error {
	if err := d.held(); err != nil {
		return err
	}
	s, p := d.receiver.store, d.receiver.lease.Partition
	delete(d.receiver.deadline, d.message.seq)
	s.inbox[p] = slices.DeleteFunc(s.inbox[p], func(m *message) bool { return m == d.message })
	return nil
}

// Hold implements eventstore.Delivery.
func (d *delivery) Hold() error {
	s := d.receiver.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := d.held(); err != nil {
		return err
	}
	if _, ok := d.receiver.deadline[d.message.seq]; ok {
		d.receiver.deliver(d.message, time.Now())
	}
	return nil
}

// Dead implements eventstore.Delivery.
func (d *delivery) Dead(_ context.Context, reason string) error {
	s := d.receiver.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := d.held(); err != nil {
		return err
	}
	s.dead = append(s.dead, eventstore.DeadLetter{Envelope: d.Envelope(), Reason: reason, Time: time.Now()})
	return d.ack()
}

var _ eventstore.Receiver = (*receiver)(nil)
