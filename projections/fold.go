package projections

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// maxStates bounds the states kept between batches.
const maxStates = 1024

// conversation is what the fold holds of a conversation between batches.
type conversation struct {
	row   int64
	state *domain.State
	// set aside: nothing of it is folded any more.
	faulty bool
}

// batch is one transaction of the fold.
type batch struct {
	ctx   context.Context
	tx    *sql.Tx
	stmts map[string]*sql.Stmt
	// touched conversations get their rows from their states at the end.
	touched []*conversation
	// last is the newest commit folded in.
	last eventstore.Recorded
}

// foldAll folds items in order and moves the position behind them. Commits
// that were folded before are passed over; messages that were none, or that
// belong to a conversation set aside, change nothing when they come again.
func (db *DB) foldAll(ctx context.Context, tx *sql.Tx, items []item) error {
	b := &batch{ctx: ctx, tx: tx, stmts: map[string]*sql.Stmt{}}
	var folded, seen int64
	if err := tx.QueryRowContext(ctx, "SELECT commit_seq, seq FROM position").Scan(&folded, &seen); err != nil {
		return err
	}
	for _, i := range items {
		if i.Seq <= max(count(folded), b.last.Seq) {
			continue
		}
		if err := db.foldOne(b, i); err != nil {
			return fmt.Errorf("fold message %d of the log: %w", i.Seq, err)
		}
		seen = max(seen, number(i.Seq))
	}
	for _, c := range b.touched {
		if err := b.writeState(c); err != nil {
			return fmt.Errorf("write conversation %s: %w", c.state.Key, err)
		}
	}
	if b.last.Commit != nil {
		p := b.last
		if err := b.exec("UPDATE position SET commit_seq = ?, tenant = ?, conversation = ?, version = ?, hash = ?",
			number(p.Seq), p.Key.Tenant, p.Key.Conversation, number(p.Commit.GetVersion()), p.Commit.GetHash()); err != nil {
			return err
		}
	}
	return b.exec("UPDATE position SET seq = ?", seen)
}

// foldOne folds one message of the log. What does not belong sets its
// conversation aside and harms no other.
func (db *DB) foldOne(b *batch, i item) error {
	if i.skipped != nil {
		db.log.WarnContext(b.ctx, "a message of the log is no commit", "seq", i.Seq, "conversation", i.Key.String(), "because", i.skipped)
		// A stranger's message is passed over; a commit that was changed is not.
		if !errors.Is(i.skipped, domain.ErrHash) || !i.Key.Valid() {
			return nil
		}
	}
	c, err := db.conversation(b, i.Key)
	if err != nil || c.faulty {
		return err
	}
	why := i.skipped
	if why == nil {
		why = domain.CheckNext(c.state.Version, c.state.LastHash, i.Commit)
	}
	if why == nil {
		why = evolve(c.state, i.Commit)
	}
	if why != nil {
		f := faultOf(why)
		db.log.ErrorContext(b.ctx, "a conversation is set aside", "conversation", i.Key.String(), "seq", i.Seq, "code", f.Code, "because", why)
		return b.setAside(c, f)
	}
	if !slices.Contains(b.touched, c) {
		b.touched = append(b.touched, c)
	}
	b.last = i.Recorded
	if i.Commit.GetVersion() == 1 {
		if err := b.exec("UPDATE conversations SET opened = ? WHERE conv = ?", nanos(i.Commit.GetTime().AsTime()), c.row); err != nil {
			return err
		}
	}
	for index, e := range i.Commit.GetEvents() {
		if err := b.event(c, i.Commit, index, e); err != nil {
			return err
		}
	}
	return nil
}

var errEvolve = errors.New("the fold failed")

// evolve folds a commit into a state. A fold that panics is a fault of one
// conversation, not of the node.
func evolve(s *domain.State, c *rollcallv1.Commit) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w at version %d: %v", errEvolve, c.GetVersion(), p)
		}
	}()
	s.Evolve(c)
	return nil
}

func faultOf(why error) Fault {
	switch {
	case errors.Is(why, domain.ErrGap):
		return Fault{Code: "log-gap", Why: why.Error()}
	case errors.Is(why, errEvolve):
		return Fault{Code: "log-not-folded", Why: why.Error()}
	default:
		return Fault{Code: "log-hash", Why: why.Error()}
	}
}

func (b *batch) setAside(c *conversation, f Fault) error {
	c.faulty = true
	if f.Code == "log-not-folded" { // half folded: the rows stay as they were
		b.touched = slices.DeleteFunc(b.touched, func(t *conversation) bool { return t == c })
	}
	return b.exec("UPDATE conversations SET fault = ?, fault_why = ? WHERE conv = ?", f.Code, f.Why, c.row)
}

// conversation finds what is held of a conversation: in memory, in the file,
// or nothing yet.
func (db *DB) conversation(b *batch, key domain.Key) (*conversation, error) {
	if c := db.states[key]; c != nil {
		return c, nil
	}
	c := &conversation{}
	var fault string
	var state []byte
	err := b.tx.QueryRowContext(b.ctx, `SELECT c.conv, c.fault, s.state FROM conversations c LEFT JOIN states s USING (conv)
		WHERE c.tenant = ? AND c.id = ?`, key.Tenant, key.Conversation).Scan(&c.row, &fault, &state)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		err = b.tx.QueryRowContext(b.ctx, `INSERT INTO conversations
			(tenant, id, name, contract, status, version, opened, updated, answer, answer_hash, answer_size, answer_at, fault, fault_why)
			VALUES (?, ?, '', '', 'idle', 0, 0, 0, '', '', 0, 0, '', '') RETURNING conv`, key.Tenant, key.Conversation).Scan(&c.row)
		c.state = domain.New(key)
	case err == nil && state == nil:
		c.state = domain.New(key)
	case err == nil:
		c.state, err = domain.Unmarshal(state)
	}
	if err != nil {
		return nil, fmt.Errorf("read conversation %s: %w", key, err)
	}
	c.faulty = fault != ""
	db.states[key] = c
	return c, nil
}

// exec runs a statement, which is prepared once a transaction.
func (b *batch) exec(query string, args ...any) error {
	stmt := b.stmts[query]
	if stmt == nil {
		var err error
		if stmt, err = b.tx.PrepareContext(b.ctx, query); err != nil {
			return err
		}
		b.stmts[query] = stmt // the transaction closes it
	}
	_, err := stmt.ExecContext(b.ctx, args...)
	return err
}
