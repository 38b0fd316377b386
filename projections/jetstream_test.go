package projections

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
)

// TestOnJetStream plays a story on a real log while the read models follow it
// and are closed and opened now and then, and rebuilds them at the end.
func TestOnJetStream(t *testing.T) {
	log, _ := natsdtest.Store(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "live.db")
	db := openAt(t, path)
	stop := following(t, db, log)
	w := newWorld(log)
	story := rapid.Custom(func(rt *rapid.T) int {
		w.play(rt, 40)
		return 0
	})
	for part := range 4 {
		story.Example(part)
		if part%2 == 1 {
			stop()
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = openAt(t, path)
			stop = following(t, db, log)
		}
	}
	caughtUp(t, db, log)
	stop()
	if n := len(read(t, log)); n < 50 {
		t.Errorf("the story has only %d commits: it proves too little", n)
	}
	rebuilt := openAt(t, filepath.Join(dir, "rebuilt.db"))
	stop = following(t, rebuilt, log)
	caughtUp(t, rebuilt, log)
	stop()
	if diff := cmp.Diff(dump(t, rebuilt), dump(t, db)); diff != "" {
		t.Errorf("rebuilt (-) and live (+) differ:\n%s", diff)
	}
	w.compare(t, db)
	compareHistory(t, db, read(t, log))
	for _, d := range []*DB{db, rebuilt} {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
