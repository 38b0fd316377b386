//go:build !linux

package natsdtest

import "testing"

// SmallDisk is for Linux only: elsewhere the test is skipped.
func SmallDisk(t testing.TB, _ int) (dir string, fill func() (empty func())) {
	t.Helper()
	t.Skip("this test mounts a file system: it needs Linux")
	return "", nil
}

// ReadOnly is for Linux only: elsewhere the test is skipped.
func ReadOnly(t testing.TB, _ string) (writable func()) {
	t.Helper()
	t.Skip("this test mounts a file system: it needs Linux")
	return nil
}
