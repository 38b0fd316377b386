package faulty_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/faulty"
	"github.com/rollcall-dev/rollcall/eventstore/memory"
	"github.com/rollcall-dev/rollcall/eventstore/storetest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = domain.Key{Tenant: "main", Conversation: "c1"}

// undisturbed is a decorated store that strangers can still write to.
type undisturbed struct {
	*faulty.Store
	memory *memory.Store
}

func (u undisturbed) Inject(ctx context.Context, k domain.Key, raw []byte, claims bool) (uint64, error) {
	return u.memory.Inject(ctx, k, raw, claims)
}

// TestConformance: without a fault the decorator changes nothing.
func TestConformance(t *testing.T) {
	for _, c := range storetest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memory.New()
				t.Cleanup(s.Close)
				c.Run(t, undisturbed{faulty.New(s), s})
			})
		})
	}
}

func commit() *rollcallv1.Commit { return &rollcallv1.Commit{Id: "c1"} }

func stored(t *testing.T, s eventstore.Store) int {
	t.Helper()
	n := 0
	if err := s.Load(t.Context(), key, eventstore.Position{}, func(eventstore.Recorded) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		how    faulty.How
		err    error
		stored int
		dead   bool
	}{
		{faulty.Fail, eventstore.ErrUnknown, 0, false},
		{faulty.LoseAck, eventstore.ErrUnknown, 1, false},
		{faulty.CrashBefore, faulty.ErrCrashed, 0, true},
		{faulty.CrashAfter, nil, 1, true},
		{faulty.CrashLosingAck, faulty.ErrCrashed, 1, true},
	} {
		t.Run(c.how.String(), func(t *testing.T) {
			inner := memory.New()
			node := faulty.New(inner, faulty.Fault{Point: faulty.Append, N: 1, How: c.how})
			crashes := 0
			node.OnCrash(func() { crashes++ })
			if _, err := node.Append(t.Context(), key, eventstore.Position{}, commit()); !errors.Is(err, c.err) {
				t.Fatalf("append: %v, want %v", err, c.err)
			}
			if n := stored(t, inner); n != c.stored {
				t.Fatalf("%d commits stored, want %d", n, c.stored)
			}
			_, err := node.LastSeq(t.Context())
			if errors.Is(err, faulty.ErrCrashed) != c.dead || (crashes == 1) != c.dead {
				t.Fatalf("afterwards: %v, %d crashes", err, crashes)
			}
			_, err = node.PutBlob(t.Context(), key, nil)
			if errors.Is(err, faulty.ErrCrashed) != c.dead {
				t.Fatalf("blob put afterwards: %v", err)
			}
		})
	}
}

// A crash ends what waits, and the points of a run can be listed.
func TestCrashEndsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New()
		node := faulty.New(inner)
		l, err := node.Claim(t.Context(), "n1", 3)
		if err != nil {
			t.Fatal(err)
		}
		r, err := node.Receive(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Hour, node.Crash)
		if _, err := r.Next(t.Context()); !errors.Is(err, faulty.ErrCrashed) {
			t.Fatalf("next: %v", err)
		}
		if err := node.Follow(t.Context(), 0, nil, nil); !errors.Is(err, faulty.ErrCrashed) {
			t.Fatalf("follow: %v", err)
		}
		if err := node.Do(faulty.Reply, func() error { t.Error("a crashed node replied"); return nil }); !errors.Is(err, faulty.ErrCrashed) {
			t.Fatalf("reply: %v", err)
		}
		want := []faulty.Hit{{Point: faulty.Claim, N: 1}, {Point: faulty.ConsumerDelete, N: 1}, {Point: faulty.ConsumerCreate, N: 1}}
		if got := node.Hits(); !slices.Equal(got, want) {
			t.Fatalf("hits %v", got)
		}
	})
}
