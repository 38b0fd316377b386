package projections

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rollcall-dev/rollcall/domain"
)

// query runs fn on one snapshot of the rows, so that an answer of several
// statements is of one moment.
func (db *DB) query(ctx context.Context, what string, fn func(reader) error) error {
	tx, err := db.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	if err := fn(reader{ctx: ctx, tx: tx}); err != nil {
		if _, refused := errors.AsType[*domain.Refusal](err); refused {
			return err
		}
		return fmt.Errorf("read %s: %w", what, err)
	}
	return nil
}

// reader reads within one query.
type reader struct {
	ctx context.Context
	tx  *sql.Tx
}

// rows calls scan for every row of a statement.
func (r reader) rows(scan func(*sql.Rows) error, query string, args ...any) error {
	return eachRow(r.ctx, r.tx, scan, query, args...)
}

func eachRow(ctx context.Context, tx *sql.Tx, scan func(*sql.Rows) error, query string, args ...any) (err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// column reads a statement of one text column.
func column(ctx context.Context, tx *sql.Tx, query string) ([]string, error) {
	var texts []string
	err := eachRow(ctx, tx, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&text)
		texts = append(texts, text)
		return err
	}, query)
	return texts, err
}

// row is the row number of a conversation. An unknown one is a *domain.Refusal.
func (r reader) row(key domain.Key) (int64, error) {
	var conv int64
	err := r.tx.QueryRowContext(r.ctx, "SELECT conv FROM conversations WHERE tenant = ? AND id = ?", key.Tenant, key.Conversation).Scan(&conv)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, unknownConversation(key.Conversation, nil)
	}
	return conv, err
}

// names maps member ids to display names; other parties stand for themselves.
type names map[string]string

func (r reader) names(conv int64) (names, error) {
	n := names{}
	err := r.rows(func(rows *sql.Rows) error {
		var id, name string
		err := rows.Scan(&id, &name)
		n[id] = name
		return err
	}, "SELECT id, name FROM members WHERE conv = ?", conv)
	return n, err
}

func (n names) of(id string) string {
	if name := n[id]; name != "" {
		return name
	}
	return id
}
