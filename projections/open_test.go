package projections

import (
	"bytes"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
)

func TestOpenKeepsItsOwnFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "views.db")
	db := openAt(t, path)
	mark(t, db, 7)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	said := listen(t)
	db = openAt(t, path)
	defer db.Close()
	if said.Len() > 0 {
		t.Errorf("opening one's own file says %q", said)
	}
	if got := marked(t, db); got != 7 {
		t.Errorf("the position is %d after opening again, want 7", got)
	}
}

func TestOpenMakesAnUnusableFileAgain(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"an older schema": func(t *testing.T, path string) { alter(t, path, fmt.Sprintf("PRAGMA user_version = %d", version()-1)) },
		"a newer schema": func(t *testing.T, path string) {
			alter(t, path, fmt.Sprintf("PRAGMA user_version = %d", version()+1<<16))
		},
		"no schema at all": func(t *testing.T, path string) {
			overwrite(t, path, nil)
		},
		"somebody else's file": func(t *testing.T, path string) { alter(t, path, "PRAGMA application_id = 1") },
		"no database":          func(t *testing.T, path string) { overwrite(t, path, []byte(strings.Repeat("no database ", 1000))) },
		"a torn page": func(t *testing.T, path string) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := len(data) / 2; i < len(data); i++ {
				data[i] ^= 0xff
			}
			overwrite(t, path, data)
		},
		"half a file": func(t *testing.T, path string) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			overwrite(t, path, data[:len(data)/2+100])
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "views.db")
			db := openAt(t, path)
			mark(t, db, 7)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			spoil(t, path)
			said := listen(t)
			db = openAt(t, path)
			defer db.Close()
			if got := marked(t, db); got != 0 {
				t.Errorf("the position is %d, want 0: the file was kept", got)
			}
			if err := db.check(t.Context()); err != nil {
				t.Errorf("the new file: %v", err)
			}
			if !strings.Contains(said.String(), "made again from the log") || !strings.Contains(said.String(), path) {
				t.Errorf("the log says %q", said)
			}
		})
	}
}

func TestOpenRefusesAPlaceThatCannotHoldAFile(t *testing.T) {
	if db, err := Open(t.Context(), filepath.Join(t.TempDir(), "missing", "views.db")); err == nil {
		db.Close()
		t.Error("Open made a file in a folder that does not exist")
	}
}

// A full disk is no reason to throw the file away.
func TestOpenKeepsAFileOnAFullDisk(t *testing.T) {
	dir, fill := natsdtest.SmallDisk(t, 4<<20)
	path := filepath.Join(dir, "views.db")
	db := openAt(t, path)
	mark(t, db, 7)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	empty := fill()
	if db, err := Open(t.Context(), path); err == nil {
		db.Close()
		t.Fatal("it was opened, and cannot be written")
	}
	empty()
	db = openAt(t, path)
	defer db.Close()
	if got := marked(t, db); got != 7 {
		t.Errorf("the position is %d, want 7: the file was thrown away", got)
	}
}

func TestOpenTakesAnyPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c#d%20é.db")
	db := openAt(t, path)
	defer db.Close()
	found, err := os.Stat(path)
	if err != nil {
		t.Fatalf("the file is not where it should be: %v", err)
	}
	if found.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v, want 0600", found.Mode())
	}
}

// listen catches what is logged until the test ends.
func listen(t *testing.T) *bytes.Buffer {
	said, before := new(bytes.Buffer), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(said, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return said
}

func mark(t *testing.T, db *DB, seq int64) {
	t.Helper()
	if _, err := db.write.Exec("UPDATE position SET seq = ?", seq); err != nil {
		t.Fatal(err)
	}
}

func marked(t *testing.T, db *DB) (seq int64) {
	t.Helper()
	if err := db.read.QueryRow("SELECT seq FROM position").Scan(&seq); err != nil {
		t.Fatal(err)
	}
	return seq
}

func alter(t *testing.T, path, statement string) {
	t.Helper()
	file, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

func overwrite(t *testing.T, path string, data []byte) {
	t.Helper()
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
