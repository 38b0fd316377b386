package storetest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
)

// failsClosed expects that the log loads up to n commits and then names the
// fault and the conversation.
func failsClosed(t *testing.T, s Store, key domain.Key, n int, want error) {
	t.Helper()
	got, err := load(t.Context(), s, key, eventstore.Position{})
	if !errors.Is(err, want) {
		t.Fatalf("load: %v, want %v", err, want)
	}
	if len(got) != n {
		t.Fatalf("%d commits before the fault, want %d", len(got), n)
	}
	if !strings.Contains(err.Error(), key.String()) || !strings.Contains(err.Error(), "version") {
		t.Fatalf("the error names neither conversation nor version: %v", err)
	}
}

var tamperCases = []Case{
	{"a flipped byte fails closed", func(t *testing.T, s Store) {
		key := newKey()
		all := appendN(t, s, key, eventstore.Position{}, 3)
		pos := all[2].Position()
		raw, err := eventstore.SealAfter(key, pos, commit(pos, "c", 100))
		if err != nil {
			t.Fatal(err)
		}
		raw[len(raw)/2] ^= 1
		inject(t, s, key, raw, true)
		failsClosed(t, s, key, 3, domain.ErrHash)
		if _, err := s.Append(t.Context(), key, pos, commit(pos, "c", 10)); !errors.Is(err, eventstore.ErrConflict) {
			t.Fatalf("append after a broken commit: %v", err)
		}
	}},
	{"a broken seal fails closed", func(t *testing.T, s Store) {
		key := newKey()
		all := appendN(t, s, key, eventstore.Position{}, 1)
		raw, err := eventstore.SealAfter(key, all[0].Position(), commit(all[0].Position(), "c", 100))
		if err != nil {
			t.Fatal(err)
		}
		inject(t, s, key, raw[:len(raw)-5], true)
		failsClosed(t, s, key, 1, domain.ErrHash)
	}},
	{"a gap in versions fails closed", func(t *testing.T, s Store) {
		key := newKey()
		all := appendN(t, s, key, eventstore.Position{}, 2)
		hole := all[1].Position()
		hole.Version++
		raw, err := eventstore.SealAfter(key, hole, commit(hole, "c", 10))
		if err != nil {
			t.Fatal(err)
		}
		inject(t, s, key, raw, true)
		failsClosed(t, s, key, 2, domain.ErrGap)
		if _, err := s.At(t.Context(), key, []uint64{3}); !errors.Is(err, domain.ErrGap) {
			t.Fatalf("the missing version: %v", err)
		}
	}},
	{"a wide gap in versions fails closed", func(t *testing.T, s Store) {
		key := newKey()
		all := appendN(t, s, key, eventstore.Position{}, 2)
		hole := all[1].Position()
		hole.Version += 100_000
		raw, err := eventstore.SealAfter(key, hole, commit(hole, "c", 10))
		if err != nil {
			t.Fatal(err)
		}
		inject(t, s, key, raw, true)
		failsClosed(t, s, key, 2, domain.ErrGap)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if _, err := s.At(ctx, key, []uint64{50_000}); !errors.Is(err, domain.ErrGap) {
			t.Fatalf("a missing version: %v", err)
		}
	}},
	{"a foreign history fails closed", func(t *testing.T, s Store) {
		key := newKey()
		all := appendN(t, s, key, eventstore.Position{}, 2)
		foreign := all[1].Position()
		foreign.Hash = bytes.Repeat([]byte{7}, 32)
		raw, err := eventstore.SealAfter(key, foreign, commit(foreign, "c", 10))
		if err != nil {
			t.Fatal(err)
		}
		inject(t, s, key, raw, true)
		failsClosed(t, s, key, 2, domain.ErrHash)
	}},
	{"a lost tail is noticed", func(t *testing.T, s Store) {
		key := newKey()
		all := appendN(t, s, key, eventstore.Position{}, 2)
		pos := all[1].Position()
		pos.Version, pos.Seq = pos.Version+1, pos.Seq+1_000_000
		if _, err := load(t.Context(), s, key, pos); !errors.Is(err, domain.ErrGap) {
			t.Fatalf("load after a commit that the log does not hold: %v", err)
		}
	}},
	{"what is no commit is passed over", func(t *testing.T, s Store) {
		key := newKey()
		from, err := s.LastSeq(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		noise := inject(t, s, key, []byte("hello"), false)
		all := appendN(t, s, key, eventstore.Position{}, 1)
		noise2 := inject(t, s, key, []byte("hello again"), false)
		mustLoad(t, s, key, eventstore.Position{}, all)
		all = append(all, appendN(t, s, key, all[0].Position(), 2)...)
		mustLoad(t, s, key, eventstore.Position{}, all)
		mustLoad(t, s, key, all[0].Position(), all[1:])
		if _, err := s.At(t.Context(), key, []uint64{1, 2, 3}); err != nil {
			t.Fatal(err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var skipped []uint64
		enough, n := errors.New("enough"), 0
		err = s.Follow(ctx, from, func(r eventstore.Recorded) error {
			if r.Key == key {
				if n++; n == 3 {
					return enough
				}
			}
			return nil
		}, func(seq uint64, subject string, err error) {
			if err == nil {
				t.Error("skipped without an error")
			}
			if strings.HasSuffix(subject, key.String()) {
				skipped = append(skipped, seq)
			}
		})
		if !errors.Is(err, enough) {
			t.Fatal(err)
		}
		if len(skipped) != 2 || skipped[0] != noise || skipped[1] != noise2 {
			t.Fatalf("skipped %v, want %d and %d", skipped, noise, noise2)
		}
	}},
}

func inject(t *testing.T, s Store, key domain.Key, raw []byte, claims bool) uint64 {
	t.Helper()
	seq, err := s.Inject(t.Context(), key, raw, claims)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}
