package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
)

var logCases = []Case{
	{"append and load", func(t *testing.T, s Store) {
		key := newKey()
		if got, err := load(t.Context(), s, key, eventstore.Position{}); err != nil || len(got) != 0 {
			t.Fatalf("a new conversation: %d commits, %v", len(got), err)
		}
		all := appendN(t, s, key, eventstore.Position{}, 20)
		for i, r := range all {
			if v := r.Commit.GetVersion(); v != uint64(i+1) {
				t.Fatalf("commit %d has version %d", i, v)
			}
		}
		mustLoad(t, s, key, eventstore.Position{}, all)
		mustLoad(t, s, key, all[11].Position(), all[12:])
		mustLoad(t, s, key, all[19].Position(), nil)
	}},
	{"append fills in what is missing", func(t *testing.T, s Store) {
		key := newKey()
		c := commit(eventstore.Position{}, "c", 1)
		c.Version, c.Id = 0, ""
		r, err := s.Append(t.Context(), key, eventstore.Position{}, c)
		if err != nil || r.Commit.GetVersion() != 1 || r.Commit.GetId() == "" {
			t.Fatalf("append: %v, %v", r.Commit, err)
		}
		c = commit(r.Position(), "c", 1)
		c.Version = 7
		if _, err := s.Append(t.Context(), key, r.Position(), c); err == nil {
			t.Fatal("a commit with a wrong version was stored")
		}
		mustLoad(t, s, key, eventstore.Position{}, []eventstore.Recorded{r})
	}},
	{"conversations do not see each other", func(t *testing.T, s Store) {
		p := newPartition()
		a, b := keyIn(p), keyIn(p)
		var as, bs []eventstore.Recorded
		var apos, bpos eventstore.Position
		for range 10 {
			as = append(as, appendN(t, s, a, apos, 1)...)
			bs = append(bs, appendN(t, s, b, bpos, 2)...)
			apos, bpos = as[len(as)-1].Position(), bs[len(bs)-1].Position()
		}
		mustLoad(t, s, a, eventstore.Position{}, as)
		mustLoad(t, s, b, eventstore.Position{}, bs)
	}},
	{"read your writes", func(t *testing.T, s Store) {
		key := newKey()
		var pos eventstore.Position
		rounds := 200
		if testing.Short() {
			rounds = 20
		}
		for range rounds {
			r := appendN(t, s, key, pos, 1)
			mustLoad(t, s, key, pos, r)
			pos = r[0].Position()
		}
	}},
	{"large commits", func(t *testing.T, s Store) {
		key := newKey()
		var all []eventstore.Recorded
		var pos eventstore.Position
		for range 12 {
			r, err := s.Append(t.Context(), key, pos, commit(pos, "c", eventstore.MaxCommit-1024))
			if err != nil {
				t.Fatal(err)
			}
			all, pos = append(all, r), r.Position()
		}
		mustLoad(t, s, key, eventstore.Position{}, all)
		_, err := s.Append(t.Context(), key, pos, commit(pos, "c", eventstore.MaxCommit))
		if !errors.Is(err, eventstore.ErrTooLarge) {
			t.Fatalf("a commit over the limit: %v", err)
		}
		mustLoad(t, s, key, pos, nil)
	}},
	{"load stops at the first error of its reader", func(t *testing.T, s Store) {
		key := newKey()
		appendN(t, s, key, eventstore.Position{}, 5)
		boom, n := errors.New("boom"), 0
		err := s.Load(t.Context(), key, eventstore.Position{}, func(eventstore.Recorded) error {
			n++
			return boom
		})
		if !errors.Is(err, boom) || n != 1 {
			t.Fatalf("%d calls, %v", n, err)
		}
	}},
	{"at returns versions", func(t *testing.T, s Store) {
		key := newKey()
		all := appendN(t, s, key, eventstore.Position{}, 40)
		got, err := s.At(t.Context(), key, []uint64{1, 40, 17, 17})
		if err != nil || len(got) != 3 {
			t.Fatalf("%d commits, %v", len(got), err)
		}
		for v, c := range got {
			if c.GetVersion() != v || c.GetId() != all[v-1].Commit.GetId() {
				t.Fatalf("version %d: got %d", v, c.GetVersion())
			}
		}
		for _, v := range []uint64{0, 41} {
			if _, err := s.At(t.Context(), key, []uint64{3, v}); !errors.Is(err, eventstore.ErrNotFound) {
				t.Fatalf("version %d: %v", v, err)
			}
		}
		if _, err := s.At(t.Context(), newKey(), []uint64{1}); !errors.Is(err, eventstore.ErrNotFound) {
			t.Fatalf("an unknown conversation: %v", err)
		}
	}},
	{"follow sees every commit in order", func(t *testing.T, s Store) {
		from, err := s.LastSeq(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		a, b := newKey(), newKey()
		before := appendN(t, s, a, eventstore.Position{}, 3)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		seen := make(chan eventstore.Recorded, 100)
		done := make(chan error, 1)
		enough := errors.New("enough")
		go func() {
			var last uint64
			done <- s.Follow(ctx, from, func(r eventstore.Recorded) error {
				if r.Seq <= last {
					return fmt.Errorf("sequence %d after %d", r.Seq, last)
				}
				last = r.Seq
				if r.Key == a || r.Key == b {
					seen <- r
				}
				if r.Key == b && r.Commit.GetVersion() == 3 {
					return enough
				}
				return nil
			}, nil)
		}()
		first := <-seen
		after := appendN(t, s, b, eventstore.Position{}, 3)
		if err := <-done; !errors.Is(err, enough) {
			t.Fatal(err)
		}
		want := append(before, after...)
		for i, w := range want {
			got := first
			if i > 0 {
				got = <-seen
			}
			if got.Key != w.Key || got.Seq != w.Seq {
				t.Fatalf("event %d: %s at %d, want %s at %d", i, got.Key, got.Seq, w.Key, w.Seq)
			}
		}
		if last, err := s.LastSeq(t.Context()); err != nil || last < want[5].Seq {
			t.Fatalf("last sequence %d, %v", last, err)
		}
	}},
	{"follow ends with its context", func(t *testing.T, s Store) {
		last, err := s.LastSeq(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		key, started := newKey(), make(chan struct{})
		done := make(chan error, 1)
		go func() {
			done <- s.Follow(ctx, last, func(r eventstore.Recorded) error {
				if r.Key == key {
					close(started)
				}
				return nil
			}, nil)
		}()
		appendN(t, s, key, eventstore.Position{}, 1)
		<-started
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}},
	{"conversations are listed by partition", func(t *testing.T, s Store) {
		p := newPartition()
		a, b, other := keyIn(p), keyIn(p), keyIn((p+1)%domain.Partitions)
		for _, k := range []domain.Key{a, b, other} {
			appendN(t, s, k, eventstore.Position{}, 2)
		}
		keys, err := s.Conversations(t.Context(), []int{p})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, k := range keys {
			if k.Partition() != p {
				t.Fatalf("%s is of partition %d, not %d", k, k.Partition(), p)
			}
			if k == a || k == b {
				n++
			}
		}
		if n != 2 {
			t.Fatalf("%d of 2 conversations listed", n)
		}
	}},
}
