package projections

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
)

// tail is how far a conversation's log went once.
type tail struct {
	key     domain.Key
	name    string
	version int64
}

// Tail is the highest version of a conversation that was ever folded in, also
// from a log that was another then; 0 when none was. By it a reader of the log
// notices that the newest commits are gone.
func (db *DB) Tail(ctx context.Context, key domain.Key) (uint64, error) {
	var version int64
	err := db.read.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM (
		SELECT version FROM conversations WHERE tenant = ?1 AND id = ?2 UNION ALL SELECT version FROM tails WHERE tenant = ?1 AND id = ?2)`,
		key.Tenant, key.Conversation).Scan(&version)
	if err != nil {
		return 0, fmt.Errorf("look up how far %s went: %w", key, err)
	}
	return count(version), nil
}

// Tails lists how far each conversation of all tenants went.
func (db *DB) Tails(ctx context.Context) (map[domain.Key]uint64, error) {
	found := map[domain.Key]uint64{}
	err := db.query(ctx, "how far the logs went", func(r reader) error {
		return r.rows(func(rows *sql.Rows) error {
			var key domain.Key
			var version int64
			err := rows.Scan(&key.Tenant, &key.Conversation, &version)
			found[key] = max(found[key], count(version))
			return err
		}, "SELECT tenant, id, version FROM conversations UNION ALL SELECT tenant, id, version FROM tails")
	})
	return found, err
}

// readTails reads the tails of a file that is about to be made again, of this
// schema or an older one.
func readTails(ctx context.Context, tx *sql.Tx) ([]tail, error) {
	var found []tail
	tables, err := column(ctx, tx, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name IN ('conversations', 'tails') ORDER BY name")
	if err != nil {
		return nil, err
	}
	for _, table := range tables {
		err := eachRow(ctx, tx, func(rows *sql.Rows) error {
			var t tail
			err := rows.Scan(&t.key.Tenant, &t.key.Conversation, &t.name, &t.version)
			found = append(found, t)
			return err
		}, "SELECT tenant, id, name, version FROM "+table+" WHERE version > 0")
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// keepTails writes them, and a row for each conversation, so that one of which
// nothing is left is still listed.
func keepTails(ctx context.Context, tx *sql.Tx, tails []tail) error {
	for _, t := range tails {
		if _, err := tx.ExecContext(ctx, `INSERT INTO tails VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (tenant, id) DO UPDATE SET name = excluded.name, version = max(version, excluded.version), until = excluded.until`,
			t.key.Tenant, t.key.Conversation, t.name, t.version, int64(math.MaxInt64)); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO conversations
			(tenant, id, name, contract, status, version, opened, updated, answer, answer_hash, answer_size, answer_at, fault, fault_why)
			VALUES (?, ?, ?, '', 'idle', 0, 0, 0, '', '', 0, 0, '', '') ON CONFLICT (tenant, id) DO NOTHING`,
			t.key.Tenant, t.key.Conversation, t.name); err != nil {
			return err
		}
	}
	return nil
}

// salvage reads the tails of a file that cannot be used as it is. What it
// cannot read is told: then the logs' ends cannot be checked.
func (db *DB) salvage(ctx context.Context, why error) []tail {
	if errors.Is(why, errFresh) {
		return nil
	}
	err := db.connect()
	var found []tail
	if err == nil {
		err = db.transact(ctx, func(tx *sql.Tx) (err error) {
			found, err = readTails(ctx, tx)
			return err
		})
	}
	_ = db.Close() // the file is about to go
	if err != nil {
		db.log.WarnContext(ctx, "how far the conversations went cannot be read from the old file: a lost tail of theirs will not be noticed", "because", err)
	}
	return found
}

// expect notes where the log ends now: from there on a conversation that is
// shorter than it was lost its tail.
func (db *DB) expect(ctx context.Context, log eventstore.Log) error {
	last, err := log.LastSeq(ctx)
	if err != nil {
		return err
	}
	if _, err := db.write.ExecContext(ctx, "UPDATE tails SET until = ?", number(last)); err != nil {
		return fmt.Errorf("%w: %w", errFile, err)
	}
	return nil
}

// tailFault is the fault of a conversation that went on to a higher version
// once than its log does now; nil when it did not.
func tailFault(version, known int64) *Fault {
	if known <= version {
		return nil
	}
	return &Fault{Code: "log-tail-lost", Why: fmt.Sprintf("the log ends at version %d, and version %d was read from it before", version, known)}
}
