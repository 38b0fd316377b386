package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nats-io/nkeys"
)

// What lies in the directory. Only the keys are needed to make more roles, and
// only there: keep them off the machines that run anything.
const (
	dirKeys     = "keys"     // the seeds of operator and accounts, the authority's key
	dirAccounts = "accounts" // the accounts' JWTs
	dirNode     = "node"     // the bundle of nodes that run no server

	fileInstallation = "installation.json"
	fileBundle       = "bundle.json"
	fileOperator     = "operator.jwt"
	fileConf         = "nats.conf"
	fileNode         = "node.creds"
	fileSystem       = "sys.creds"
	fileCA           = "ca.pem"
	fileCAKey        = "ca.key"
	fileCert         = "server.pem"
	fileKey          = "server.key"
)

// reserved are names that no server can have, for its folder bears it.
var reserved = []string{dirKeys, dirAccounts, dirNode}

const (
	modeDir  = 0o700
	modeFile = 0o600
)

// installation is what the directory is about.
type installation struct {
	// Version of the layout.
	Version  int       `json:"version"`
	Servers  []Server  `json:"servers,omitempty"`
	Tenants  []string  `json:"tenants"`
	Auditors []Auditor `json:"auditors,omitempty"`
}

const layoutVersion = 1

// folder writes below a directory.
type folder string

func (f folder) path(name ...string) string {
	return filepath.Join(append([]string{string(f)}, name...)...)
}

func (f folder) has(name ...string) bool {
	_, err := os.Lstat(f.path(name...))
	return err == nil
}

func (f folder) read(name ...string) ([]byte, error) { return os.ReadFile(f.path(name...)) }

// write puts a file there whole or not at all, and reports whether it changed.
func (f folder) write(data []byte, name ...string) (changed bool, err error) {
	path := f.path(name...)
	if old, err := os.ReadFile(path); err == nil && string(old) == string(data) {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), modeDir); err != nil {
		return false, err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*") // made with mode 0600
	if err != nil {
		return false, err
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return false, errors.Join(err, os.Remove(tmp.Name()))
	}
	return true, nil
}

func (f folder) writeJSON(v any, name ...string) (changed bool, err error) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return false, err
	}
	return f.write(append(data, '\n'), name...)
}

// key reads a key, or makes it when there is none yet: a key is never
// overwritten.
func (f folder) key(kind nkeys.PrefixByte, name string) (nkeys.KeyPair, error) {
	file := name + ".nk"
	seed, err := f.read(dirKeys, file)
	if err == nil {
		k, err := nkeys.FromSeed(seed)
		if err != nil {
			return nil, fmt.Errorf("read key %s: %w", f.path(dirKeys, file), err)
		}
		return k, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	k, err := nkeys.CreatePair(kind)
	if err != nil {
		return nil, fmt.Errorf("make key %s: %w", name, err)
	}
	if seed, err = k.Seed(); err == nil {
		_, err = f.write(seed, dirKeys, file)
	}
	return k, err
}
