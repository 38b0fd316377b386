package projections

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/eventstore"
)

// A batch gathers what comes until its time, and no longer when somebody wants
// to read; what is there already is taken in any case.
func TestABatchGathers(t *testing.T) {
	numbered := func(seq uint64) item { return item{Recorded: eventstore.Recorded{Seq: seq}} }
	gathered := func(t *testing.T, until time.Time, also func(db *DB, more chan<- item)) (got int, took time.Duration) {
		t.Helper()
		db, more := &DB{wanted: make(chan struct{}, 1)}, make(chan item)
		begun := time.Now()
		go also(db, more)
		return len(db.collect(numbered(1), more, until)), time.Since(begun)
	}
	three := func(more chan<- item) {
		for seq := range uint64(3) {
			<-time.After(time.Second)
			more <- numbered(seq + 2)
		}
	}
	for name, c := range map[string]struct {
		also func(db *DB, more chan<- item)
		got  int
		took time.Duration
	}{
		"until its time":     {func(_ *DB, more chan<- item) { three(more) }, 4, time.Minute},
		"until it is wanted": {func(db *DB, more chan<- item) { three(more); db.want(); db.want() }, 4, 3 * time.Second},
		"until the log ends": {func(_ *DB, more chan<- item) { three(more); close(more) }, 4, 3 * time.Second},
		"until it is full": {func(_ *DB, more chan<- item) {
			for range batchCommits - 1 {
				more <- numbered(2)
			}
		}, batchCommits, 0},
		"what is there alone": {func(db *DB, _ chan<- item) { db.want() }, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, took := gathered(t, time.Now().Add(time.Minute), c.also)
				if got != c.got || took != c.took {
					t.Errorf("%d in %v, want %d in %v", got, took, c.got, c.took)
				}
			})
		})
	}
}
