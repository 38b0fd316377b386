package eventstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// ErrTailLost: the log ends before a version that was read from it. It comes
// with domain.ErrGap.
var ErrTailLost = errors.New("the log lost its tail")

// Tails knows how far logs went, from somewhere else than the log itself.
type Tails interface {
	// Tail is the highest version of a conversation that was ever read from its
	// log; 0 when none was.
	Tail(ctx context.Context, key domain.Key) (uint64, error)
}

// Guard makes a store that notices a lost tail. A chain of versions and hashes
// shows every gap but one: when the newest commits are gone, what is left is
// whole.
func Guard(s Store, tails Tails, log *slog.Logger) Store {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &guarded{Store: s, tails: tails, log: log}
}

type guarded struct {
	Store
	tails Tails
	log   *slog.Logger
}

// Load implements Log. What was known is asked before the log is read: a
// commit that comes meanwhile must not look lost.
func (g *guarded) Load(ctx context.Context, key domain.Key, after Position, fn func(Recorded) error) error {
	known := g.tail(ctx, key)
	last := after.Version
	err := g.Store.Load(ctx, key, after, func(r Recorded) error {
		last = r.Commit.GetVersion()
		return fn(r)
	})
	if err == nil && last < known {
		return tailLost(key, last, known)
	}
	return err
}

// Reaches checks that a log which was read to a version goes as far as it ever
// went, for those who read by Follow. A store that is not guarded knows nothing
// of it.
func Reaches(ctx context.Context, s Store, key domain.Key, version uint64) error {
	if g, ok := s.(*guarded); ok {
		if known := g.tail(ctx, key); version < known {
			return tailLost(key, version, known)
		}
	}
	return nil
}

// At implements Log. What is not there is looked for again after it was asked
// how far the log went: it may have come meanwhile.
func (g *guarded) At(ctx context.Context, key domain.Key, versions []uint64) (map[uint64]*rollcallv1.Commit, error) {
	found, err := g.Store.At(ctx, key, versions)
	if !errors.Is(err, ErrNotFound) {
		return found, err
	}
	known := g.tail(ctx, key)
	if found, err = g.Store.At(ctx, key, versions); !errors.Is(err, ErrNotFound) {
		return found, err
	}
	for _, v := range versions {
		if v > 0 && v <= known {
			return nil, fmt.Errorf("%w: %w: version %d of %s is not in the log, and was read from it before", ErrTailLost, domain.ErrGap, v, key)
		}
	}
	return nil, err
}

// tail is 0 where nothing can be known: the log is then taken as it is.
func (g *guarded) tail(ctx context.Context, key domain.Key) uint64 {
	known, err := g.tails.Tail(ctx, key)
	if err != nil && ctx.Err() == nil {
		g.log.Warn("how far the log went cannot be looked up; its end is not checked", "conversation", key.String(), "error", err)
	}
	return known
}

func tailLost(key domain.Key, last, known uint64) error {
	return fmt.Errorf("%w: %w: the log of %s ends at version %d, and version %d was read from it before", ErrTailLost, domain.ErrGap, key, last, known)
}
