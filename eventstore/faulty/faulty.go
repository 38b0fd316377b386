// Package faulty decorates an event store with faults at its durable points.
//
// A Store stands for one node's view of the storage. At the chosen occurrence
// of the chosen point it fails, loses the answer, or crashes: after a crash
// every further call of that node answers ErrCrashed and nothing more reaches
// the storage, as if its process were gone. A test counts the points of an
// undisturbed run with Hits, then runs the scenario once for each of them:
//
//	for _, at := range undisturbed.Hits() {
//		for _, how := range faulty.Crashes {
//			node := faulty.New(storage, faulty.Fault{Point: at.Point, N: at.N, How: how})
//			…
//		}
//	}
//
// Package faulty starts no goroutine.
package faulty

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rollcall-dev/rollcall/eventstore"
)

// Point names a kind of durable step.
type Point string

// The durable points.
const (
	Append   Point = "append"
	Snapshot Point = "snapshot"
	PutBlob  Point = "blob put"
	Publish  Point = "inbox publish"
	// ConsumerDelete and ConsumerCreate are the two halves of Receive: what a
	// lost owner had in its hands is taken from it, and then given to this one.
	ConsumerDelete Point = "consumer delete"
	ConsumerCreate Point = "consumer create"
	Ack            Point = "inbox ack"
	DeadLetter     Point = "dead letter"
	Claim          Point = "lease claim"
	Renew          Point = "lease renew"
	Release        Point = "lease release"
	Arm            Point = "timer arm"
	Cancel         Point = "timer cancel"
	// Fire is the arrival of a due timer at its node; by then it is in the inbox.
	Fire Point = "timer fire"
	// Reply is outside the store: whoever answers a command wraps it in Do.
	Reply Point = "reply"
	// Any stands in a fault for every point: its N counts them all together.
	Any Point = "any"
)

// How says what happens at a point.
type How int

const (
	// Fail: nothing is done, the caller gets ErrFault, the node lives on.
	Fail How = iota + 1
	// LoseAck: it is done, the caller gets ErrFault (an append: also
	// ErrUnknown), the node lives on.
	LoseAck
	// CrashBefore: nothing is done and the node is gone.
	CrashBefore
	// CrashAfter: it is done, the caller learns so, and the node is gone
	// before it can do anything durable with that.
	CrashAfter
	// CrashLosingAck: it is done, the node is gone before it learns so.
	CrashLosingAck
)

// Crashes are the three ways to crash at a point.
var Crashes = []How{CrashBefore, CrashAfter, CrashLosingAck}

func (h How) String() string {
	names := [...]string{"none", "fail", "lose-ack", "crash-before", "crash-after", "crash-losing-ack"}
	if h < 0 || int(h) >= len(names) {
		return fmt.Sprintf("How(%d)", int(h))
	}
	return names[h]
}

// Fault strikes at the N-th occurrence of a point, counted from 1.
type Fault struct {
	Point Point
	N     int
	How   How
}

func (f Fault) String() string { return fmt.Sprintf("%s %d %s", f.Point, f.N, f.How) }

// Hit is one occurrence of a point.
type Hit struct {
	Point Point
	// N counts the occurrences of this point from 1.
	N int
}

var (
	// ErrFault is the error of a step that failed, or seemed to.
	ErrFault = errors.New("injected fault")
	// ErrCrashed is the answer to everything a crashed node asks.
	ErrCrashed = errors.New("node crashed")
)

// Store is a node's view of a store. It is safe for concurrent use.
type Store struct {
	inner eventstore.Store

	mu      sync.Mutex
	faults  []Fault
	counts  map[Point]int
	hits    []Hit
	dead    bool
	crash   context.Context
	kill    context.CancelFunc
	onCrash func()
}

var _ eventstore.Store = (*Store)(nil)

// New decorates a store with the given faults; with none it only counts.
func New(inner eventstore.Store, faults ...Fault) *Store {
	crash, kill := context.WithCancel(context.Background())
	return &Store{inner: inner, faults: faults, counts: make(map[Point]int), crash: crash, kill: kill}
}

// OnCrash sets what is called once when the node crashes, from the goroutine
// that met the fault: it must not wait for that goroutine. Set it before use.
func (s *Store) OnCrash(fn func()) { s.onCrash = fn }

// Crashed is closed when the node has crashed.
func (s *Store) Crashed() <-chan struct{} { return s.crash.Done() }

// Crash takes the node down from outside.
func (s *Store) Crash() {
	s.mu.Lock()
	first := !s.dead
	s.dead = true
	s.mu.Unlock()
	if !first {
		return
	}
	s.kill()
	if s.onCrash != nil {
		s.onCrash()
	}
}

// Hits lists the points met so far, in order.
func (s *Store) Hits() []Hit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Hit(nil), s.hits...)
}

// Add adds a fault while the node runs. Its N counts from the start.
func (s *Store) Add(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f)
}

// Do performs one durable step under the faults of its point. It is exported
// for steps outside the store, such as the publishing of a reply.
func (s *Store) Do(point Point, step func() error) error {
	how, err := s.meet(point)
	if err != nil {
		return err
	}
	switch how {
	case Fail:
		return fmt.Errorf("%s: %w", point, ErrFault)
	case CrashBefore:
		s.Crash()
		return fmt.Errorf("%s: %w", point, ErrCrashed)
	}
	err = step()
	switch how {
	case LoseAck:
		return fmt.Errorf("%s: answer lost: %w", point, ErrFault)
	case CrashAfter:
		s.Crash()
	case CrashLosingAck:
		s.Crash()
		return fmt.Errorf("%s: %w", point, ErrCrashed)
	}
	return err
}

// meet counts the point and finds its fault.
func (s *Store) meet(point Point) (How, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return 0, fmt.Errorf("%s: %w", point, ErrCrashed)
	}
	s.counts[point]++
	hit := Hit{Point: point, N: s.counts[point]}
	s.hits = append(s.hits, hit)
	for _, f := range s.faults {
		if f.Point == hit.Point && f.N == hit.N || f.Point == Any && f.N == len(s.hits) {
			return f.How, nil
		}
	}
	return 0, nil
}

// alive fails a read of a crashed node.
func (s *Store) alive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return ErrCrashed
	}
	return nil
}

// bound ends a waiting call when the node crashes.
func (s *Store) bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.crash, func() { cancel(ErrCrashed) })
	return ctx, func() { stop(); cancel(nil) }
}

// fate is the error that a caller sees: a crash hides whatever came of it.
func (s *Store) fate(err error) error {
	if dead := s.alive(); dead != nil {
		return dead
	}
	return err
}
