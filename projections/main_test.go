package projections

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		if err := foldInChild(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// SQLite is slow under the race detector; -rapid.checks asks for more.
	if err := flag.Set("rapid.checks", "12"); err != nil {
		panic(err)
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // faults are what these tests are made of
	natsdtest.VerifyTestMain(m)
}

// patience bounds every wait of these tests; nothing waits so long when all is
// well.
const patience = 30 * time.Second

func openAt(t testing.TB, path string) *DB {
	t.Helper()
	db, err := Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func open(t testing.TB) *DB {
	t.Helper()
	db := openAt(t, filepath.Join(t.TempDir(), "views.db"))
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// following runs db on log until the returned function is called, which
// reports how Run ended.
func following(t testing.TB, db *DB, log eventstore.Log) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- db.Run(ctx, log) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != context.Canceled { //nolint:errorlint // Run returns ctx's own error
			t.Errorf("Run ended with %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func waitFor(t testing.TB, db *DB, key domain.Key, version uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := db.WaitFor(ctx, key, version); err != nil {
		t.Fatalf("wait for version %d of %s: %v", version, key, err)
	}
}

// eventually waits, batch by batch, until the condition holds.
func eventually(t testing.TB, db *DB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		db.mu.Lock()
		changed := db.changed
		db.mu.Unlock()
		if holds() {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		}
	}
}

// caughtUp waits until the read models stand at the end of the log.
func caughtUp(t testing.TB, db *DB, log eventstore.Log) {
	t.Helper()
	last, err := log.LastSeq(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, db, "the read models stand at the end of the log", func() bool {
		var at uint64
		if err := db.read.QueryRow("SELECT seq FROM position").Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at == last
	})
}
