package memory_test

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/memory"
	"github.com/rollcall-dev/rollcall/eventstore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) storetest.Store {
	s := memory.New()
	t.Cleanup(s.Close)
	return s
}

// TestConformance runs the suite in virtual time.
func TestConformance(t *testing.T) {
	for _, c := range storetest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.Run(t, open(t)) })
		})
	}
}

// A message that is neither acknowledged nor held comes again; a held one does
// not.
func TestAckWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		key := domain.Key{Tenant: "main", Conversation: "c1"}
		for _, text := range []string{"dropped", "held"} {
			if _, _, err := s.Publish(t.Context(), eventstore.Envelope{Key: key, To: "lead", Data: []byte(text)}); err != nil {
				t.Fatal(err)
			}
		}
		l, err := s.Claim(t.Context(), "n1", key.Partition())
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Receive(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		dropped, _ := r.Next(t.Context())
		held, _ := r.Next(t.Context())
		start := time.Now()
		<-time.After(eventstore.AckWait / 2)
		if err := held.Hold(); err != nil {
			t.Fatal(err)
		}
		again, err := r.Next(t.Context())
		if err != nil || again.Seq() != dropped.Seq() || time.Since(start) != eventstore.AckWait {
			t.Fatalf("message %d after %v, %v; want %d after %v", again.Seq(), time.Since(start), err, dropped.Seq(), eventstore.AckWait)
		}
		if err := again.Ack(t.Context()); err != nil {
			t.Fatal(err)
		}
		again, err = r.Next(t.Context())
		if err != nil || again.Seq() != held.Seq() || time.Since(start) != eventstore.AckWait*3/2 {
			t.Fatalf("message %d after %v, %v", again.Seq(), time.Since(start), err)
		}
	})
}
