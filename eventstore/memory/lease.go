package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
)

type lease struct {
	eventstore.Lease
	until time.Time
}

// Claim implements eventstore.Leases.
func (s *Store) Claim(_ context.Context, node string, partition int) (eventstore.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := &s.leases[partition]
	if held.Node != "" && held.Node != node && time.Now().Before(held.until) {
		return eventstore.Lease{}, fmt.Errorf("claim partition %d: held by %s at epoch %d: %w", partition, held.Node, held.Epoch, eventstore.ErrHeld)
	}
	s.epoch++
	held.Lease = eventstore.Lease{Partition: partition, Node: node, Epoch: s.epoch, TTL: s.LeaseTTL}
	held.until = time.Now().Add(s.LeaseTTL)
	return held.Lease, nil
}

// Renew implements eventstore.Leases.
func (s *Store) Renew(_ context.Context, l eventstore.Lease) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := &s.leases[l.Partition]
	if held.Lease != l || !time.Now().Before(held.until) {
		return lost(l)
	}
	held.until = time.Now().Add(s.LeaseTTL)
	return nil
}

// Release implements eventstore.Leases.
func (s *Store) Release(_ context.Context, l eventstore.Lease) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held := &s.leases[l.Partition]; held.Lease == l {
		*held = lease{}
	}
	return nil
}

type timerKey struct {
	key   domain.Key
	timer string
}

// ArmTimer implements eventstore.Timers.
func (s *Store) ArmTimer(_ context.Context, key domain.Key, timer string, due time.Time) error {
	e, err := eventstore.TimerEnvelope(key, timer, due)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := timerKey{key, timer}
	if old := s.timers[k]; old != nil {
		old.Stop()
	}
	var t *time.Timer
	t = time.AfterFunc(time.Until(due), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.timers[k] == t {
			delete(s.timers, k)
			s.enqueue(e, time.Now())
		}
	})
	s.timers[k] = t
	return nil
}

// CancelTimer implements eventstore.Timers.
func (s *Store) CancelTimer(_ context.Context, key domain.Key, timer string) error {
	if err := eventstore.CheckTimer(key, timer); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := timerKey{key, timer}
	if t := s.timers[k]; t != nil {
		t.Stop()
		delete(s.timers, k)
	}
	return nil
}
