// Package natsdtest gives tests a real NATS server, in process, on a directory
// of their own, and the event store on it. Everything is stopped and removed
// with the test.
package natsdtest

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/natsd"
)

// patience bounds what should take milliseconds.
const patience = time.Minute

// Token is what the servers of this package ask for.
const Token = "test"

// Start starts a server on a temporary directory, listening on loopback.
func Start(t testing.TB) *natsd.Server {
	t.Helper()
	return StartIn(t, t.TempDir())
}

// StartIn starts a server on the given directory: that of an earlier one, for
// tests of a restart.
func StartIn(t testing.TB, dir string) *natsd.Server {
	t.Helper()
	s, err := natsd.Start(natsd.Config{Dir: dir, Port: -1, Token: Token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return s
}

// Connect connects to the server inside the process.
func Connect(t testing.TB, s *natsd.Server, opts ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := s.Connect(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Close(nc) })
	return nc
}

// Close closes a connection and waits until its goroutines have ended.
func Close(nc *nats.Conn) {
	closed := make(chan struct{})
	nc.SetClosedHandler(func(*nats.Conn) { close(closed) })
	if nc.IsClosed() {
		return
	}
	nc.Close()
	select {
	case <-closed:
	case <-time.After(patience):
	}
}

// Open provisions and opens the event store on a connection.
func Open(t testing.TB, nc *nats.Conn, cfg eventstore.Config) *eventstore.JetStream {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := eventstore.Provision(ctx, nc, cfg); err != nil {
		t.Fatal(err)
	}
	s, err := eventstore.Open(ctx, nc, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Store starts a server and opens the event store on it.
func Store(t testing.TB) (*eventstore.JetStream, *nats.Conn) {
	t.Helper()
	nc := Connect(t, Start(t))
	return Open(t, nc, eventstore.Config{}), nc
}

// Cluster starts n servers that know each other and waits until they agree.
func Cluster(t testing.TB, n int) []*natsd.Server {
	t.Helper()
	routes, ports := make([]string, n), Ports(t, n)
	for i := range n {
		routes[i] = fmt.Sprintf("127.0.0.1:%d", ports[i])
	}
	servers := make([]*natsd.Server, n)
	for i := range n {
		s, err := natsd.Start(natsd.Config{
			Dir: t.TempDir(), Name: fmt.Sprintf("n%d", i+1), Port: -1, Token: Token,
			Cluster: &natsd.Cluster{Name: "test", Port: ports[i], Routes: routes},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Shutdown)
		servers[i] = s
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := natsd.Agree(ctx, servers...); err != nil {
		t.Fatal(err)
	}
	return servers
}

// Ports are n different ports of this machine that nobody listens on at the
// moment: each is held until all are chosen.
func Ports(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() //nolint:errcheck // nothing was written
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}
