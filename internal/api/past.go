package api

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/projections"
)

// past makes read models of one conversation as it stood at a version, by the
// same fold of the same log, cut off there. It lasts until fn returns.
func (s *Server) past(ctx context.Context, key domain.Key, at uint64, fn func(Views) error) (err error) {
	dir, err := os.MkdirTemp("", "rollcall-past-")
	if err != nil {
		return fmt.Errorf("read the past: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := projections.Open(ctx, filepath.Join(dir, "past.db"))
	if err != nil {
		return fmt.Errorf("read the past: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ctx, stop := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stop(db.Run(ctx, prefix{Log: s.cfg.Store, key: key, until: at}))
	}()
	defer func() { stop(nil); <-ended }()
	if err := db.WaitFor(ctx, key, at); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("read version %d of conversation %s: %w", at, key.Conversation, err)
	}
	return fn(db)
}

// prefix is a log that holds one conversation up to a version.
type prefix struct {
	eventstore.Log
	key   domain.Key
	until uint64
}

// Follow implements eventstore.Log.
func (p prefix) Follow(ctx context.Context, _ uint64, fn func(eventstore.Recorded) error, _ func(uint64, string, error)) error {
	err := p.Load(ctx, p.key, eventstore.Position{}, func(r eventstore.Recorded) error {
		if r.Commit.GetVersion() > p.until {
			return errEnough
		}
		return fn(r)
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}
