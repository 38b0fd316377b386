package natsd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
)

// LockDir makes the data directory when it is missing and locks it: one node
// at a time. A directory in use is a *domain.Refusal that names the process
// and what to do. Start does this by itself.
func LockDir(dir string) (*nodefile.Lock, error) {
	if dir == "" {
		return nil, errors.New("lock the data directory: none is named")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, unusable(dir, err)
	}
	lock, err := nodefile.Acquire(dir)
	for end := time.Now().Add(lockPatience); errors.Is(err, nodefile.ErrLocked) && time.Now().Before(end); {
		<-time.After(lockPatience / 20)
		lock, err = nodefile.Acquire(dir)
	}
	if errors.Is(err, nodefile.ErrLocked) {
		return nil, inUse(dir)
	}
	if err != nil {
		return nil, unusable(dir, err)
	}
	return lock, nil
}

// lockPatience is how long a node waits for the lock: a large process that was
// killed holds it until the kernel has taken its memory back.
const lockPatience = time.Second

func unusable(dir string, err error) error {
	return domain.Refuse("data-directory-unusable", fmt.Sprintf("the data directory %s cannot be used", dir), err.Error(),
		"make it a directory that can be written, or choose another with --data or ROLLCALL_DATA")
}

func inUse(dir string) error {
	owner, stop := "another process", "stop that process"
	if pid, err := os.ReadFile(filepath.Join(dir, nodefile.PID)); err == nil {
		if p := strings.TrimSpace(string(pid)); p != "" {
			owner, stop = "the node with process id "+p, "stop it (kill "+p+")"
		}
	}
	return domain.Refuse("data-directory-in-use",
		fmt.Sprintf("cannot use the data directory %s", dir),
		owner+" uses it",
		"use that node, "+stop+", or choose another directory with ROLLCALL_DATA")
}
