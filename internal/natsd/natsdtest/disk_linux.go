package natsdtest

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// SmallDisk gives a directory on a file system of its own, of size bytes, and a
// function that fills it; that gives one that makes space again. Where the
// machine does not let us mount, the test is skipped.
func SmallDisk(t testing.TB, size int) (dir string, fill func() (empty func())) {
	t.Helper()
	dir = t.TempDir()
	mount(t, "tmpfs", dir, "tmpfs", 0, "size="+strconv.Itoa(size))
	ballast := filepath.Join(dir, "ballast")
	return dir, func() func() {
		f, err := os.Create(ballast) //nolint:gosec // the test's own
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close() //nolint:errcheck // it is full
		for _, n := range []int{64 << 10, 4 << 10, 1} {
			for err == nil {
				_, err = f.Write(make([]byte, n))
			}
			err = nil
		}
		return func() {
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// ReadOnly makes a directory one that can only be read, also by root, until the
// function that it gives is called. Where the machine does not let us mount,
// the test is skipped.
func ReadOnly(t testing.TB, dir string) (writable func()) {
	t.Helper()
	mount(t, dir, dir, "", syscall.MS_BIND, "")
	if err := syscall.Mount("", dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skip("this machine does not let us make a disk read-only: ", err)
	}
	return func() {
		if err := syscall.Mount("", dir, "", syscall.MS_BIND|syscall.MS_REMOUNT, ""); err != nil {
			t.Fatal(err)
		}
	}
}

func mount(t testing.TB, source, dir, kind string, flags uintptr, data string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("this test mounts a file system: it needs root")
	}
	if err := syscall.Mount(source, dir, kind, flags, data); err != nil {
		t.Skip("this machine does not let us mount: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}
