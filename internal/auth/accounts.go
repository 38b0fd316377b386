package auth

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/jwt/v2"
)

// accounts are the JWTs in a folder. Those that are put there later are found
// when somebody asks for them: a new tenant needs no restart.
type accounts struct {
	dir string

	mu    sync.Mutex
	known map[string]string
	// changed is the time of the folder as it was read.
	changed time.Time
}

var errNoAccount = errors.New("there is no such account")

// jwt gives an account by its public key.
func (a *accounts) jwt(key string) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if token, ok := a.known[key]; ok {
		return token, nil
	}
	// Whoever knocks with a key of his own must not cost more than a look.
	if info, err := os.Stat(a.dir); err != nil || info.ModTime().Equal(a.changed) {
		return "", errors.Join(errNoAccount, err)
	}
	if err := a.readLocked(); err != nil {
		return "", err
	}
	if token, ok := a.known[key]; ok {
		return token, nil
	}
	return "", errNoAccount
}

func (a *accounts) read() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.readLocked()
}

func (a *accounts) readLocked() error {
	info, err := os.Stat(a.dir)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(a.dir, "*.jwt"))
	if err != nil {
		return err
	}
	known := map[string]string{}
	for _, file := range files {
		token, err := os.ReadFile(file) //nolint:gosec // of our own folder
		if err != nil {
			return err
		}
		c, err := jwt.DecodeAccountClaims(string(token))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		known[c.Subject] = string(token)
	}
	a.known, a.changed = known, info.ModTime()
	return nil
}
