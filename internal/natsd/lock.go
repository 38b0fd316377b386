package natsd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rollcall-dev/rollcall/domain"
)

// Lock is a process's hold on its data directory. The operating system lets
// go of it when the process ends, however it ends.
type Lock struct{ file *os.File }

var errLocked = errors.New("locked by another process")

// LockDir makes the directory when it is missing and locks it. A directory in
// use is a *domain.Refusal that names the process and what to do.
func LockDir(dir string) (*Lock, error) {
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data directory: %w", err)
	}
	if err := lockFile(f); err != nil {
		_ = f.Close()
		if errors.Is(err, errLocked) {
			return nil, inUse(dir)
		}
		return nil, fmt.Errorf("lock the data directory %s: %w", dir, err)
	}
	return &Lock{file: f}, nil
}

// Unlock lets go of the directory. It may be called more than once.
func (l *Lock) Unlock() {
	if l != nil {
		_ = l.file.Close()
	}
}

func inUse(dir string) error {
	owner, stop := "another process", "stop that process"
	if pid, err := os.ReadFile(filepath.Join(dir, "node.pid")); err == nil {
		if p := strings.TrimSpace(string(pid)); p != "" {
			owner, stop = "the node with process id "+p, "stop it (kill "+p+")"
		}
	}
	return domain.Refuse("data-directory-in-use",
		fmt.Sprintf("cannot use the data directory %s", dir),
		owner+" uses it",
		"use that node, "+stop+", or choose another directory with ROLLCALL_DATA")
}
