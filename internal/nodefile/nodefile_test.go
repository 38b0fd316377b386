package nodefile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rollcall-dev/rollcall/internal/nodefile"
)

func TestWriteReadRemove(t *testing.T) {
	dir := t.TempDir()
	if _, err := nodefile.Read(dir); !errors.Is(err, nodefile.ErrNone) {
		t.Fatalf("read of an empty directory: %v, want ErrNone", err)
	}
	want := nodefile.Info{PID: 42, URL: "nats://127.0.0.1:4222", Token: "secret"}
	if err := nodefile.Write(dir, want); err != nil {
		t.Fatal(err)
	}
	got, err := nodefile.Read(dir)
	if err != nil || got != want {
		t.Fatalf("read %+v, %v, want %+v", got, err, want)
	}
	for _, name := range []string{nodefile.JSON, nodefile.PID} {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", name, st.Mode().Perm())
		}
	}

	// Another process's files stay.
	if err := nodefile.Remove(dir, 41); err != nil {
		t.Fatal(err)
	}
	if _, err := nodefile.Read(dir); err != nil {
		t.Fatalf("removed the files of another process: %v", err)
	}
	if err := nodefile.Remove(dir, 42); err != nil {
		t.Fatal(err)
	}
	if _, err := nodefile.Read(dir); !errors.Is(err, nodefile.ErrNone) {
		t.Fatalf("after remove: %v, want ErrNone", err)
	}
	if err := nodefile.Remove(dir, 42); err != nil {
		t.Fatalf("second remove: %v", err)
	}
}

func TestReadRefusesGarbage(t *testing.T) {
	for _, content := range []string{"", "{", "[]", "{}", `{"pid":"x"}`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, nodefile.JSON), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if info, err := nodefile.Read(dir); err == nil {
			t.Errorf("read of %q gave %+v", content, info)
		}
	}
}

func TestLockIsExclusive(t *testing.T) {
	dir := t.TempDir()
	if nodefile.Held(dir) {
		t.Fatal("held before anyone took it")
	}
	lock, err := nodefile.Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !nodefile.Held(dir) {
		t.Fatal("not held while taken")
	}
	if _, err := nodefile.Acquire(dir); !errors.Is(err, nodefile.ErrLocked) {
		t.Fatalf("second acquire: %v, want ErrLocked", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if nodefile.Held(dir) {
		t.Fatal("held after release")
	}
	again, err := nodefile.Acquire(dir)
	if err != nil {
		t.Fatalf("acquire after release: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Fatal(err)
	}
	if err := again.Release(); err != nil {
		t.Fatalf("second release: %v", err)
	}
}
