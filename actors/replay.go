package actors

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
)

// replays rebuilds the conversations of many partitions in one reading of the
// log. It lies in the order in which things happened, in packed blocks: to read
// it one conversation after the other unpacks each block again and again.
type replays struct {
	*runtime
	ctx context.Context

	mu sync.Mutex
	// waiting for a reading that has not begun.
	waiting []*replay
	reading bool
	// open counts those who have asked and not yet passed on what they got, and
	// the start of the node, when they are about to; idle is closed while there
	// are none.
	open int
	idle chan struct{}
}

type replay struct {
	partition int
	out       chan rebuilt
}

// rebuilt is what a reading gives for one partition.
type rebuilt struct {
	states []*loaded
	// broken conversations are to be loaded by themselves, which says why.
	broken []domain.Key
	err    error
}

const (
	// gather is how long a reading waits for other partitions to ask: those of
	// a node that starts do so at about the same time.
	gather = 500 * time.Millisecond
	// replayLimit is the length of a log that is not read from its beginning any
	// more to have its conversations in memory.
	replayLimit = 1_000_000
)

var (
	errWhole   = errors.New("the log was read to its end")
	errTooLong = fmt.Errorf("the log has more than %d commits", replayLimit)
)

func newReplays(ctx context.Context, rt *runtime) *replays {
	r := &replays{runtime: rt, ctx: ctx, open: 1, idle: make(chan struct{})}
	rt.steps.Go(func() {
		rt.peers.settle(ctx)
		pause(ctx, gather)
		r.leave()
	})
	return r
}

func (r *replays) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open--; r.open == 0 {
		close(r.idle)
	}
}

// of rebuilds a partition's conversations for the holder of its lease, as they
// stand after the call began, and passes them on.
func (r *replays) of(ctx context.Context, partition int, pass func(rebuilt)) {
	call := &replay{partition: partition, out: make(chan rebuilt, 1)}
	r.mu.Lock()
	if r.open++; r.open == 1 {
		r.idle = make(chan struct{})
	}
	r.waiting = append(r.waiting, call)
	if !r.reading {
		r.reading = true
		r.steps.Go(r.run)
	}
	r.mu.Unlock()
	defer r.leave()
	select {
	case got := <-call.out:
		pass(got)
	case <-ctx.Done():
	}
}

// settled waits until nobody is about to get conversations from a reading.
func (r *replays) settled(ctx context.Context) {
	r.mu.Lock()
	idle := r.idle
	r.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// run reads until nobody waits.
func (r *replays) run() {
	for {
		for end := time.Now().Add(gather); time.Now().Before(end) && r.some() < len(r.Partitions) && r.ctx.Err() == nil; {
			pause(r.ctx, gather/25)
		}
		r.mu.Lock()
		calls := r.waiting
		r.waiting = nil
		r.reading = len(calls) > 0
		r.mu.Unlock()
		if len(calls) == 0 {
			return
		}
		f := &replayed{byKey: map[domain.Key]*loaded{}, most: r.WarmMembers, partitions: map[int]*rebuilt{}}
		for _, c := range calls {
			f.partitions[c.partition] = &rebuilt{}
		}
		err := f.read(r.ctx, r.Store)
		f.check(r.ctx, r.Store)
		f.sort()
		for _, c := range calls {
			got := f.partitions[c.partition]
			if err != nil {
				got = &rebuilt{err: err}
			}
			c.out <- *got
		}
	}
}

func (r *replays) some() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting)
}

// replayed is one reading.
type replayed struct {
	byKey      map[domain.Key]*loaded
	most       int
	partitions map[int]*rebuilt
}

// read folds the log from its beginning to where it ends now.
func (f *replayed) read(ctx context.Context, log eventstore.Log) error {
	last, err := log.LastSeq(ctx)
	switch {
	case err != nil || last == 0:
		return err
	case last > replayLimit:
		return errTooLong
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	err = log.Follow(ctx, 0, func(rec eventstore.Recorded) error {
		f.add(rec)
		if rec.Seq >= last {
			return errWhole
		}
		return nil
	}, func(seq uint64, subject string, why error) {
		if key, err := eventstore.ParseEventSubject(subject); err == nil {
			f.of(key).err = why
		}
		if seq >= last {
			stop(errWhole)
		}
	})
	if errors.Is(err, errWhole) || errors.Is(context.Cause(ctx), errWhole) {
		return nil
	}
	return err
}

// of is what is held of a conversation; of those beyond the most, nothing.
func (f *replayed) of(key domain.Key) *loaded {
	l := f.byKey[key]
	if l == nil {
		l = &loaded{state: domain.New(key)}
		if f.partitions[key.Partition()] != nil && len(f.byKey) < f.most {
			f.byKey[key] = l
		}
	}
	return l
}

func (f *replayed) add(rec eventstore.Recorded) {
	if f.partitions[rec.Key.Partition()] == nil {
		return
	}
	l := f.of(rec.Key)
	if l.err != nil || f.byKey[rec.Key] == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			l.err = fmt.Errorf("crashed: %v", p)
		}
	}()
	if l.err = domain.CheckNext(l.state.Version, l.state.LastHash, rec.Commit); l.err == nil {
		l.state.Evolve(rec.Commit)
		l.at = rec.Position()
	}
}

// check looks for logs that went further once. What was appended since the
// reading is one of them too: it is loaded by itself, which tells.
func (f *replayed) check(ctx context.Context, store eventstore.Store) {
	for key, l := range f.byKey {
		if l.err == nil {
			l.err = eventstore.Reaches(ctx, store, key, l.at.Version)
		}
	}
}

// sort gives each partition its own.
func (f *replayed) sort() {
	for key, l := range f.byKey {
		p := f.partitions[key.Partition()]
		if l.err != nil {
			p.broken = append(p.broken, key)
		} else {
			p.states = append(p.states, l)
		}
	}
}
