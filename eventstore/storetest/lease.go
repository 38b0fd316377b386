package storetest

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

var leaseCases = []Case{
	{"one node holds a partition", func(t *testing.T, s Store) {
		p := newPartition()
		l := claim(t, s, "n1", p)
		if l.Partition != p || l.Node != "n1" || l.Epoch == 0 {
			t.Fatalf("lease %+v", l)
		}
		_, err := s.Claim(t.Context(), "n2", p)
		if !errors.Is(err, eventstore.ErrHeld) || !strings.Contains(err.Error(), "n1") {
			t.Fatalf("claim of a held partition: %v, want one that names n1", err)
		}
		if err := s.Renew(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Claim(t.Context(), "n2", p); !errors.Is(err, eventstore.ErrHeld) {
			t.Fatalf("claim of a renewed lease: %v", err)
		}
	}},
	{"epochs rise", func(t *testing.T, s Store) {
		p := newPartition()
		var last uint64
		for i := range 6 {
			l := claim(t, s, "n1", p)
			if l.Epoch <= last {
				t.Fatalf("epoch %d after %d", l.Epoch, last)
			}
			last = l.Epoch
			for range i {
				if err := s.Renew(t.Context(), l); err != nil {
					t.Fatal(err)
				}
			}
			if i%2 == 1 {
				if err := s.Release(t.Context(), l); err != nil {
					t.Fatal(err)
				}
			}
		}
	}},
	{"a node takes its own claim over at once", func(t *testing.T, s Store) {
		p := newPartition()
		old := claim(t, s, "n1", p)
		l := claim(t, s, "n1", p)
		if err := s.Renew(t.Context(), old); !errors.Is(err, eventstore.ErrPartitionLost) {
			t.Fatalf("renewal of the older claim: %v", err)
		}
		if err := s.Release(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		if err := s.Renew(t.Context(), l); err != nil {
			t.Fatalf("the newer claim, after the older was released: %v", err)
		}
	}},
	{"a released partition is free", func(t *testing.T, s Store) {
		p := newPartition()
		l := claim(t, s, "n1", p)
		if err := s.Release(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		other := claim(t, s, "n2", p)
		if other.Epoch <= l.Epoch {
			t.Fatalf("epoch %d after %d", other.Epoch, l.Epoch)
		}
		if err := s.Renew(t.Context(), l); !errors.Is(err, eventstore.ErrPartitionLost) {
			t.Fatalf("renewal of a released lease: %v", err)
		}
	}},
	{"a lease lapses unless renewed", func(t *testing.T, s Store) {
		kept, left := newPartition(), newPartition()
		l, gone := claim(t, s, "n1", kept), claim(t, s, "n1", left)
		start := time.Now()
		var other eventstore.Lease
		for other.Epoch == 0 {
			if err := s.Renew(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Claim(t.Context(), "n2", kept); !errors.Is(err, eventstore.ErrHeld) {
				t.Fatalf("claim of a renewed lease after %v: %v", time.Since(start), err)
			}
			var err error
			other, err = s.Claim(t.Context(), "n2", left)
			if err != nil && !errors.Is(err, eventstore.ErrHeld) {
				t.Fatal(err)
			}
			if time.Since(start) > patience {
				t.Fatalf("the lease has not lapsed after %v", patience)
			}
			pause(t, eventstore.LeaseTTL/20)
		}
		if d := time.Since(start); d < eventstore.LeaseTTL {
			t.Fatalf("the lease lapsed after %v", d)
		}
		if other.Epoch <= gone.Epoch {
			t.Fatalf("epoch %d after %d", other.Epoch, gone.Epoch)
		}
		if err := s.Renew(t.Context(), gone); !errors.Is(err, eventstore.ErrPartitionLost) {
			t.Fatalf("renewal of a lapsed lease: %v", err)
		}
	}},
	{"one of many claimers wins", func(t *testing.T, s Store) {
		p := newPartition()
		var won, held atomic.Int64
		var wg sync.WaitGroup
		for _, node := range []string{"n1", "n2", "n3", "n4", "n5", "n6"} {
			wg.Go(func() {
				_, err := s.Claim(t.Context(), node, p)
				switch {
				case err == nil:
					won.Add(1)
				case errors.Is(err, eventstore.ErrHeld):
					held.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || held.Load() != 5 {
			t.Fatalf("%d won, %d were told that it is held", won.Load(), held.Load())
		}
	}},
}

// pause waits for a timer: what it waits for is the passing of time itself.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// fired expects a FireTimer command.
func fired(t *testing.T, d eventstore.Delivery, key domain.Key, timer string, due time.Time) {
	t.Helper()
	firedOneOf(t, d, key, map[string]time.Time{timer: due})
}

// firedOneOf takes the timer that came out of those that are expected.
func firedOneOf(t *testing.T, d eventstore.Delivery, key domain.Key, expected map[string]time.Time) {
	t.Helper()
	e := d.Envelope()
	if e.Key != key || e.To != eventstore.ToCommand || e.Header[eventstore.HeaderContentType] != eventstore.ContentTypeProtobuf {
		t.Fatalf("received %s.%s with %v", e.Key, e.To, e.Header)
	}
	var c rollcallv1.Command
	if err := proto.Unmarshal(e.Data, &c); err != nil {
		t.Fatal(err)
	}
	f := c.GetFireTimer()
	due, ok := expected[f.GetTimer()]
	if !ok || !f.GetDue().AsTime().Equal(due) || c.GetId() == "" || c.GetActor() != domain.Framework {
		t.Fatalf("command %v, want one of %v", &c, expected)
	}
	if d.Time().Before(due) {
		t.Fatalf("timer %s came at %v, due %v", f.GetTimer(), d.Time(), due)
	}
	delete(expected, f.GetTimer())
}

var timerCases = []Case{
	{"timers come when due, by the inbox", func(t *testing.T, s Store) {
		p := newPartition()
		key := keyIn(p)
		r := receive(t, s, "n1", p)
		now := time.Now()
		late, soon, past := now.Add(1700*time.Millisecond), now.Add(300*time.Millisecond), now.Add(-time.Hour)
		expected := map[string]time.Time{"late": late, "soon": soon, "past": past}
		for timer, due := range expected {
			if err := s.ArmTimer(t.Context(), key, timer, due); err != nil {
				t.Fatal(err)
			}
		}
		// On a slow machine the soon one is due before the past one is armed.
		for len(expected) > 0 {
			d := next(t, r)
			firedOneOf(t, d, key, expected)
			ack(t, d)
		}
		nothingBefore(t, s, r, key)
	}},
	{"a timer armed again comes once", func(t *testing.T, s Store) {
		p := newPartition()
		key := keyIn(p)
		r := receive(t, s, "n1", p)
		due := time.Now().Add(1200 * time.Millisecond)
		for _, at := range []time.Time{due.Add(time.Hour), due, due} {
			if err := s.ArmTimer(t.Context(), key, "t1", at); err != nil {
				t.Fatal(err)
			}
		}
		fired(t, next(t, r), key, "t1", due)
		nothingBefore(t, s, r, key)
	}},
	{"a cancelled timer does not come", func(t *testing.T, s Store) {
		p := newPartition()
		key := keyIn(p)
		r := receive(t, s, "n1", p)
		due := time.Now().Add(1200 * time.Millisecond)
		for _, timer := range []string{"gone", "stays"} {
			if err := s.ArmTimer(t.Context(), key, timer, due); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.CancelTimer(t.Context(), key, "gone"); err != nil {
			t.Fatal(err)
		}
		if err := s.CancelTimer(t.Context(), key, "never armed"); err == nil {
			t.Fatal("a timer that is no token was cancelled")
		}
		if err := s.CancelTimer(t.Context(), key, "never-armed"); err != nil {
			t.Fatal(err)
		}
		fired(t, next(t, r), key, "stays", due)
		nothingBefore(t, s, r, key)
	}},
	{"timers of many conversations", func(t *testing.T, s Store) {
		p := newPartition()
		r := receive(t, s, "n1", p)
		due := time.Now().Add(time.Second)
		const n = 50
		waiting := make(map[domain.Key]bool)
		for range n {
			key := keyIn(p)
			waiting[key] = true
			if err := s.ArmTimer(t.Context(), key, "t1", due); err != nil {
				t.Fatal(err)
			}
		}
		for range n {
			d := next(t, r)
			fired(t, d, d.Envelope().Key, "t1", due)
			if !waiting[d.Envelope().Key] {
				t.Fatalf("timer of %s came twice", d.Envelope().Key)
			}
			delete(waiting, d.Envelope().Key)
		}
	}},
	{"a timer that is no token is refused", func(t *testing.T, s Store) {
		for _, timer := range []string{"", "a.b", "A", "*", "claim timeout"} {
			if err := s.ArmTimer(t.Context(), newKey(), timer, time.Now().Add(time.Hour)); err == nil {
				t.Errorf("timer %q was armed", timer)
			}
		}
	}},
}
