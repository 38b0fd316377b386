package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
)

func claim(t *testing.T, s eventstore.Store, node string, partition int) eventstore.Lease {
	t.Helper()
	l, err := s.Claim(t.Context(), node, partition)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// receive claims the partition and receives it.
func receive(t *testing.T, s eventstore.Store, node string, partition int) eventstore.Receiver {
	t.Helper()
	r, err := s.Receive(t.Context(), claim(t, s, node, partition))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func publish(t *testing.T, s eventstore.Store, key domain.Key, text string, header map[string]string) uint64 {
	t.Helper()
	seq, duplicate, err := s.Publish(t.Context(), eventstore.Envelope{Key: key, To: domain.LeadID, Header: header, Data: []byte(text)})
	if err != nil || duplicate {
		t.Fatalf("publish %q: duplicate %v, %v", text, duplicate, err)
	}
	return seq
}

func next(t *testing.T, r eventstore.Receiver) eventstore.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d, err := r.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func nextText(t *testing.T, r eventstore.Receiver, want string) eventstore.Delivery {
	t.Helper()
	d := next(t, r)
	if got := string(d.Envelope().Data); got != want {
		t.Fatalf("received %.60q, want %q", got, want)
	}
	return d
}

// nothingBefore expects that a message published now is the next to come.
func nothingBefore(t *testing.T, s eventstore.Store, r eventstore.Receiver, key domain.Key) {
	t.Helper()
	publish(t, s, key, "marker", nil)
	nextText(t, r, "marker")
}

func ack(t *testing.T, d eventstore.Delivery) {
	t.Helper()
	if err := d.Ack(t.Context()); err != nil {
		t.Fatal(err)
	}
}

var inboxCases = []Case{
	{"messages arrive whole and in order", func(t *testing.T, s Store) {
		p := newPartition()
		a, b := keyIn(p), keyIn(p)
		publish(t, s, a, "before", nil)
		r := receive(t, s, "n1", p)
		start := time.Now()
		seq, _, err := s.Publish(t.Context(), eventstore.Envelope{
			Key: b, To: eventstore.ToCommand,
			Header: map[string]string{eventstore.HeaderID: "k1", eventstore.HeaderReply: "answer.here", eventstore.HeaderContentType: "application/protobuf"},
			Data:   []byte{0, 1, 2},
		})
		if err != nil {
			t.Fatal(err)
		}
		publish(t, s, a, "after", nil)
		ack(t, nextText(t, r, "before"))
		d := next(t, r)
		e := d.Envelope()
		if e.Key != b || e.To != eventstore.ToCommand || !bytes.Equal(e.Data, []byte{0, 1, 2}) || d.Seq() != seq {
			t.Fatalf("received %s.%s %v at %d", e.Key, e.To, e.Data, d.Seq())
		}
		if e.Header[eventstore.HeaderID] != "k1" || e.Header[eventstore.HeaderReply] != "answer.here" || e.Header[eventstore.HeaderContentType] != "application/protobuf" {
			t.Fatalf("headers %v", e.Header)
		}
		if age := d.Time().Sub(start); age < -time.Minute || age > time.Minute {
			t.Fatalf("stored at %v, published at %v", d.Time(), start)
		}
		nextText(t, r, "after")
	}},
	{"partitions are apart", func(t *testing.T, s Store) {
		p, q := newPartition(), newPartition()
		publish(t, s, keyIn(q), "elsewhere", nil)
		r := receive(t, s, "n1", p)
		nothingBefore(t, s, r, keyIn(p))
	}},
	{"a message is gone only when acknowledged", func(t *testing.T, s Store) {
		p := newPartition()
		key := keyIn(p)
		for i := range 4 {
			publish(t, s, key, fmt.Sprint(i), nil)
		}
		r := receive(t, s, "n1", p)
		ack(t, nextText(t, r, "0"))
		nextText(t, r, "1")
		d := nextText(t, r, "2")
		if err := d.Hold(); err != nil {
			t.Fatal(err)
		}
		ack(t, d)
		r.Close()
		r = receive(t, s, "n1", p)
		ack(t, nextText(t, r, "1"))
		ack(t, nextText(t, r, "3"))
		nothingBefore(t, s, r, key)
	}},
	{"what was acknowledged does not come to the next owner", func(t *testing.T, s Store) {
		p := newPartition()
		key := keyIn(p)
		rounds := 15
		if testing.Short() {
			rounds = 3
		}
		publish(t, s, key, "0", nil)
		for i := range rounds {
			r := receive(t, s, "n1", p)
			d := nextText(t, r, fmt.Sprint(i))
			publish(t, s, key, fmt.Sprint(i+1), nil)
			ack(t, d)
		}
	}},
	{"what is refused at the door", func(t *testing.T, s Store) {
		key := keyIn(newPartition())
		for what, e := range map[string]eventstore.Envelope{
			"a wildcard":     {Key: key, To: "*"},
			"a display name": {Key: key, To: "Backend Dev"},
			"two tokens":     {Key: key, To: "a.b"},
			"no recipient":   {Key: key},
			"no tenant":      {Key: domain.Key{Conversation: key.Conversation}, To: "lead"},
		} {
			if _, _, err := s.Publish(t.Context(), e); err == nil {
				t.Errorf("%s: stored", what)
			}
		}
		_, _, err := s.Publish(t.Context(), eventstore.Envelope{Key: key, To: "lead", Data: make([]byte, eventstore.MaxInbox+1)})
		if !errors.Is(err, eventstore.ErrTooLarge) {
			t.Fatalf("a message over the limit: %v", err)
		}
		if _, _, err = s.Publish(t.Context(), eventstore.Envelope{Key: key, To: "lead", Data: make([]byte, eventstore.MaxInbox)}); err != nil {
			t.Fatalf("a message at the limit: %v", err)
		}
	}},
	{"a client's key suppresses nothing", func(t *testing.T, s Store) {
		p := newPartition()
		a, b := keyIn(p), keyIn(p)
		id := map[string]string{eventstore.HeaderID: "1"}
		publish(t, s, a, "one", id)
		publish(t, s, b, "two", id)
		publish(t, s, a, "three", id)
		r := receive(t, s, "n1", p)
		for _, want := range []string{"one", "two", "three"} {
			if d := nextText(t, r, want); d.Envelope().Header[eventstore.HeaderID] != "1" {
				t.Fatalf("headers %v", d.Envelope().Header)
			}
		}
	}},
	{"one Nats-Msg-Id in two conversations", func(t *testing.T, s Store) {
		p := newPartition()
		a, b := keyIn(p), keyIn(p)
		id := map[string]string{eventstore.HeaderMsgID: newKey().Conversation}
		publish(t, s, a, "one", id)
		refused := 0
		eventually(t, "the second message is stored", func() bool {
			_, duplicate, err := s.Publish(t.Context(), eventstore.Envelope{Key: b, To: domain.LeadID, Header: id, Data: []byte("two")})
			if err != nil {
				t.Fatal(err)
			}
			if duplicate {
				refused++
			}
			return !duplicate
		})
		t.Logf("%d times told that it is a duplicate", refused)
		r := receive(t, s, "n1", p)
		nextText(t, r, "one")
		nextText(t, r, "two")
		nothingBefore(t, s, r, a)
	}},
	{"dead letters", func(t *testing.T, s Store) {
		p := newPartition()
		key := keyIn(p)
		publish(t, s, key, "poison", map[string]string{eventstore.HeaderID: "k9"})
		publish(t, s, key, "good", nil)
		r := receive(t, s, "n1", p)
		if err := nextText(t, r, "poison").Dead(t.Context(), "no such member: m9"); err != nil {
			t.Fatal(err)
		}
		nextText(t, r, "good")
		all, err := s.DeadLetters(t.Context(), 1000)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, d := range all {
			if d.Envelope.Key != key {
				continue
			}
			n++
			e := d.Envelope
			if d.Reason != "no such member: m9" || string(e.Data) != "poison" || e.To != domain.LeadID || e.Header[eventstore.HeaderID] != "k9" || d.Time.IsZero() {
				t.Fatalf("dead letter %+v", d)
			}
		}
		if n != 1 {
			t.Fatalf("%d dead letters, want 1", n)
		}
		r = receive(t, s, "n1", p)
		nextText(t, r, "good")
	}},
	{"five thousand unacknowledged and the next still comes", func(t *testing.T, s Store) {
		p := newPartition()
		const n, publishers = 5000, 8
		keys := []domain.Key{keyIn(p), keyIn(p), keyIn(p)}
		var wg sync.WaitGroup
		for w := range publishers {
			wg.Go(func() {
				for i := w; i < n; i += publishers {
					e := eventstore.Envelope{Key: keys[i%3], To: domain.LeadID, Data: []byte(fmt.Sprint(i))}
					if _, _, err := s.Publish(t.Context(), e); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		takeAll := func(r eventstore.Receiver) {
			seen, last := make(map[string]bool, n), uint64(0)
			for range n {
				d := next(t, r)
				if d.Seq() <= last {
					t.Fatalf("message %d came after %d", d.Seq(), last)
				}
				last = d.Seq()
				seen[string(d.Envelope().Data)] = true
			}
			if len(seen) != n {
				t.Fatalf("%d different messages, want %d", len(seen), n)
			}
		}
		r := receive(t, s, "n1", p)
		takeAll(r)
		publish(t, s, keys[0], "the approval", nil)
		ack(t, nextText(t, r, "the approval"))
		// And all of it comes again, in order, to whoever takes over.
		r = receive(t, s, "n1", p)
		takeAll(r)
		nothingBefore(t, s, r, keys[1])
	}},
	{"next ends with its context", func(t *testing.T, s Store) {
		p := newPartition()
		r := receive(t, s, "n1", p)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := r.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		nothingBefore(t, s, r, keyIn(p))
	}},
}

var ownerCases = []Case{
	{"a takeover redelivers at once and in order", func(t *testing.T, s Store) {
		p := newPartition()
		key := keyIn(p)
		for i := range 20 {
			publish(t, s, key, fmt.Sprint(i), nil)
		}
		old := receive(t, s, "n1", p)
		var held []eventstore.Delivery
		for i := range 10 {
			held = append(held, nextText(t, old, fmt.Sprint(i)))
		}
		ack(t, held[3])
		r := receive(t, s, "n1", p)
		start := time.Now()
		for i := range 20 {
			if i != 3 {
				nextText(t, r, fmt.Sprint(i))
			}
		}
		if d := time.Since(start); d > eventstore.AckWait/10 {
			t.Fatalf("redelivery took %v", d)
		}
	}},
	{"late acknowledgements of the old owner reach nobody", func(t *testing.T, s Store) {
		p := newPartition()
		key := keyIn(p)
		for i := range 5 {
			publish(t, s, key, fmt.Sprint(i), nil)
		}
		old := receive(t, s, "n1", p)
		var held []eventstore.Delivery
		for i := range 5 {
			held = append(held, nextText(t, old, fmt.Sprint(i)))
		}
		r := receive(t, s, "n1", p)
		nextText(t, r, "0")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for i, d := range held {
			if err := d.Ack(ctx); !errors.Is(err, eventstore.ErrPartitionLost) {
				t.Fatalf("acknowledgement %d by the old owner: %v", i, err)
			}
		}
		if err := held[0].Dead(ctx, "too late"); !errors.Is(err, eventstore.ErrPartitionLost) {
			t.Fatalf("dead letter by the old owner: %v", err)
		}
		r = receive(t, s, "n1", p)
		for i := range 5 {
			nextText(t, r, fmt.Sprint(i))
		}
		dead, err := s.DeadLetters(t.Context(), 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range dead {
			if d.Envelope.Key == key {
				t.Fatalf("the old owner buried %q", d.Envelope.Data)
			}
		}
	}},
	{"the old owner learns that it lost the partition", func(t *testing.T, s Store) {
		p := newPartition()
		oldLease := claim(t, s, "n1", p)
		old, err := s.Receive(t.Context(), oldLease)
		if err != nil {
			t.Fatal(err)
		}
		defer old.Close()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		waiting := make(chan error, 1)
		go func() {
			_, err := old.Next(ctx)
			waiting <- err
		}()
		receive(t, s, "n1", p)
		if err := <-waiting; !errors.Is(err, eventstore.ErrPartitionLost) {
			t.Fatalf("next of the old owner: %v", err)
		}
		if _, err := old.Next(ctx); !errors.Is(err, eventstore.ErrPartitionLost) {
			t.Fatalf("next of the old owner, again: %v", err)
		}
		if _, err := s.Receive(t.Context(), oldLease); !errors.Is(err, eventstore.ErrPartitionLost) {
			t.Fatalf("receive with the old lease: %v", err)
		}
	}},
}
