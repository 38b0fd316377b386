package api

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
)

// fold is a conversation's state, read from its log.
type fold struct {
	state    *domain.State
	names    Names
	position eventstore.Position
	// seqs are the stream sequences of versions 1, 2, ...
	seqs []uint64
}

func newFold(key domain.Key) *fold { return &fold{state: domain.New(key), names: Names{}} }

func (f *fold) add(r eventstore.Recorded) {
	f.state.Evolve(r.Commit)
	f.names.Add(r.Commit)
	f.position = r.Position()
	f.seqs = append(f.seqs, r.Seq)
}

// folds keeps the states that were asked for last.
type folds struct {
	store Store

	mu     sync.Mutex
	byKey  map[domain.Key]*list.Element
	recent *list.List
}

type cachedFold struct {
	key domain.Key
	// lock holds a token while somebody uses fold: a mutex that gives up with a
	// context.
	lock chan struct{}
	fold *fold
}

const maxFolds = 128

func newFolds(s Store) *folds {
	return &folds{store: s, byKey: make(map[domain.Key]*list.Element), recent: list.New()}
}

func (fs *folds) entry(key domain.Key) *cachedFold {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if e, ok := fs.byKey[key]; ok {
		fs.recent.MoveToFront(e)
		return e.Value.(*cachedFold) //nolint:forcetypeassert // only these are put in
	}
	c := &cachedFold{key: key, lock: make(chan struct{}, 1)}
	fs.byKey[key] = fs.recent.PushFront(c)
	if fs.recent.Len() > maxFolds {
		last := fs.recent.Remove(fs.recent.Back()).(*cachedFold) //nolint:forcetypeassert // only these are put in
		delete(fs.byKey, last.key)
	}
	return c
}

// use folds a conversation to the end of its log, or to the version at when it
// is above 0, and calls fn with it while nobody else does.
func (fs *folds) use(ctx context.Context, key domain.Key, at uint64, fn func(*fold) error) error {
	if at > 0 {
		f := newFold(key)
		if err := fs.load(ctx, f, at); err != nil {
			return err
		}
		if f.state.Version < at {
			return versionUnknown(key, at, f.state.Version)
		}
		return fn(f)
	}
	c := fs.entry(key)
	select {
	case c.lock <- struct{}{}:
		defer func() { <-c.lock }()
	case <-ctx.Done():
		return ctx.Err()
	}
	f := c.fold
	if f == nil {
		f = newFold(key)
	}
	// Until it is whole it is no cache.
	c.fold = nil
	if err := fs.load(ctx, f, 0); err != nil {
		return err
	}
	if f.state.Version == 0 {
		return conversationUnknown(key.Conversation)
	}
	c.fold = f
	return fn(f)
}

// position is the place of a version in the log; the zero Position when the log
// does not hold it.
func (fs *folds) position(ctx context.Context, key domain.Key, version uint64) (eventstore.Position, error) {
	var p eventstore.Position
	err := fs.use(ctx, key, 0, func(f *fold) error {
		switch {
		case version == f.position.Version:
			p = f.position
		case version < f.position.Version:
			p = eventstore.Position{Version: version, Seq: f.seqs[version-1]}
		}
		return nil
	})
	if err != nil || p.Version == 0 || p.Hash != nil {
		return p, err
	}
	commits, err := fs.store.At(ctx, key, []uint64{version})
	if err != nil {
		return p, logError(key, err)
	}
	p.Hash = commits[version].GetHash()
	return p, nil
}

var errEnough = errors.New("enough")

// load folds on to the end of the log, or to the version until.
func (fs *folds) load(ctx context.Context, f *fold, until uint64) error {
	err := fs.store.Load(ctx, f.state.Key, f.position, func(r eventstore.Recorded) error {
		if until > 0 && r.Commit.GetVersion() > until {
			return errEnough
		}
		f.add(r)
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return logError(f.state.Key, err)
}

// logError gives a failure to read the log its words; nil stays nil.
func logError(key domain.Key, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, eventstore.ErrTailLost) {
		return domain.Refuse("log-tail-lost", "the newest commits of conversation "+key.Conversation+" are gone", err.Error(),
			"restore the data directory from a backup; docs/storage.md says how to go on without them")
	}
	if errors.Is(err, domain.ErrGap) || errors.Is(err, domain.ErrHash) {
		return domain.Refuse("log-broken", "the log of conversation "+key.Conversation+" cannot be trusted", err.Error(),
			"rollcall verify says where it breaks; restore the data directory from a backup")
	}
	return inTime("the log of conversation "+key.Conversation+" cannot be read", fmt.Errorf("read the log of conversation %s: %w", key.Conversation, err))
}
