package projections

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rollcall-dev/rollcall/eventstore/memory"
)

// A file that is made again remembers how far each conversation went: of
// another schema, of another fold, or filled by a log that was longer.
func TestTailsSurvive(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"as it is":       func(*testing.T, string) {},
		"another schema": func(t *testing.T, path string) { alter(t, path, "PRAGMA user_version = 1") },
		"before there were tails": func(t *testing.T, path string) {
			alter(t, path, "PRAGMA user_version = 1; DROP TABLE tails")
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "views.db")
			whole, cut := memory.New(), memory.New()
			a := newChain(t, whole, "01a", "one")
			newChain(t, cut, "01a", "one")
			b := newChain(t, whole, "01b", "two")
			a.message("msg0")
			db := openAt(t, path)
			stop := following(t, db, whole)
			waitFor(t, db, a.key, 2)
			stop()
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}

			for i := range 2 { // it stays noticed
				if i == 0 || name == "another schema" {
					spoil(t, path)
				}
				db = openAt(t, path)
				stop = following(t, db, cut)
				eventually(t, db, "the log is read", func() bool {
					all, err := db.Conversations(t.Context(), "main")
					return err == nil && len(all) == 2 && all[0].Version == 1 && all[0].Fault != nil && all[0].Fault.Code == "log-tail-lost" &&
						all[0].Status == "quarantined" && all[1].Version == 0 && all[1].Fault != nil && all[1].Name == "two"
				})
				for key, want := range map[string]uint64{"01a": 2, "01b": 1} {
					a.key.Conversation = key
					if got, err := db.Tail(t.Context(), a.key); err != nil || got != want {
						t.Errorf("the tail of %s is %d, %v, want %d", key, got, err, want)
					}
				}
				all, err := db.Tails(t.Context())
				if err != nil || len(all) != 2 || all[b.key] != 1 {
					t.Errorf("tails %v, %v", all, err)
				}
				stop()
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
			}

			// Without the file nobody knows better.
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			db = openAt(t, path)
			defer db.Close()
			defer following(t, db, cut)()
			a.key.Conversation = "01a"
			waitFor(t, db, a.key, 1)
			if all, err := db.Conversations(t.Context(), "main"); err != nil || len(all) != 1 || all[0].Fault != nil {
				t.Errorf("%+v, %v", all, err)
			}
		})
	}
}
