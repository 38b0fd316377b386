package eventstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/natsd"
)

// alone is a server with a store on it.
func alone(t *testing.T) (*nats.Conn, *JetStream) {
	t.Helper()
	server, err := natsd.Start(natsd.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	nc, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if err := Provision(t.Context(), nc, Config{}); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), nc, Config{})
	if err != nil {
		t.Fatal(err)
	}
	return nc, s
}

// watched is a receiver that looks often.
func watched(t *testing.T, s *JetStream, partition int) *receiver {
	t.Helper()
	l, err := s.Claim(t.Context(), "n1", partition)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Receive(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(got.Close)
	r := got.(*receiver)
	r.expires, r.stalled = 300*time.Millisecond, 200*time.Millisecond
	return r
}

// b51-consumer-stuck: a consumer that is there and does not bring what is in the
// stream, whether it stands still or believes that it brought it already, is
// noticed, and the next one brings everything, in order. One that has nothing to
// bring is left alone.
func TestConsumerStuck(t *testing.T) {
	t.Run("b51-consumer-stuck", consumerStuck)
}

func consumerStuck(t *testing.T) {
	for name, stick := range map[string]func(*testing.T, *nats.Conn, Lease){
		"it stands still": func(t *testing.T, nc *nats.Conn, l Lease) {
			js, err := jetstream.New(nc)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := js.PauseConsumer(t.Context(), StreamInbox, consumerName(l), time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		},
		"it believes that it brought them": func(t *testing.T, nc *nats.Conn, l Lease) {
			answer, err := nc.Request("$JS.API.CONSUMER.RESET."+StreamInbox+"."+consumerName(l), []byte(`{"seq":1000}`), 10*time.Second)
			if err != nil || strings.Contains(string(answer.Data), "error") {
				t.Fatalf("%v, %s", err, answer.Data)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			nc, s := alone(t)
			key := domain.Key{Tenant: "main", Conversation: "c1"}
			publish := func(text string) {
				t.Helper()
				if _, _, err := s.Publish(t.Context(), Envelope{Key: key, To: "lead", Data: []byte(text)}); err != nil {
					t.Fatal(err)
				}
			}
			next := func(r *receiver, want string) Delivery {
				t.Helper()
				d, err := r.Next(ctx)
				if err != nil || string(d.Envelope().Data) != want {
					t.Fatalf("next: %v, want %q", err, want)
				}
				return d
			}
			r := watched(t, s, key.Partition())
			publish("anchor") // held for long, as while work is due
			next(r, "anchor")
			// For a while it has nothing to bring.
			quiet := time.AfterFunc(8*r.expires, func() { publish("one") })
			defer quiet.Stop()
			if err := next(r, "one").Ack(t.Context()); err != nil {
				t.Fatal(err)
			}

			stick(t, nc, r.lease)
			for i := range 3 {
				publish(fmt.Sprint(i))
			}
			begun := time.Now()
			if _, err := r.Next(ctx); !errors.Is(err, ErrPartitionLost) {
				t.Fatalf("next of a consumer that is stuck: %v", err)
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("noticed after %v", took)
			}
			again := watched(t, s, key.Partition())
			for _, want := range []string{"anchor", "0", "1", "2"} {
				next(again, want)
			}
		})
	}
}
