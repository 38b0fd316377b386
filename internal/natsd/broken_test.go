package natsd_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/internal/natsd"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
)

// A server whose disk is full says so, once, and stays so.
func TestBrokenByAFullDisk(t *testing.T) {
	dir, fill := natsdtest.SmallDisk(t, 8<<20)
	s, err := natsd.Start(natsd.Config{Dir: dir, Port: -1, Token: natsdtest.Token})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown()
	nc := natsdtest.Connect(t, s)
	defer natsdtest.Close(nc)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "LOG", Subjects: []string{"log"}}); err != nil {
		t.Fatal(err)
	}
	stored := 0
	store := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := js.Publish(ctx, "log", make([]byte, 10_000))
		if err == nil {
			stored++
		}
		return err
	}
	if err := store(); err != nil {
		t.Fatal(err)
	}
	empty := fill()
	for range 100 {
		if store() != nil {
			break
		}
	}
	select {
	case why := <-s.Broken():
		if !strings.Contains(why, "no space left") {
			t.Errorf("it says %q", why)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it does not say that it cannot write")
	}
	empty()
	if store() == nil {
		t.Error("it stores again by itself: then a node need not end")
	}
	s.Shutdown()

	s, err = natsd.Start(natsd.Config{Dir: dir, Port: -1, Token: natsdtest.Token})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown()
	again := natsdtest.Connect(t, s)
	defer natsdtest.Close(again)
	if js, err = jetstream.New(again); err != nil {
		t.Fatal(err)
	}
	st, err := js.Stream(t.Context(), "LOG")
	if err != nil || st.CachedInfo().State.Msgs < uint64(stored) { //nolint:gosec // a count
		t.Fatalf("of %d acknowledged messages: %+v, %v", stored, st, err)
	}
	if err := store(); err != nil {
		t.Error(err)
	}
}
