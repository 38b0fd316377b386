package storetest

import (
	"errors"
	"sync"
	"testing"

	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/faulty"
)

var raceCases = []Case{
	{"the second writer meets a conflict", func(t *testing.T, s Store) {
		key := newKey()
		first := appendN(t, s, key, eventstore.Position{}, 1)
		_, err := s.Append(t.Context(), key, eventstore.Position{}, commit(eventstore.Position{}, "other", 10))
		if !errors.Is(err, eventstore.ErrConflict) {
			t.Fatalf("a second first commit: %v", err)
		}
		second := appendN(t, s, key, first[0].Position(), 1)
		_, err = s.Append(t.Context(), key, first[0].Position(), commit(first[0].Position(), "other", 10))
		if !errors.Is(err, eventstore.ErrConflict) {
			t.Fatalf("a second second commit: %v", err)
		}
		mustLoad(t, s, key, eventstore.Position{}, append(first, second...))
	}},
	{"an append repeated is one commit", func(t *testing.T, s Store) {
		key := newKey()
		c := commit(eventstore.Position{}, "c", 10)
		first, err := s.Append(t.Context(), key, eventstore.Position{}, c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := s.Append(t.Context(), key, eventstore.Position{}, c)
		if err != nil || again.Seq != first.Seq {
			t.Fatalf("repeated: at %d, %v; want %d", again.Seq, err, first.Seq)
		}
		// Also when others have gone on meanwhile: it is in the log.
		next := appendN(t, s, key, first.Position(), 1)
		again, err = s.Append(t.Context(), key, eventstore.Position{}, c)
		if err != nil || again.Seq != first.Seq {
			t.Fatalf("repeated late: at %d, %v; want %d", again.Seq, err, first.Seq)
		}
		mustLoad(t, s, key, eventstore.Position{}, []eventstore.Recorded{first, next[0]})
	}},
	{"a lost acknowledgement", func(t *testing.T, s Store) {
		key := newKey()
		node := faulty.New(s, faulty.Fault{Point: faulty.Append, N: 1, How: faulty.LoseAck})
		c := commit(eventstore.Position{}, "c", 10)
		if _, err := node.Append(t.Context(), key, eventstore.Position{}, c); !errors.Is(err, eventstore.ErrUnknown) {
			t.Fatalf("append without an answer: %v", err)
		}
		r, err := node.Append(t.Context(), key, eventstore.Position{}, c)
		if err != nil {
			t.Fatal(err)
		}
		mustLoad(t, s, key, eventstore.Position{}, []eventstore.Recorded{r})
	}},
	{"the same commit id in two conversations", func(t *testing.T, s Store) {
		// JetStream would drop the second one and call it a duplicate.
		a, b := newKey(), newKey()
		ca, cb := commit(eventstore.Position{}, "c", 10), commit(eventstore.Position{}, "c", 10)
		cb.Id = ca.Id
		if _, err := s.Append(t.Context(), a, eventstore.Position{}, ca); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(t.Context(), b, eventstore.Position{}, cb); err == nil {
			got, err := load(t.Context(), s, b, eventstore.Position{})
			if err != nil || len(got) != 1 {
				t.Fatalf("acknowledged and not stored: %d commits, %v", len(got), err)
			}
		}
	}},
	{"many writers of one conversation", func(t *testing.T, s Store) {
		key := newKey()
		const writers = 8
		each := 12
		if testing.Short() {
			each = 4
		}
		var mu sync.Mutex
		won := make(map[uint64]eventstore.Recorded)
		var conflicts int
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				var pos eventstore.Position
				for n := 0; n < each; {
					r, err := s.Append(t.Context(), key, pos, commit(pos, "c", 10))
					switch {
					case err == nil:
						mu.Lock()
						if _, taken := won[r.Commit.GetVersion()]; taken {
							t.Errorf("two writers wrote version %d", r.Commit.GetVersion())
						}
						won[r.Commit.GetVersion()] = r
						mu.Unlock()
						pos = r.Position()
						n++
					case errors.Is(err, eventstore.ErrConflict):
						tail, err := load(t.Context(), s, key, pos)
						if err != nil || len(tail) == 0 {
							t.Errorf("after a conflict: %d commits, %v", len(tail), err)
							return
						}
						pos = tail[len(tail)-1].Position()
						mu.Lock()
						conflicts++
						mu.Unlock()
					default:
						t.Errorf("append: %v", err)
						return
					}
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		want := make([]eventstore.Recorded, writers*each)
		for v, r := range won {
			want[v-1] = r
		}
		mustLoad(t, s, key, eventstore.Position{}, want)
		t.Logf("%d commits, %d conflicts", len(want), conflicts)
	}},
}
