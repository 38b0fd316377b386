// Package memory is an event store in memory, for tests in virtual time.
//
// It keeps the promises of package eventstore and is held to the same suite,
// storetest. It starts no goroutine: timers are time.AfterFunc, leases and
// acknowledgement deadlines compare with time.Now, so that a store made inside
// a testing/synctest bubble lives in the bubble's time. One Store stands for
// the whole server: nodes that crash and come back share it.
package memory

import (
	"maps"
	"sync"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
)

// Store implements eventstore.Store. The zero value is not usable; see New.
type Store struct {
	// LeaseTTL is how long a lease lasts without renewal. Set it before use.
	LeaseTTL time.Duration

	mu sync.Mutex
	// changed is closed and replaced at every append.
	changed chan struct{}
	entries []entry
	heads   map[domain.Key]eventstore.Position

	snapshots map[domain.Key]eventstore.Snapshot
	blobs     map[string][]byte

	inboxSeq  uint64
	inbox     [domain.Partitions][]*message
	receivers [domain.Partitions]*receiver
	// recent holds when a Nats-Msg-Id was stored last.
	recent map[string]recentID
	dead   []eventstore.DeadLetter

	timers map[timerKey]*time.Timer

	epoch  uint64
	leases [domain.Partitions]lease

	nodes   map[string]announced
	drained map[string]bool
}

var _ eventstore.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store {
	return &Store{
		LeaseTTL:  eventstore.LeaseTTL,
		changed:   make(chan struct{}),
		heads:     make(map[domain.Key]eventstore.Position),
		snapshots: make(map[domain.Key]eventstore.Snapshot),
		blobs:     make(map[string][]byte),
		recent:    make(map[string]recentID),
		timers:    make(map[timerKey]*time.Timer),
		nodes:     make(map[string]announced),
		drained:   make(map[string]bool),
	}
}

// Close stops the timers. Nothing else needs closing.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, t := range s.timers {
		t.Stop()
		delete(s.timers, k)
	}
}

func cloneEnvelope(e eventstore.Envelope) eventstore.Envelope {
	e.Header = maps.Clone(e.Header)
	e.Data = append([]byte(nil), e.Data...)
	return e
}
