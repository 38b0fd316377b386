package chaos_test

import (
	"context"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
)

// TestCurrent: a server that led and was split off answers from the past. Who
// must know asks for the present first, and gets it no sooner than there is a
// server that can tell it.
func TestCurrent(t *testing.T) {
	t.Parallel()
	l := newLinear(t, 1, 3, 1, nil)
	key := l.writers[0].keys[0]
	lead := l.b.leader()
	var cutOff, other eventstore.Log
	for i, name := range l.b.servers.names() {
		if name == lead {
			cutOff, other = l.writers[i].store, l.writers[(i+1)%3].store
		}
	}
	first, err := cutOff.Append(t.Context(), key, eventstore.Position{}, numbered(eventstore.Position{}, "w", 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := cutOff.Current(t.Context()); err != nil {
		t.Fatal(err)
	}

	for _, name := range l.b.servers.but(lead) {
		l.b.servers.net.cut(lead, name)
		l.b.servers.net.cut(name, lead)
	}
	told := make(chan int, 1)
	go func() { // asked of the one that is cut off, it must not answer yet
		if err := cutOff.Current(t.Context()); err != nil {
			t.Error(err)
		}
		told <- versions(t, cutOff, key)
	}()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := numbered(first.Position(), "w", 1)
	for {
		if _, err = other.Append(ctx, key, first.Position(), c); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	select {
	case n := <-told:
		t.Fatalf("a server that is cut off said that it knows all, and of %d commits", n)
	case <-time.After(100 * time.Millisecond):
	}
	l.b.servers.net.mend(lead, true)
	select {
	case n := <-told:
		if n != 2 {
			t.Errorf("what was asked for was the present, and it has %d commits of 2", n)
		}
	case <-time.After(patience):
		t.Error("there is a leader, and it is not known to be one")
	}
}

func versions(t *testing.T, log eventstore.Log, key domain.Key) (n int) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := log.Load(ctx, key, eventstore.Position{}, func(eventstore.Recorded) error { n++; return nil }); err != nil {
		t.Error(err)
	}
	return n
}
