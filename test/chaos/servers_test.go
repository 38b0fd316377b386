package chaos_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// servers are three nats-servers that make a JetStream cluster. All routes
// between them go through the network.
type servers struct {
	t   testing.TB
	net *network
	all []*server
}

type server struct {
	of   *servers
	name string
	dir  string
	conf string
	proc *process
	out  *output
	// client and route are where it listens now; empty while it is down.
	client, route atomic.Value
}

// startServers starts a cluster and waits until it has a leader.
func startServers(t testing.TB, net *network, n int) *servers {
	t.Helper()
	s := &servers{t: t, net: net}
	for _, name := range names("s", n) {
		one := &server{of: s, name: name, dir: t.TempDir(), out: &output{}}
		one.client.Store("")
		one.route.Store("")
		s.all = append(s.all, one)
	}
	// What servers tell each other of themselves leads nowhere: they meet by the
	// wires alone.
	nowhere := net.wire("nowhere", "nowhere", func() string { return "" })
	for _, a := range s.all {
		var routes []string
		for _, b := range s.all {
			if a != b {
				routes = append(routes, "nats-route://"+net.wire(a.name, b.name, func() string { return b.route.Load().(string) }))
			}
		}
		a.configure(routes, nowhere)
	}
	t.Cleanup(func() {
		for _, one := range s.all {
			one.kill()
			if t.Failed() {
				t.Logf("%s said at last:\n%s", one.name, tail(one.out.String(), 15))
			}
		}
	})
	for _, one := range s.all {
		one.start()
	}
	s.ready()
	return s
}

func (s *server) configure(routes []string, nowhere string) {
	s.conf = filepath.Join(s.dir, "server.conf")
	text := fmt.Sprintf(`server_name: %s
listen: "127.0.0.1:-1"
ports_file_dir: %q
max_payload: 1MB
jetstream { store_dir: %q }
cluster {
  name: chaos
  listen: "127.0.0.1:-1"
  advertise: %q
  no_advertise: true
  routes: [%s]
}
`, s.name, s.dir, filepath.Join(s.dir, "js"), nowhere, `"`+strings.Join(routes, `", "`)+`"`)
	if err := os.WriteFile(s.conf, []byte(text), 0o600); err != nil {
		s.of.t.Fatal(err)
	}
}

// start starts the server, again from its disk after a kill, and waits until it
// listens.
func (s *server) start() {
	t := s.of.t
	t.Helper()
	s.proc = launch(t, s.out, s.name, build(t, "nats-server", "github.com/nats-io/nats-server/v2"), nil, "-c", s.conf)
	file := filepath.Join(s.dir, fmt.Sprintf("nats-server_%d.ports", s.proc.pid()))
	var ports struct{ Nats, Cluster []string }
	poll(t, s.name+" listens", func() bool {
		if !s.proc.lives() {
			t.Fatalf("%s ended:\n%s", s.name, s.out)
		}
		data, err := os.ReadFile(file)
		return err == nil && json.Unmarshal(data, &ports) == nil && len(ports.Nats) > 0 && len(ports.Cluster) > 0
	})
	s.client.Store(hostOf(t, ports.Nats[0]))
	s.route.Store(hostOf(t, ports.Cluster[0]))
}

func hostOf(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// kill ends the server with SIGKILL. Its disk stays.
func (s *server) kill() {
	s.client.Store("")
	s.route.Store("")
	if s.proc != nil {
		s.proc.kill()
	}
}

// ready waits until the cluster has a leader and takes requests.
func (s *servers) ready() {
	s.t.Helper()
	nc := s.connect("ready", nil)
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		s.t.Fatal(err)
	}
	poll(s.t, "the NATS cluster is ready", func() bool {
		ctx, cancel := within(2 * time.Second)
		defer cancel()
		_, err := js.AccountInfo(ctx)
		return err == nil
	})
}

// urls are those of all servers as one process sees them: through wires of its
// own, in an order that begins with one of its own.
func (s *servers) urls(from string) []string {
	var all []string
	for _, one := range s.all {
		all = append(all, "nats://"+s.net.wire(from, one.name, func() string { return one.client.Load().(string) }))
	}
	return all
}

// connect is a client of this process, by wires of its own.
func (s *servers) connect(name string, urls []string, options ...nats.Option) *nats.Conn {
	s.t.Helper()
	if urls == nil {
		urls = s.urls(name)
	}
	options = append([]nats.Option{
		nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectWait(50 * time.Millisecond),
		nats.ReconnectJitter(20*time.Millisecond, 20*time.Millisecond), nats.Timeout(time.Second), nats.ReconnectBufSize(-1),
		nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2), nats.RetryOnFailedConnect(true),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // requests tell
	}, options...)
	nc, err := nats.Connect(strings.Join(urls, ","), options...)
	if err != nil {
		s.t.Fatal(err)
	}
	return nc
}

// named is the server of that name.
func (s *servers) named(name string) *server {
	i := slices.IndexFunc(s.all, func(one *server) bool { return one.name == name })
	if i < 0 {
		return nil
	}
	return s.all[i]
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
