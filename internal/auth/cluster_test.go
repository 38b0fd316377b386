package auth_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/internal/auth"
	"github.com/rollcall-dev/rollcall/internal/natsd"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
)

// patience bounds what should take a moment, on a slow machine under the race
// detector.
const patience = time.Minute

// freePorts are ports that nobody listens on at the moment.
func freePorts(t *testing.T, n int) []int {
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

func servers(t *testing.T, names ...string) []auth.Server {
	t.Helper()
	ports := freePorts(t, 2*len(names))
	var all []auth.Server
	for i, name := range names {
		s, err := auth.ParseServer(fmt.Sprintf("%s=127.0.0.1:%d/%d", name, ports[2*i], ports[2*i+1]))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func load(t *testing.T, dir ...string) *auth.Bundle {
	t.Helper()
	b, err := auth.Load(filepath.Join(dir...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func start(t *testing.T, cfg natsd.Config) *natsd.Server {
	t.Helper()
	s, err := natsd.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return s
}

func dial(t *testing.T, url, creds, ca string, opts ...nats.Option) *nats.Conn {
	t.Helper()
	opts = append([]nats.Option{nats.UserCredentials(creds), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})}, opts...)
	if ca != "" {
		opts = append(opts, nats.RootCAs(ca))
	}
	nc, err := nats.Connect(url, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { natsdtest.Close(nc) })
	return nc
}

// Each machine starts its server from its folder alone, in any order, and hears
// who is not there yet; two of three are enough.
func TestAClusterFromItsFolders(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "auth")
	plan := auth.Plan{
		Servers: servers(t, "a", "b", "c"), Tenants: []string{"main", "other"},
		Auditors: []auth.Auditor{{Name: "alice"}, {Name: "bob", Tenant: "main"}},
	}
	if _, err := auth.Init(dir, plan, time.Now()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	a := load(t, dir, "a")
	sa := start(t, a.NATS(t.TempDir(), nil))
	var mu sync.Mutex
	var told [][]string
	joined := make(chan error, 1)
	alone := make(chan struct{})
	go func() {
		joined <- sa.WaitCluster(ctx, a.Others(), func(missing []string) {
			mu.Lock()
			defer mu.Unlock()
			if told = append(told, missing); len(told) == 1 {
				close(alone)
			}
		})
	}()
	<-alone
	short, giveUp := context.WithTimeout(ctx, 300*time.Millisecond)
	defer giveUp()
	if err := sa.WaitCluster(short, nil, nil); err == nil {
		t.Error("one server of three is a cluster")
	}
	sb := start(t, load(t, dir, "b").NATS(t.TempDir(), nil))
	if err := <-joined; err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	if !slices.Equal(told[0], []string{"b", "c"}) {
		t.Errorf("alone it misses %v", told[0])
	}
	for _, missing := range told[1:] {
		if slices.Contains(missing, "b") {
			t.Errorf("with b it misses %v", told)
		}
	}
	mu.Unlock()
	if missing := sa.Missing(a.Others()); !slices.Equal(missing, []string{"c"}) {
		t.Errorf("with b it misses %v", missing)
	}
	sc := start(t, load(t, dir, "c").NATS(t.TempDir(), nil))
	for _, s := range []*natsd.Server{sb, sc} {
		if err := s.WaitCluster(ctx, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := natsd.Agree(ctx, sa, sb, sc); err != nil {
		t.Fatal(err)
	}

	// A node without a server finds them by its own folder.
	n := load(t, dir, "node")
	if n.Server() != nil || n.Replicas() != 3 || len(n.Others()) != 3 {
		t.Errorf("the folder of nodes: %+v", n)
	}
	nc := dial(t, n.URL(), n.Creds(), n.CA())
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "X", Subjects: []string{"x"}, Replicas: n.Replicas()}); err != nil {
		t.Fatal(err)
	}
	own := natsdtest.Connect(t, sc)
	if own.IsClosed() || own.ConnectedServerName() != "c" {
		t.Errorf("in the process it reaches %s", own.ConnectedServerName())
	}
	if js, err = jetstream.New(own); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(ctx, "x", []byte("hello")); err != nil {
		t.Error(err)
	}

	t.Run("roles", func(t *testing.T) { rolesOn(t, dir, plan.Servers, own) })
	t.Run("a tenant comes later", func(t *testing.T) { latecomer(t, dir, plan.Servers) })
	t.Run("a stranger does not join", func(t *testing.T) { stranger(t, dir, sa, plan.Servers) })
}

// An installation of one server waits for no other.
func TestOneServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "auth")
	if _, err := auth.Init(dir, auth.Plan{Servers: servers(t, "a"), Tenants: []string{"main"}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	b := load(t, dir, "a")
	s := start(t, b.NATS(t.TempDir(), nil))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.WaitCluster(ctx, b.Others(), nil); err != nil {
		t.Error(err)
	}
	if b.Replicas() != 1 || b.Server() == nil {
		t.Errorf("%+v", b)
	}
}

// stranger tries to become a server of the cluster with all that a client has.
func stranger(t *testing.T, dir string, sa *natsd.Server, all []auth.Server) {
	other := filepath.Join(t.TempDir(), "auth")
	d := all[0]
	d.Name = "d"
	ports := freePorts(t, 2)
	d.ClientPort, d.RoutePort = ports[0], ports[1]
	if _, err := auth.Init(other, auth.Plan{Servers: []auth.Server{d}, Tenants: []string{"main"}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct{ ca, says string }{
		"by an authority of its own": {filepath.Join(other, "d", "ca.pem"), "TLS route handshake error"},
		"and trusting ours":          {filepath.Join(dir, "ca.pem"), "Router connection closed"},
	} {
		t.Run(name, func(t *testing.T) {
			ours := load(t, dir, "a").NATS(t.TempDir(), nil)
			cfg := load(t, other, "d").NATS(t.TempDir(), nil)
			cfg.Operator = ours.Operator
			cfg.TLS.CA = x.ca
			cfg.Cluster = &natsd.Cluster{Name: "rollcall", Port: d.RoutePort, Routes: []string{all[0].RouteAddr()}}
			lines := make(lineLog, 1000)
			cfg.Log = lines.logger()
			s := start(t, cfg)
			lines.wait(t, x.says)
			if missing := s.Missing([]string{"a"}); len(missing) != 1 {
				t.Error("the stranger has a route")
			}
			if missing := sa.Missing([]string{"d"}); len(missing) != 1 {
				t.Error("the cluster took in a stranger")
			}
		})
	}
	// Without any certificate not a word is said.
	c, err := tls.Dial("tcp", all[0].RouteAddr(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a stranger does
	if err == nil {
		defer c.Close() //nolint:errcheck // it is over
		_, _ = c.Write([]byte("CONNECT {}\r\n"))
		if _, err = c.Read(make([]byte, 1)); err == nil {
			t.Error("a route spoke to somebody without a certificate")
		}
	}
	plain := dialPlain(t, all[0].RouteAddr())
	if strings.Contains(plain, "PONG") {
		t.Error("a route spoke without TLS")
	}
	if _, err := nats.Connect("nats://"+all[0].ClientAddr(), nats.Secure(&tls.Config{InsecureSkipVerify: true})); err == nil { //nolint:gosec // a stranger does
		t.Error("a client without credentials got in")
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "node")); err != nil || len(entries) != 3 {
		t.Errorf("the folder of nodes holds %v, %v", entries, err)
	}
}

// dialPlain speaks to a port without TLS and gives what comes back.
func dialPlain(t *testing.T, addr string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it is over
	_ = c.SetDeadline(time.Now().Add(patience))
	_, _ = c.Write([]byte("CONNECT {\"verbose\":false}\r\nPING\r\n"))
	var all strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		all.Write(buf[:n])
		if err != nil || strings.Contains(all.String(), "PONG") {
			return all.String()
		}
	}
}
