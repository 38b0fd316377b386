package eventstore

import (
	"errors"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/natsd"
)

// What the server delivered into a connection that broke would come again only
// after AckWait. The receiver notices and gives the partition up, and its next
// owner gets it at once.
func TestDeliveriesLost(t *testing.T) {
	server, err := natsd.Start(natsd.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()
	nc, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx := t.Context()
	if err := Provision(ctx, nc, Config{}); err != nil {
		t.Fatal(err)
	}
	s, err := Open(ctx, nc, Config{})
	if err != nil {
		t.Fatal(err)
	}
	key := domain.Key{Tenant: "main", Conversation: "c1"}
	own := func() *receiver {
		t.Helper()
		l, err := s.Claim(ctx, "n1", key.Partition())
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Receive(ctx, l)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		return r.(*receiver)
	}
	publish := func(text string) {
		t.Helper()
		if _, _, err := s.Publish(ctx, Envelope{Key: key, To: "lead", Data: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	next := func(r *receiver, want string) {
		t.Helper()
		d, err := r.Next(ctx)
		if err != nil || string(d.Envelope().Data) != want {
			t.Fatalf("next: %v, want %q", err, want)
		}
	}

	r := own()
	publish("lost")
	// Delivered, and never arrived here.
	if _, err := nc.Request("$JS.API.CONSUMER.MSG.NEXT."+StreamInbox+"."+consumerName(r.lease), []byte("1"), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	publish("here")
	next(r, "here")
	if err := r.check(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(ctx); !errors.Is(err, ErrPartitionLost) {
		t.Fatalf("next after a lost delivery: %v", err)
	}

	r = own()
	next(r, "lost")
	next(r, "here")
	// Nothing is missing now: the look changes nothing.
	if err := r.check(ctx); err != nil || r.lost != nil {
		t.Fatalf("%v, %v", err, r.lost)
	}
	publish("more")
	next(r, "more")
}
