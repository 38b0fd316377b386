package eventstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// went is how far conversations went, as somebody else knows it.
type went map[domain.Key]uint64

var errNobody = errors.New("nobody knows")

func (w went) Tail(_ context.Context, key domain.Key) (uint64, error) {
	if w == nil {
		return 0, errNobody
	}
	return w[key], nil
}

func TestGuard(t *testing.T) {
	s, _ := natsdtest.Store(t)
	at := eventstore.Position{}
	for range 3 {
		r, err := s.Append(t.Context(), conv, at, &rollcallv1.Commit{})
		if err != nil {
			t.Fatal(err)
		}
		at = r.Position()
	}
	other := domain.Key{Tenant: "main", Conversation: "c2"}
	for name, tc := range map[string]struct {
		known went
		key   domain.Key
		after eventstore.Position
		lost  bool
	}{
		"as far as it went": {went{conv: 3}, conv, eventstore.Position{}, false},
		"further":           {went{conv: 2}, conv, eventstore.Position{}, false},
		"shorter":           {went{conv: 4}, conv, eventstore.Position{}, true},
		"nothing new":       {went{conv: 3}, conv, at, false},
		"shorter, from the end": {
			went{conv: 4}, conv, at, true,
		},
		"gone altogether": {went{other: 1}, other, eventstore.Position{}, true},
		"never there":     {went{conv: 3}, other, eventstore.Position{}, false},
		"nobody knows":    {nil, conv, eventstore.Position{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := eventstore.Guard(s, tc.known, nil)
			err := g.Load(t.Context(), tc.key, tc.after, func(eventstore.Recorded) error { return nil })
			if lost := errors.Is(err, eventstore.ErrTailLost) && errors.Is(err, domain.ErrGap); lost != tc.lost || err != nil && !lost {
				t.Errorf("load: %v", err)
			}
			if err := eventstore.Reaches(t.Context(), g, tc.key, 3); (err != nil) != (tc.known[tc.key] > 3) {
				t.Errorf("read to version 3: %v", err)
			}
			_, err = g.At(t.Context(), tc.key, []uint64{4})
			if lost := errors.Is(err, eventstore.ErrTailLost); lost != (tc.known[tc.key] >= 4) || !lost && !errors.Is(err, eventstore.ErrNotFound) {
				t.Errorf("version 4: %v", err)
			}
		})
	}
	// Who reads a page is not told of the end that it does not come to.
	enough := errors.New("enough")
	err := eventstore.Guard(s, went{conv: 4}, nil).Load(t.Context(), conv, eventstore.Position{}, func(eventstore.Recorded) error { return enough })
	if !errors.Is(err, enough) {
		t.Errorf("a page: %v", err)
	}
}

// A sound snapshot beyond the log says that the log was longer; of whatever
// fold it is.
func TestSnapshotBeyondTheLog(t *testing.T) {
	s, _ := natsdtest.Store(t)
	r, err := s.Append(t.Context(), conv, eventstore.Position{}, &rollcallv1.Commit{})
	if err != nil {
		t.Fatal(err)
	}
	for _, evolve := range []uint32{1, 2} {
		beyond := r.Position()
		beyond.Version, beyond.Seq = 9, beyond.Seq+1_000_000
		if err := s.SaveSnapshot(t.Context(), conv, eventstore.Snapshot{Position: beyond, EvolveVersion: evolve}); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := s.LoadSnapshot(t.Context(), conv, 1); ok || !errors.Is(err, eventstore.ErrTailLost) || !errors.Is(err, domain.ErrGap) {
			t.Errorf("of fold %d: counts %v, %v", evolve, ok, err)
		}
	}
}

// The log, and what came in and is not in it yet, are never made again as if
// they had never been.
func TestProvisionRefusesWhatIsIncomplete(t *testing.T) {
	for _, lost := range []string{eventstore.StreamEvents, eventstore.StreamInbox} {
		t.Run(lost, func(t *testing.T) {
			s, nc := natsdtest.Store(t)
			if _, err := s.Append(t.Context(), conv, eventstore.Position{}, &rollcallv1.Commit{}); err != nil {
				t.Fatal(err)
			}
			js, err := jetstream.New(nc)
			if err != nil {
				t.Fatal(err)
			}
			if err := js.DeleteStream(t.Context(), lost); err != nil {
				t.Fatal(err)
			}
			err = eventstore.Provision(t.Context(), nc, eventstore.Config{})
			if r := new(domain.Refusal); !errors.As(err, &r) || r.Code != "installation-incomplete" || r.Try == "" {
				t.Fatalf("provision: %v", err)
			}
			if _, err := js.Stream(t.Context(), lost); err == nil {
				t.Error("it was made again")
			}
		})
	}
}

// A start that was cut off in the middle goes on.
func TestProvisionGoesOn(t *testing.T) {
	for n := range eventstore.Streams(eventstore.Config{}) {
		nc := natsdtest.Connect(t, natsdtest.Start(t))
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range eventstore.Streams(eventstore.Config{})[:n] {
			if _, err := js.CreateStream(t.Context(), want); err != nil {
				t.Fatal(err)
			}
		}
		if err := eventstore.Provision(t.Context(), nc, eventstore.Config{}); err != nil {
			t.Errorf("after %d streams: %v", n, err)
		}
	}
}
