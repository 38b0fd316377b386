package eventstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/natsd"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// On three replicas a conflict has two codes. Both are met here raw, and the
// store calls both a conflict.
func TestConflictCodes(t *testing.T) {
	servers := natsdtest.Cluster(t, 3)
	conns := make([]*nats.Conn, 3)
	stores := make([]*eventstore.JetStream, 3)
	for i := range conns {
		conns[i] = natsdtest.Connect(t, servers[i])
		stores[i] = natsdtest.Open(t, conns[i], eventstore.Config{Replicas: 3})
	}
	ctx := patient(t)

	codes := make(map[int]int)
	for round := 0; codes[10071] == 0 || codes[10164] == 0; round++ {
		if ctx.Err() != nil {
			t.Fatalf("codes met: %v", codes)
		}
		for code, n := range race(t, ctx, conns, round) {
			codes[code] += n
		}
	}
	t.Logf("refusals by code: %v", codes)
	for code := range codes {
		if code != 10071 && code != 10164 {
			t.Errorf("a third code: %d", code)
		}
	}

	for round := range 10 {
		key := domain.Key{Tenant: "main", Conversation: fmt.Sprint("many-writers-", round)}
		var mu sync.Mutex
		var conflicts, won int
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				_, err := stores[i%3].Append(ctx, key, eventstore.Position{}, &rollcallv1.Commit{Node: fmt.Sprint(i)})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					won++
				case errors.Is(err, eventstore.ErrConflict):
					conflicts++
				default:
					t.Errorf("append: %v", err)
				}
			})
		}
		wg.Wait()
		if won != 1 || conflicts != 11 {
			t.Fatalf("%d won, %d conflicts", won, conflicts)
		}
	}
}

// race publishes at once from all servers to one subject with one expectation
// and counts the refusals by code.
func race(t *testing.T, ctx context.Context, conns []*nats.Conn, round int) map[int]int {
	t.Helper()
	codes := make(map[int]int)
	var mu sync.Mutex
	var wg sync.WaitGroup
	subject := eventstore.EventSubject(domain.Key{Tenant: "raw", Conversation: fmt.Sprint(round)})
	for i := range 12 {
		wg.Go(func() {
			m := &nats.Msg{Subject: subject, Header: nats.Header{}, Data: []byte{byte(i)}}
			m.Header.Set("Nats-Expected-Last-Subject-Sequence", "0")
			answer, err := conns[i%3].RequestMsgWithContext(ctx, m)
			if err != nil {
				t.Error(err)
				return
			}
			var ack struct {
				Error struct {
					Code int `json:"err_code"`
				} `json:"error"`
			}
			if err := json.Unmarshal(answer.Data, &ack); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if ack.Error.Code != 0 {
				codes[ack.Error.Code]++
			}
		})
	}
	wg.Wait()
	return codes
}

// The loss of the server that leads the log delays appends and loses nothing.
func TestServerLost(t *testing.T) {
	servers := natsdtest.Cluster(t, 3)
	lost := leader(t, servers)
	nc := natsdtest.Connect(t, servers[(lost+1)%3])
	s := natsdtest.Open(t, nc, eventstore.Config{Replicas: 3})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	key := domain.Key{Tenant: "main", Conversation: "c1"}
	l, err := s.Claim(ctx, "n1", key.Partition())
	if err != nil {
		t.Fatal(err)
	}
	var pos eventstore.Position
	var slowest time.Duration
	for i := range 60 {
		if i == 20 {
			servers[lost].Shutdown()
		}
		start := time.Now()
		c := &rollcallv1.Commit{Node: "n1", Epoch: l.Epoch}
		r, err := s.Append(ctx, key, pos, c)
		for errors.Is(err, eventstore.ErrUnknown) && ctx.Err() == nil {
			r, err = s.Append(ctx, key, pos, c)
		}
		if err != nil {
			t.Fatal(err)
		}
		pos, slowest = r.Position(), max(slowest, time.Since(start))
	}
	if got := versions(t, s, key); len(got) != 60 {
		t.Fatalf("%d commits, want 60", len(got))
	}
	t.Logf("slowest append %v", slowest)

	// The rest of the store goes on as well.
	if _, _, err := s.Publish(ctx, eventstore.Envelope{Key: key, To: "lead", Data: []byte("after")}); err != nil {
		t.Fatal(err)
	}
	if l, err = s.Claim(ctx, "n1", key.Partition()); err != nil {
		t.Fatal(err)
	}
	r, err := s.Receive(ctx, l)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	expect(t, ctx, r, "after", func(d eventstore.Delivery) error { return d.Ack(ctx) })
}

// leader provisions and finds the server that leads the log.
func leader(t *testing.T, servers []*natsd.Server) int {
	t.Helper()
	nc := natsdtest.Connect(t, servers[0])
	natsdtest.Open(t, nc, eventstore.Config{Replicas: 3})
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), eventstore.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if _, err := fmt.Sscanf(s.CachedInfo().Cluster.Leader, "n%d", &n); err != nil {
		t.Fatal(err)
	}
	return n - 1
}
