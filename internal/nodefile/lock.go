package nodefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ErrLocked is returned when another process holds the data directory.
var ErrLocked = errors.New("data directory is in use by another node")

// Lock is a process's hold on a data directory. The operating system lets go
// of it when the process ends, however it ends.
type Lock struct {
	file *os.File
}

// Acquire takes the lock of dir without waiting. Errors: ErrLocked.
func Acquire(dir string) (*Lock, error) {
	f, err := os.OpenFile(filepath.Join(dir, LOCK), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close() //nolint:errcheck // only read so far
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s%s", ErrLocked, dir, holder(dir))
		}
		return nil, fmt.Errorf("lock data directory %s: %w", dir, err)
	}
	return &Lock{file: f}, nil
}

// Release lets go of the lock. It is safe on a nil Lock and more than once.
func (l *Lock) Release() error {
	if l == nil || l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	if err := f.Close(); err != nil {
		return fmt.Errorf("release data directory: %w", err)
	}
	return nil
}

// Held reports whether some process, this one included, holds the lock of dir.
func Held(dir string) bool {
	f, err := os.Open(filepath.Join(dir, LOCK))
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		return errors.Is(err, syscall.EWOULDBLOCK)
	}
	return false
}

func holder(dir string) string {
	data, err := os.ReadFile(filepath.Join(dir, PID))
	if err != nil {
		return ""
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (process %d)", pid)
}
