package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/natsd"
)

// bundleFile says what a machine's folder is for.
type bundleFile struct {
	Version int `json:"version"`
	// Server that the machine runs; empty: none.
	Server  string   `json:"server,omitempty"`
	Servers []Server `json:"servers"`
	// Auditors whose consumers have to be there.
	Auditors []Auditor `json:"auditors,omitempty"`
}

// Bundle is the folder of one machine, read.
type Bundle struct {
	// Servers of the cluster.
	Servers []Server

	dir      folder
	server   *Server
	operator string
	accounts *accounts
	auditors []Auditor
}

// Load reads the folder of a machine: DIR/NAME or DIR/node of what Init made.
// Errors are *domain.Refusal.
func Load(dir string) (*Bundle, error) {
	b := &Bundle{dir: folder(dir)}
	if err := b.load(); err != nil {
		if r, ok := errors.AsType[*domain.Refusal](err); ok {
			return nil, r
		}
		return nil, domain.Refuse("bundle-invalid", "the folder "+dir+" cannot be used", err.Error(), "copy it again, whole, from the directory of rollcall auth init")
	}
	return b, nil
}

func (b *Bundle) load() error {
	data, err := b.dir.read(fileBundle)
	switch {
	case errors.Is(err, fs.ErrNotExist) && b.dir.has(fileInstallation):
		return domain.Refuse("bundle-invalid", string(b.dir)+" is the directory of a whole installation", "it has the keys of everybody and is no machine's",
			"name one of its folders: "+filepath.Join(string(b.dir), "NAME")+" for a server, "+filepath.Join(string(b.dir), dirNode)+" for a node without")
	case errors.Is(err, fs.ErrNotExist):
		return domain.Refuse("bundle-invalid", "the folder "+string(b.dir)+" is no machine's", "it has no "+fileBundle, "make one with rollcall auth init DIR --server NAME=HOST, and copy DIR/NAME or DIR/"+dirNode)
	case err != nil:
		return err
	}
	var f bundleFile
	if err := json.Unmarshal(data, &f); err != nil {
		return fmt.Errorf("%s: %w", fileBundle, err)
	}
	if f.Version > layoutVersion {
		return errors.New("a newer Rollcall made it")
	}
	need := []string{fileCA, fileNode}
	if b.Servers = f.Servers; f.Server != "" {
		i := slices.IndexFunc(f.Servers, func(s Server) bool { return s.Name == f.Server })
		if i < 0 {
			return fmt.Errorf("%s names no server %s", fileBundle, f.Server)
		}
		b.server = &f.Servers[i]
		need = append(need, fileOperator, fileCert, fileKey)
	}
	if len(b.Servers) == 0 {
		return fmt.Errorf("%s names no servers", fileBundle)
	}
	for _, name := range need {
		if !b.dir.has(name) {
			return fmt.Errorf("it has no %s", name)
		}
	}
	if b.server == nil {
		return nil
	}
	operator, err := b.dir.read(fileOperator)
	if err != nil {
		return err
	}
	b.operator, b.auditors = string(operator), f.Auditors
	b.accounts = &accounts{dir: b.dir.path(dirAccounts)}
	return b.accounts.read()
}

// Server is the one that this machine runs; nil for none.
func (b *Bundle) Server() *Server { return b.server }

// Others are the names of the servers that this machine does not run.
func (b *Bundle) Others() []string {
	var names []string
	for _, s := range b.Servers {
		if b.server == nil || s.Name != b.server.Name {
			names = append(names, s.Name)
		}
	}
	return names
}

// Auditors for whom the log needs a durable consumer each. Only the folder of
// a server names them.
func (b *Bundle) Auditors() []Auditor { return b.auditors }

// Replicas that streams have: three in a cluster.
func (b *Bundle) Replicas() int {
	if len(b.Servers) >= 3 {
		return 3
	}
	return 1
}

// URL of all servers, for a client.
func (b *Bundle) URL() string { return urls(b.Servers) }

// Creds is the file that opens the servers to a node.
func (b *Bundle) Creds() string { return b.dir.path(fileNode) }

// CA is the file by which a client knows the servers.
func (b *Bundle) CA() string { return b.dir.path(fileCA) }

func urls(servers []Server) string {
	all := make([]string, len(servers))
	for i, s := range servers {
		all[i] = "tls://" + s.ClientAddr()
	}
	return strings.Join(all, ",")
}

// NATS is how this machine's server runs in a data directory.
func (b *Bundle) NATS(data string, log *slog.Logger) natsd.Config {
	s := b.server
	c := natsd.Config{
		Dir: data, Name: s.Name, Host: listenOn(s.Host), Port: s.ClientPort, Advertise: s.ClientAddr(),
		Operator: &natsd.Operator{JWT: b.operator, Account: b.accounts.jwt, Creds: b.Creds()},
		TLS:      &natsd.TLS{CA: b.CA(), Cert: b.dir.path(fileCert), Key: b.dir.path(fileKey)},
		Log:      log,
	}
	if len(b.Servers) == 1 {
		return c
	}
	c.Cluster = &natsd.Cluster{Name: "rollcall", Host: c.Host, Port: s.RoutePort, Advertise: s.RouteAddr()}
	for _, other := range b.Servers {
		if other.Name != s.Name {
			c.Cluster.Routes = append(c.Cluster.Routes, other.RouteAddr())
		}
	}
	return c
}

// listenOn is loopback for a host that is, and everywhere else all addresses:
// a machine need not have the address under which it is found.
func listenOn(host string) string {
	ip := net.ParseIP(host)
	switch {
	case host == "localhost", ip != nil && ip.IsLoopback():
		return host
	case ip != nil && ip.To4() == nil:
		return "::"
	}
	return "0.0.0.0"
}
