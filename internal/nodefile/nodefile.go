// Package nodefile is how a node makes itself known in its data directory:
// node.json says where it listens, node.pid who it is, node.lock that it lives.
//
// The files are hints; the lock is the truth. A process holds the lock for as
// long as it lives, so a file without a held lock was left by a crash.
package nodefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// ErrNone is returned when no node has left its file in the data directory.
var ErrNone = errors.New("no node file")

// Names of the files in a data directory.
const (
	JSON = "node.json"
	PID  = "node.pid"
	LOCK = "node.lock"
	LOG  = "node.log"
)

// Info is the content of node.json.
type Info struct {
	PID int    `json:"pid"`
	URL string `json:"url"`
	// Token opens the node's listener; whoever can read the file may use it.
	Token string `json:"token"`
	// What else opens the servers of a node that has none of its own: words, and
	// paths of files.
	User     string `json:"user,omitempty"`
	Password string `json:"password,omitempty"`
	Creds    string `json:"creds,omitempty"`
	NKey     string `json:"nkey,omitempty"`
	CA       string `json:"ca,omitempty"`
	Cert     string `json:"cert,omitempty"`
	Key      string `json:"key,omitempty"`
	// Joined: the node runs on servers that are not its own.
	Joined bool `json:"joined,omitempty"`
}

// Write puts node.json and node.pid into dir, each in one step, readable by
// the owner only.
func Write(dir string, info Info) error {
	data, err := json.Marshal(info)
	if err != nil {
		return fmt.Errorf("write node file: %w", err)
	}
	if err := replace(filepath.Join(dir, PID), []byte(strconv.Itoa(info.PID)+"\n")); err != nil {
		return err
	}
	return replace(filepath.Join(dir, JSON), append(data, '\n'))
}

// Read returns what the last node of dir wrote. Errors: ErrNone.
func Read(dir string) (Info, error) {
	data, err := os.ReadFile(filepath.Join(dir, JSON))
	if errors.Is(err, os.ErrNotExist) {
		return Info{}, ErrNone
	}
	if err != nil {
		return Info{}, fmt.Errorf("read node file: %w", err)
	}
	var info Info
	if err := json.Unmarshal(data, &info); err != nil || info.URL == "" {
		return Info{}, fmt.Errorf("read node file %s: not a node's address", filepath.Join(dir, JSON))
	}
	return info, nil
}

// Remove deletes the files if they still speak of the given process.
func Remove(dir string, pid int) error {
	info, err := Read(dir)
	if errors.Is(err, ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.PID != pid {
		return nil
	}
	for _, name := range []string{JSON, PID} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove node file: %w", err)
		}
	}
	return nil
}

func replace(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write node file: %w", err)
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // gone after the rename
	if _, err := tmp.Write(data); err != nil {
		tmp.Close() //nolint:errcheck // the write's error is the one to tell
		return fmt.Errorf("write node file: %w", err)
	}
	if err := tmp.Close(); err != nil {
		return fmt.Errorf("write node file: %w", err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("write node file: %w", err)
	}
	return nil
}
