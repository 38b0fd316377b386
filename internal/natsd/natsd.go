// Package natsd runs a NATS server with JetStream inside the process, so that
// nobody has to install one.
//
// It owns the data directory while it runs: see LockDir. Read next: lock.go.
package natsd

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/internal/natsd/scrub"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
)

// Config says how a server runs. The zero value of every field but Dir is
// usable.
type Config struct {
	// Dir is the data directory. It is made when missing; the streams lie in
	// Dir/jetstream.
	Dir string
	// Name of the server; required in a cluster, where it must be unique.
	Name string
	// Host to listen on, 127.0.0.1 by default.
	Host string
	// Port to listen on: -1 takes a free one, 0 listens on none at all and
	// leaves Connect as the only way in.
	Port int
	// Token that clients must show; empty asks for none.
	Token string
	// Operator, in place of a token, lets in whom the accounts of a NATS
	// operator know.
	Operator *Operator
	// TLS of the client and the cluster port; nil only on loopback.
	TLS *TLS
	// Advertise is the "host:port" that clients are told; empty: where it listens.
	Advertise string
	// SyncAlways makes every write durable against a power cut before it is
	// acknowledged.
	SyncAlways bool
	// SyncInterval is how often writes are flushed without SyncAlways; 0 is two
	// seconds (the server's own default is two minutes).
	SyncInterval time.Duration
	// Cluster joins the server to others; nil stands alone.
	Cluster *Cluster
	// Log takes the server's lines: its notices as debug. nil drops them.
	Log *slog.Logger
}

// Cluster says how servers find each other.
type Cluster struct {
	Name string
	// Host and Port to listen on for other servers.
	Host string
	Port int
	// Advertise is the "host:port" that other servers are told; empty: where it
	// listens.
	Advertise string
	// Routes are "host:port" of other servers.
	Routes []string
}

// Server is a running server. It owns the server's goroutines until Shutdown.
type Server struct {
	// URL for clients, with the token; empty when it does not listen.
	URL string

	token string
	creds string
	inner *server.Server
	log   *logger
	lock  *nodefile.Lock
	stop  sync.Once
}

// readyTimeout bounds the wait for the server to accept connections: long
// enough to recover a big store.
const readyTimeout = 2 * time.Minute

// maxStore is what the streams may reserve. It only keeps the server from
// refusing on a small disk what is never filled; a full disk fails by itself.
const maxStore = 1 << 40

// Start locks the directory, cuts damage out of its streams or, in a cluster,
// puts the damaged ones aside to be fetched anew (package scrub), starts a
// server in it and waits until it accepts connections. A directory in use, or a
// port that would be open to strangers, is a *domain.Refusal.
func Start(cfg Config) (*Server, error) {
	if err := cfg.closed(); err != nil {
		return nil, err
	}
	lock, err := LockDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if err := scrubbed(cfg); err != nil {
		_ = lock.Release()
		return nil, err
	}
	s, err := start(cfg)
	if err != nil {
		_ = lock.Release()
		return nil, fmt.Errorf("start the embedded NATS server in %s: %w", cfg.Dir, err)
	}
	s.lock = lock
	return s, nil
}

func start(cfg Config) (*Server, error) {
	opts := options(cfg)
	if err := secure(opts, cfg); err != nil {
		return nil, err
	}
	inner, err := server.NewServer(opts)
	if err != nil {
		return nil, err
	}
	log := &logger{log: cfg.Log, fatal: make(chan string, 1), broken: make(chan string, 1)}
	inner.SetLoggerV2(log, false, false, false)
	started := make(chan struct{})
	go func() {
		defer close(started)
		inner.Start()
	}()
	if err := ready(inner, log, started); err != nil {
		inner.Shutdown()
		inner.WaitForShutdown()
		return nil, err
	}
	s := &Server{inner: inner, token: cfg.Token, log: log}
	if cfg.Operator != nil {
		s.creds = cfg.Operator.Creds
	}
	if !opts.DontListen {
		s.URL = clientURL(inner.ClientURL(), cfg.Token)
	}
	return s, nil
}

// defaultSync bounds what a power cut takes where nobody asked for more.
const defaultSync = 2 * time.Second

func options(cfg Config) *server.Options {
	opts := &server.Options{
		ServerName:        cfg.Name,
		Host:              cmp.Or(cfg.Host, "127.0.0.1"),
		Port:              cfg.Port,
		ClientAdvertise:   cfg.Advertise,
		DontListen:        cfg.Port == 0,
		Authorization:     cfg.Token,
		AuthTimeout:       handshake + 1,
		JetStream:         true,
		StoreDir:          cfg.Dir,
		JetStreamMaxStore: maxStore,
		SyncAlways:        cfg.SyncAlways,
		SyncInterval:      cmp.Or(cfg.SyncInterval, defaultSync),
		NoSigs:            true,
		// Of another server that is down it speaks only at first: doctor says who is.
		ReconnectErrorReports: server.DEFAULT_CONNECT_ERROR_REPORTS,
	}
	if c := cfg.Cluster; c != nil {
		opts.Cluster = server.ClusterOpts{Name: c.Name, Host: cmp.Or(c.Host, "127.0.0.1"), Port: c.Port, Advertise: c.Advertise}
		for _, r := range c.Routes {
			opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats-route", Host: r})
		}
	}
	return opts
}

// ready waits for the server, or for the line in which it says why it cannot.
// started is closed when its start has come to an end: before that, on a slow
// machine, a server that does not run has merely not begun.
func ready(inner *server.Server, log *logger, started <-chan struct{}) error {
	for deadline := time.Now().Add(readyTimeout); time.Now().Before(deadline); {
		if inner.ReadyForConnections(100 * time.Millisecond) {
			return nil
		}
		select {
		case why := <-log.fatal:
			return gaveUp(why)
		default:
		}
		select {
		case <-started:
			if !inner.Running() {
				return errors.New("the server stopped")
			}
		default:
		}
	}
	return fmt.Errorf("not ready within %v", readyTimeout)
}

func clientURL(raw, token string) string {
	u, err := url.Parse(raw)
	if err != nil || token == "" {
		return raw
	}
	u.User = url.User(token)
	return u.String()
}

// Connect connects inside the process, without a socket. The connection comes
// back by itself only while the server runs.
func (s *Server) Connect(opts ...nats.Option) (*nats.Conn, error) {
	in := []nats.Option{nats.InProcessServer(s.inner)}
	if s.token != "" {
		in = append(in, nats.Token(s.token))
	}
	if s.creds != "" {
		in = append(in, nats.UserCredentials(s.creds))
	}
	opts = append(in, opts...)
	nc, err := nats.Connect("", opts...)
	if err != nil {
		return nil, fmt.Errorf("connect to the embedded NATS server: %w", err)
	}
	return nc, nil
}

// Broken gives the server's words when it cannot write: on a full disk, for
// one. It stores nothing from then on, also when there is space again: it has
// to be started anew.
func (s *Server) Broken() <-chan string { return s.log.broken }

// Shutdown stops the server, waits until its files are closed and unlocks the
// directory. It may be called more than once.
func (s *Server) Shutdown() {
	s.stop.Do(func() {
		s.log.stopping.Store(true)
		s.inner.Shutdown()
		s.inner.WaitForShutdown()
		_ = s.lock.Release()
	})
}

// DamagedDir is where damaged blocks of streams are kept, with an account of
// what is wrong with them.
func DamagedDir(dir string) string { return filepath.Join(dir, "damaged") }

// OnDisk names the streams of a data directory whose files are there, whether
// the server knows them or not.
func OnDisk(dir string) []string { return scrub.Held(StreamsDir(dir)) }

// StreamsDir is where the streams of a data directory lie.
func StreamsDir(dir string) string { return filepath.Join(dir, server.JetStreamStoreDir) }
