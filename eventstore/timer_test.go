package eventstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
)

// A due message is forgotten beside the inbox after its time to live, never in
// it: it waits for an owner as long as it takes.
func TestDueOutlivesItsCopy(t *testing.T) {
	s, nc := natsdtest.Store(t)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	e, err := eventstore.TimerEnvelope(conv, "t1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	// As ArmTimer does, with a shorter time to live.
	m := &nats.Msg{Subject: "rollcall.timer." + conv.String() + ".t1", Header: nats.Header{}, Data: e.Data}
	m.Header.Set("Nats-Schedule", "@at "+time.Now().UTC().Format(time.RFC3339Nano))
	m.Header.Set("Nats-Schedule-Target", "rollcall.due."+conv.String()+".t1")
	m.Header.Set("Nats-Schedule-TTL", "1s")
	if _, err := js.PublishMsg(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	left := func(stream string) uint64 {
		t.Helper()
		s, err := js.Stream(t.Context(), stream)
		if err != nil {
			t.Fatal(err)
		}
		return s.CachedInfo().State.Msgs
	}
	ctx, tick := patient(t), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for left(eventstore.StreamInbox) == 0 || left(eventstore.StreamTimers) > 0 {
		select {
		case <-ctx.Done():
			t.Fatal("the due message does not move on")
		case <-tick.C:
		}
	}
	l, err := s.Claim(ctx, "n1", conv.Partition())
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Receive(ctx, l)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	expect(t, ctx, r, string(e.Data), nil)
}

// The copy beside the inbox has a time to live.
func TestDueIsForgotten(t *testing.T) {
	s, nc := natsdtest.Store(t)
	ctx := patient(t)
	if err := s.ArmTimer(ctx, conv, "t1", time.Now()); err != nil {
		t.Fatal(err)
	}
	l, err := s.Claim(ctx, "n1", conv.Partition())
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Receive(ctx, l)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Next(ctx); err != nil {
		t.Fatal(err)
	}
	js, _ := jetstream.New(nc)
	stream, err := js.Stream(ctx, eventstore.StreamTimers)
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetLastMsgForSubject(ctx, "rollcall.due."+conv.String()+".t1")
	if err != nil {
		t.Fatal(err)
	}
	if ttl, err := time.ParseDuration(m.Header.Get("Nats-TTL")); err != nil || ttl != 24*time.Hour {
		t.Fatalf("time to live %q", m.Header.Get("Nats-TTL"))
	}
}

// A timer that comes due while the inbox is full comes when there is room.
func TestDueWhenFull(t *testing.T) {
	nc := natsdtest.Connect(t, natsdtest.Start(t))
	s := natsdtest.Open(t, nc, eventstore.Config{InboxBytes: 256 << 10})
	ctx := patient(t)
	for _, size := range []int{64 << 10, 1 << 10, 0} { // to the brim
		e := eventstore.Envelope{Key: conv, To: "lead", Data: make([]byte, size)}
		var err error
		for err == nil {
			_, _, err = s.Publish(ctx, e)
		}
		if !errors.Is(err, eventstore.ErrInboxFull) {
			t.Fatal(err)
		}
	}
	due := time.Now()
	if err := s.ArmTimer(ctx, conv, "t1", due); err != nil {
		t.Fatal(err)
	}
	l, err := s.Claim(ctx, "n1", conv.Partition())
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Receive(ctx, l)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		d, err := r.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if d.Envelope().To == eventstore.ToCommand {
			t.Logf("it came %v late", time.Since(due))
			return
		}
		if err := d.Ack(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
