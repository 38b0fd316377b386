package projections

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"sync"

	"modernc.org/sqlite" // the driver "sqlite", without cgo
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/rollcall-dev/rollcall/domain"
)

// schemaVersion is raised with every change of schema.sql and of what its
// columns mean. The fold's own version counts beside it.
const schemaVersion = 2

// applicationID marks the file as ours ("RCPJ").
const applicationID = 0x5243504a

//go:embed schema.sql
var schema string

// DB is the read models of one installation. Queries may be asked from any
// goroutine; Run, which writes, must be called from one at a time.
type DB struct {
	path string
	log  *slog.Logger
	// One connection writes, some read: a reader never waits for the writer.
	write *sql.DB
	read  *sql.DB

	// states caches folded states between batches; only Run touches it.
	states map[domain.Key]*conversation

	mu sync.Mutex
	// changed is closed and replaced after every batch.
	changed chan struct{}
	// wanted holds a token while somebody waits for the next batch.
	wanted chan struct{}
}

// readers is how many queries run at once.
const readers = 4

// Open opens the read models at path, or makes them. A file of another schema,
// or one that is damaged, is a cache that lost its worth: it is deleted, which
// the log says, and Run fills a new one from the first commit.
func Open(ctx context.Context, path string) (*DB, error) {
	db := &DB{
		path: path, log: slog.Default().With("read_models", path),
		states: map[domain.Key]*conversation{}, changed: make(chan struct{}), wanted: make(chan struct{}, 1),
	}
	why := db.open(ctx)
	if why == nil {
		return db, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open read models: %w", err)
	}
	if !worthless(why) {
		return nil, fmt.Errorf("open read models: %w", why)
	}
	if !errors.Is(why, errFresh) {
		db.log.WarnContext(ctx, "the read models are made again from the log", "because", why)
	}
	tails := db.salvage(ctx, why)
	if err := db.remove(); err != nil {
		return nil, fmt.Errorf("open read models: %w", err)
	}
	err := db.create(ctx)
	if err == nil {
		err = db.transact(ctx, func(tx *sql.Tx) error { return keepTails(ctx, tx, tails) })
	}
	if err != nil {
		_ = db.Close() // the first error is the one to tell
		return nil, fmt.Errorf("make read models: %w", err)
	}
	return db, nil
}

// worthless reports that a file is not one that this build writes, or is
// damaged. A disk that is full, or cannot be read, says nothing about the file:
// it knows how far the logs went, and is not thrown away for that.
func worthless(why error) bool {
	broken, ok := errors.AsType[*sqlite.Error](why)
	if !ok {
		return true
	}
	switch broken.Code() & 0xff { // without what SQLite adds to it
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR:
		return true
	}
	return false
}

// Close closes the file. End Run first.
func (db *DB) Close() error {
	var errs []error
	for _, pool := range []*sql.DB{db.read, db.write} {
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close read models: %w", err)
	}
	return nil
}

var errFresh = errors.New("there is no file yet")

// open opens an existing file and says why it cannot be used.
func (db *DB) open(ctx context.Context) error {
	if _, err := os.Stat(db.path); errors.Is(err, fs.ErrNotExist) {
		return errFresh
	}
	if err := db.connect(); err != nil {
		return err
	}
	why := db.check(ctx)
	if why != nil {
		_ = db.Close() // the file is about to go
	}
	return why
}

// check says why an open file is not what this build would write.
func (db *DB) check(ctx context.Context) error {
	for _, want := range []struct {
		pragma string
		value  int64
	}{{"application_id", applicationID}, {"user_version", version()}} {
		var got int64
		if err := db.write.QueryRowContext(ctx, "PRAGMA "+want.pragma).Scan(&got); err != nil {
			return fmt.Errorf("read %s: %w", want.pragma, err)
		}
		if got != want.value {
			return fmt.Errorf("its %s is %d, this build writes %d", want.pragma, got, want.value)
		}
	}
	var verdict string
	if err := db.write.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return fmt.Errorf("check the file: %w", err)
	}
	if verdict != "ok" {
		return fmt.Errorf("the file is damaged: %s", verdict)
	}
	return nil
}

// version joins the versions of schema and fold into the file's user_version.
func version() int64 { return schemaVersion<<16 | int64(domain.EvolveVersion) }

func (db *DB) connect() error {
	var err error
	if db.write, err = db.pool(1, "_txlock=immediate"); err != nil {
		return err
	}
	db.read, err = db.pool(readers, "_query_only=on")
	return err
}

// pool opens connections. A cache may lose its newest batches in a power cut,
// so NORMAL is enough: position and rows are lost together.
func (db *DB) pool(size int, option string) (*sql.DB, error) {
	dsn := "file:" + (&url.URL{Path: db.path}).EscapedPath() + "?_busy_timeout=10000&_journal_mode=WAL&_synchronous=NORMAL&_dqs=0&" + option
	pool, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(size)
	pool.SetMaxIdleConns(size)
	return pool, nil
}

func (db *DB) remove() error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(db.path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// create makes the file, readable by its owner only: it holds people's words.
func (db *DB) create(ctx context.Context) error {
	f, err := os.OpenFile(db.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := db.connect(); err != nil {
		return err
	}
	return db.transact(ctx, func(tx *sql.Tx) error { return makeTables(ctx, tx) })
}

func makeTables(ctx context.Context, tx *sql.Tx) error {
	marks := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", applicationID, version())
	_, err := tx.ExecContext(ctx, marks+schema)
	return err
}

// transact runs fn in one transaction of the writing connection.
func (db *DB) transact(ctx context.Context, fn func(*sql.Tx) error) error {
	tx, err := db.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		_ = tx.Rollback() // the first error is the one to tell
		return err
	}
	return tx.Commit()
}

// clear empties the file: the log is not the one that filled it.
func (db *DB) clear(ctx context.Context) error {
	err := db.transact(ctx, func(tx *sql.Tx) error {
		tails, err := readTails(ctx, tx)
		if err != nil {
			return err
		}
		tables, err := column(ctx, tx, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
		if err != nil {
			return err
		}
		for _, table := range tables {
			if _, err := tx.ExecContext(ctx, "DROP TABLE "+table); err != nil {
				return err
			}
		}
		if err := makeTables(ctx, tx); err != nil {
			return err
		}
		return keepTails(ctx, tx, tails)
	})
	if err != nil {
		return fmt.Errorf("empty read models: %w", err)
	}
	db.states = map[domain.Key]*conversation{}
	return nil
}
