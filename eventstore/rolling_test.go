package eventstore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/natsd"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
)

// trio are three servers on lasting ports, so that each can be started again.
type trio struct {
	t       *testing.T
	configs []natsd.Config
	servers []*natsd.Server
}

func newTrio(t *testing.T) *trio {
	t.Helper()
	var ports []int
	var open []net.Listener
	for range 6 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, l)
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	for _, l := range open {
		_ = l.Close()
	}
	var routes []string
	for i := range 3 {
		routes = append(routes, fmt.Sprintf("127.0.0.1:%d", ports[3+i]))
	}
	c := &trio{t: t, servers: make([]*natsd.Server, 3)}
	for i := range 3 {
		c.configs = append(c.configs, natsd.Config{
			Dir: t.TempDir(), Name: fmt.Sprintf("n%d", i+1), Port: ports[i], Token: natsdtest.Token,
			Cluster: &natsd.Cluster{Name: "test", Port: ports[3+i], Routes: routes},
		})
		c.start(i)
	}
	t.Cleanup(func() {
		for _, s := range c.servers {
			s.Shutdown()
		}
	})
	c.agree()
	return c
}

func (c *trio) start(i int) {
	c.t.Helper()
	var err error
	if c.servers[i], err = natsd.Start(c.configs[i]); err != nil {
		c.t.Fatal(err)
	}
}

func (c *trio) agree() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	if err := natsd.Agree(ctx, c.servers...); err != nil {
		c.t.Fatal(err)
	}
}

func (c *trio) connect() *nats.Conn {
	c.t.Helper()
	var urls []string
	for _, s := range c.servers {
		urls = append(urls, s.URL)
	}
	nc, err := nats.Connect(strings.Join(urls, ","), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.Token(natsdtest.Token),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { natsdtest.Close(nc) })
	return nc
}

// inTurn is what is received while servers come and go.
type inTurn struct {
	t        *testing.T
	store    *eventstore.JetStream
	mu       sync.Mutex
	sent     map[string]time.Time
	received map[string]time.Duration
	lost     atomic.Int64
}

// b51-servers-restart-in-turn: each NATS server (the first, but for a soak) is
// restarted under load, and
// nothing that came in is stuck: all of it is received, long before an
// acknowledgement would time out.
func TestServersRestartInTurn(t *testing.T) {
	t.Run("b51-servers-restart-in-turn", func(t *testing.T) {
		c := newTrio(t)
		nc := c.connect()
		s := natsdtest.Open(t, nc, eventstore.Config{Replicas: 3})
		w := &inTurn{t: t, store: s, sent: map[string]time.Time{}, received: map[string]time.Duration{}}
		ctx, end := context.WithCancel(t.Context())
		keys := []domain.Key{{Tenant: "main", Conversation: "c1"}, {Tenant: "main", Conversation: "c2"}, {Tenant: "main", Conversation: "c3"}}
		var receiving, sending sync.WaitGroup
		sendCtx, enough := context.WithCancel(ctx)
		for _, key := range keys {
			receiving.Go(func() { w.receive(ctx, key.Partition()) })
			sending.Go(func() { w.send(sendCtx, key) })
		}
		// settled waits until messages sent from now on are received.
		settled := func() {
			t.Helper()
			from := time.Now()
			for deadline := from.Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
				w.mu.Lock()
				n := map[string]bool{}
				for id := range w.received {
					if w.sent[id].After(from) {
						n[id[:2]] = true
					}
				}
				w.mu.Unlock()
				if len(n) == len(keys) {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("only %d of %d partitions receive", len(n), len(keys))
				}
			}
		}
		settled()
		restarted := len(c.servers)
		if os.Getenv("ROLLCALL_SOAK") == "" {
			restarted = 1 // an election takes NATS many seconds
		}
		for i := range restarted {
			begun := time.Now()
			took := func(what string) {
				t.Logf("%s: %s after %v", c.configs[i].Name, what, time.Since(begun).Round(time.Millisecond))
			}
			c.servers[i].Shutdown()
			took("down")
			if i == 0 { // this one stays away for longer
				settled()
				took("received without it")
			}
			c.start(i)
			c.agree()
			took("up")
			settled()
			took("received with it")
		}
		enough()
		sending.Wait()
		for deadline := time.Now().Add(time.Minute); !w.done(); <-time.After(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				break
			}
		}
		end()
		receiving.Wait()
		w.judge()
	})
}

// send publishes one message after the other; those of unknown fate do not count.
func (w *inTurn) send(ctx context.Context, key domain.Key) {
	for n := 0; ctx.Err() == nil; n++ {
		id := fmt.Sprintf("%s-%d", key.Conversation, n)
		try, cancel := context.WithTimeout(ctx, 10*time.Second)
		begun := time.Now()
		_, _, err := w.store.Publish(try, eventstore.Envelope{Key: key, To: "lead", Data: []byte(id)})
		cancel()
		if err == nil {
			w.mu.Lock()
			w.sent[id] = begun
			w.mu.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// receive works on a partition as its owner does: one that is lost is claimed
// again.
func (w *inTurn) receive(ctx context.Context, partition int) {
	for ctx.Err() == nil {
		l, err := w.store.Claim(ctx, "n1", partition)
		if err != nil {
			continue
		}
		r, err := w.store.Receive(ctx, l)
		if err != nil {
			continue
		}
		for {
			d, err := r.Next(ctx)
			if errors.Is(err, eventstore.ErrPartitionLost) {
				w.lost.Add(1)
				w.t.Log(err)
				break
			}
			if err != nil {
				if ctx.Err() != nil {
					break
				}
				continue
			}
			id := string(d.Envelope().Data)
			w.mu.Lock()
			if _, again := w.received[id]; !again {
				w.received[id] = time.Since(d.Time())
			}
			w.mu.Unlock()
			if err := d.Ack(ctx); errors.Is(err, eventstore.ErrPartitionLost) {
				break
			}
		}
		r.Close()
	}
}

func (w *inTurn) done() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.sent {
		if _, ok := w.received[id]; !ok {
			return false
		}
	}
	return true
}

// bound of the time from stored to received: a server's election, a connection
// found dead and a consumer found stuck, all one after the other.
const inTurnBound = 45 * time.Second

func (w *inTurn) judge() {
	w.t.Helper()
	var slowest time.Duration
	for id := range w.sent {
		took, ok := w.received[id]
		if !ok {
			w.t.Errorf("%s was acknowledged and never received", id)
		}
		slowest = max(slowest, took)
	}
	w.t.Logf("%d messages, the slowest received after %v; partitions were lost %d times", len(w.sent), slowest, w.lost.Load())
	if slowest > inTurnBound || len(w.sent) < 100 {
		w.t.Errorf("%d messages, the slowest received after %v", len(w.sent), slowest)
	}
}
