package storetest

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/eventstore"
)

var cacheCases = []Case{
	{"snapshots keep the newest", func(t *testing.T, s Store) {
		key := newKey()
		all := appendN(t, s, key, eventstore.Position{}, 3)
		if _, ok, err := s.LoadSnapshot(t.Context(), key, 1); ok || err != nil {
			t.Fatalf("no snapshot yet: %v, %v", ok, err)
		}
		big := bytes.Repeat([]byte("state "), 400_000)
		for i, data := range [][]byte{[]byte("small"), big, {}} {
			snap := eventstore.Snapshot{Position: all[i].Position(), EvolveVersion: 1, Data: data}
			if err := s.SaveSnapshot(t.Context(), key, snap); err != nil {
				t.Fatal(err)
			}
			got, ok, err := s.LoadSnapshot(t.Context(), key, 1)
			if err != nil || !ok || !bytes.Equal(got.Data, data) {
				t.Fatalf("snapshot %d: %v, %d bytes, %v", i, ok, len(got.Data), err)
			}
			if p := got.Position; p.Version != uint64(i+1) || p.Seq != all[i].Seq || !bytes.Equal(p.Hash, snap.Position.Hash) {
				t.Fatalf("snapshot %d: position %+v", i, p)
			}
		}
	}},
	{"a snapshot counts only with the log", func(t *testing.T, s Store) {
		key, other := newKey(), newKey()
		pos := appendN(t, s, key, eventstore.Position{}, 2)[1].Position()
		foreign := appendN(t, s, other, eventstore.Position{}, 2)[1].Position()
		for what, snap := range map[string]eventstore.Snapshot{
			"another evolve version": {Position: pos, EvolveVersion: 2},
			"another version":        {Position: eventstore.Position{Version: 1, Seq: pos.Seq, Hash: pos.Hash}, EvolveVersion: 1},
			"another hash":           {Position: eventstore.Position{Version: 2, Seq: pos.Seq, Hash: foreign.Hash}, EvolveVersion: 1},
			"another conversation":   {Position: foreign, EvolveVersion: 1},
		} {
			if err := s.SaveSnapshot(t.Context(), key, snap); err != nil {
				t.Fatal(err)
			}
			if _, ok, err := s.LoadSnapshot(t.Context(), key, 1); ok || err != nil {
				t.Fatalf("%s: counts %v, %v", what, ok, err)
			}
		}
	}},
	{"a snapshot of an earlier fold does not count", func(t *testing.T, s Store) {
		key := newKey()
		pos := appendN(t, s, key, eventstore.Position{}, 2)[1].Position()
		if err := s.SaveSnapshot(t.Context(), key, eventstore.Snapshot{Position: pos, EvolveVersion: 1, Data: []byte("old")}); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := s.LoadSnapshot(t.Context(), key, 2); ok || err != nil {
			t.Fatalf("counts %v, %v", ok, err)
		}
	}},
	{"blobs", func(t *testing.T, s Store) {
		key, other := newKey(), newKey()
		for _, n := range []int{0, 1, 200_000, 3_000_000} {
			data := bytes.Repeat([]byte("b"), n)
			b, err := s.PutBlob(t.Context(), key, data)
			if err != nil {
				t.Fatal(err)
			}
			again, err := s.PutBlob(t.Context(), key, data)
			if err != nil || !proto.Equal(b, again) {
				t.Fatalf("put again: %v, %v", again, err)
			}
			got, err := s.GetBlob(t.Context(), key, b)
			if err != nil || !bytes.Equal(got, data) {
				t.Fatalf("get: %d bytes, %v", len(got), err)
			}
			if _, err := s.GetBlob(t.Context(), other, b); !errors.Is(err, eventstore.ErrMissingBlob) {
				t.Fatalf("another conversation's blob: %v", err)
			}
		}
		missing := eventstore.Address([]byte("never put"))
		if _, err := s.GetBlob(t.Context(), key, missing); !errors.Is(err, eventstore.ErrMissingBlob) {
			t.Fatalf("a missing blob: %v", err)
		}
	}},
}
