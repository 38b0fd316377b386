package projections

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
)

// A batch, one transaction, takes what is there, up to these limits.
const (
	batchCommits = 256
	batchBytes   = 8 << 20
	// ahead is how many commits are read while a batch is written.
	ahead = batchCommits
	// gather is how long after a batch the next one begins at the earliest,
	// unless somebody waits for it: a transaction costs about the same for one
	// commit as for many.
	gather = 100 * time.Millisecond
)

// item is one message of the log as it comes: a commit, or what is none.
type item struct {
	eventstore.Recorded
	// skipped is why the message is no commit; its Key may be empty then.
	skipped error
}

// errFile marks a failure of the file: trying again with the same log will not
// help.
var errFile = errors.New("the read models cannot be written")

// Run folds the log into the read models and follows it until ctx ends, whose
// error it returns; any other error says that the file itself failed. A log
// that cannot be reached is tried again for ever. Run goes on where the last
// one stopped; it starts one goroutine, which has ended when it returns.
func (db *DB) Run(ctx context.Context, log eventstore.Log) error {
	pause := backoff.NewExponentialBackOff()
	pause.MaxInterval = 15 * time.Second
	for {
		moved, err := db.follow(ctx, log)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errFile):
			return err
		case moved:
			pause.Reset()
		}
		wait := pause.NextBackOff()
		db.log.WarnContext(ctx, "following the log stopped and is tried again", "because", err, "in", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// follow folds until the log fails. moved is true when anything came.
func (db *DB) follow(ctx context.Context, log eventstore.Log) (moved bool, err error) {
	seq, err := db.meet(ctx, log)
	if err != nil {
		return false, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	items := make(chan item, ahead)
	ended := make(chan error, 1)
	go func() {
		send := func(i item) error {
			select {
			case items <- i:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		ended <- log.Follow(ctx, seq,
			func(r eventstore.Recorded) error { return send(item{Recorded: r}) },
			func(seq uint64, subject string, why error) {
				key, _ := eventstore.ParseEventSubject(subject) // the empty key: nobody's
				_ = send(item{Recorded: eventstore.Recorded{Key: key, Seq: seq}, skipped: why})
			})
		close(items)
	}()
	var last time.Time
	for first := range items {
		if err := db.fold(ctx, db.collect(first, items, last.Add(gather))); err != nil {
			stop()
			<-ended
			return true, err
		}
		moved, last = true, time.Now()
	}
	return moved, <-ended
}

// collect adds to the first item what is there already, and what comes until
// the given time or until somebody wants to read.
func (db *DB) collect(first item, more <-chan item, until time.Time) []item {
	items, size := []item{first}, len(first.Raw)
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	waiting := timer.C
	for len(items) < batchCommits && size < batchBytes {
		var next item
		ok := false
		select {
		case next, ok = <-more:
		default:
			if waiting == nil {
				return items
			}
			select {
			case next, ok = <-more:
			case <-waiting:
				waiting = nil
				continue
			case <-db.wanted:
				waiting = nil
				continue
			}
		}
		if !ok {
			return items
		}
		items, size = append(items, next), size+len(next.Raw)
	}
	return items
}

// want has the next batch begin at once.
func (db *DB) want() {
	select {
	case db.wanted <- struct{}{}:
	default: // it is wanted already
	}
}

// fold writes one batch, lets the waiting know, and forgets old states.
func (db *DB) fold(ctx context.Context, items []item) error {
	if err := db.transact(ctx, func(tx *sql.Tx) error { return db.foldAll(ctx, tx, items) }); err != nil {
		// The states ran ahead of the rows: they are read again.
		db.states = map[domain.Key]*conversation{}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %w", errFile, err)
	}
	if len(db.states) > maxStates {
		db.states = map[domain.Key]*conversation{}
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	close(db.changed)
	db.changed = make(chan struct{})
	return nil
}

// meet finds where to go on in this log. When the log is not the one that
// filled the file (it ends earlier, or holds another commit at the place of
// our last one) the file is emptied and all begins anew.
func (db *DB) meet(ctx context.Context, log eventstore.Log) (uint64, error) {
	var seq, commitSeq, version int64
	var key domain.Key
	var hash []byte
	err := db.write.QueryRowContext(ctx, "SELECT seq, commit_seq, tenant, conversation, version, hash FROM position").
		Scan(&seq, &commitSeq, &key.Tenant, &key.Conversation, &version, &hash)
	if err != nil {
		return 0, fmt.Errorf("%w: read the position: %w", errFile, err)
	}
	if seq == 0 {
		return 0, db.expect(ctx, log)
	}
	last, err := log.LastSeq(ctx)
	if err != nil {
		return 0, err
	}
	why := ""
	if last < count(seq) {
		why = fmt.Sprintf("the log ends at %d, the read models stand at %d", last, seq)
	} else if commitSeq > 0 {
		found, err := log.At(ctx, key, []uint64{count(version)})
		switch {
		case errors.Is(err, eventstore.ErrNotFound), err == nil && !bytes.Equal(found[count(version)].GetHash(), hash):
			why = fmt.Sprintf("the log holds another version %d of %s", version, key)
		case errors.Is(err, domain.ErrGap), errors.Is(err, domain.ErrHash):
			// Damage in that conversation is told where it is met, not here.
		case err != nil:
			return 0, err
		}
	}
	if why == "" {
		// What was read after our last commit was none of ours: it is read again,
		// for another log may hold something else there.
		return count(commitSeq), nil
	}
	db.log.WarnContext(ctx, "the read models are made again from the log", "because", why)
	if err := db.clear(ctx); err != nil {
		return 0, fmt.Errorf("%w: %w", errFile, err)
	}
	return 0, db.expect(ctx, log)
}

// WaitFor returns when the read models hold the given version of a
// conversation, so that a writer reads its own writes. It waits until ctx ends.
// Errors: ctx's, or a *domain.Refusal when the conversation is quarantined
// before that version.
func (db *DB) WaitFor(ctx context.Context, key domain.Key, version uint64) error {
	for {
		db.mu.Lock()
		changed := db.changed
		db.mu.Unlock()
		var have int64
		var fault Fault
		err := db.read.QueryRowContext(ctx, "SELECT version, fault, fault_why FROM conversations WHERE tenant = ? AND id = ?",
			key.Tenant, key.Conversation).Scan(&have, &fault.Code, &fault.Why)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return fmt.Errorf("wait for version %d of %s: %w", version, key, err)
		case count(have) >= version:
			return nil
		case fault.Code != "":
			return domain.Refuse("conversation-quarantined", fmt.Sprintf("version %d of %s cannot be read", version, key),
				fault.Why, "rollcall verify says what is wrong with its log; the other conversations go on")
		}
		db.want()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// CatchUp returns when the read models have seen the message of the given
// sequence of the log's stream. It waits until ctx ends. Errors: ctx's.
func (db *DB) CatchUp(ctx context.Context, seq uint64) error {
	for {
		db.mu.Lock()
		changed := db.changed
		db.mu.Unlock()
		var have int64
		if err := db.read.QueryRowContext(ctx, "SELECT seq FROM position").Scan(&have); err != nil {
			return fmt.Errorf("wait for message %d of the log: %w", seq, err)
		}
		if count(have) >= seq {
			return nil
		}
		db.want()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
