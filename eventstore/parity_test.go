package eventstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/memory"
	"github.com/rollcall-dev/rollcall/eventstore/storetest"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

var parityConversations atomic.Int64

// side is one of the two stores, with what it gave out.
type side struct {
	storetest.Store
	positions []eventstore.Position
}

// In every history the two stores give the same answers: what is tested in
// virtual time on the one holds for the other.
func TestLikeMemory(t *testing.T) {
	js, nc := natsdtest.Store(t)
	mem := memory.New()
	t.Cleanup(mem.Close)
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		key := domain.Key{Tenant: "parity", Conversation: fmt.Sprint("c", parityConversations.Add(1))}
		sides := []*side{{Store: store{js, nc}}, {Store: mem}}
		for _, s := range sides {
			s.positions = []eventstore.Position{{}}
		}
		both := func(t *rapid.T, what string, do func(*side) (string, error)) string {
			a, errA := do(sides[0])
			b, errB := do(sides[1])
			if a != b || class(errA) != class(errB) {
				t.Fatalf("%s: JetStream %s, %v; memory %s, %v", what, a, errA, b, errB)
			}
			return class(errA)
		}
		var repeat []*rollcallv1.Commit
		commits := 0
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				at := rapid.IntRange(max(0, len(sides[0].positions)-3), len(sides[0].positions)-1).Draw(t, "at")
				commits++
				id := fmt.Sprint(key.Conversation, "-", commits)
				both(t, "append", func(s *side) (string, error) {
					c := &rollcallv1.Commit{Id: id, Node: "n1"}
					r, err := s.Append(ctx, key, s.positions[at], c)
					if err == nil {
						s.positions = append(s.positions, r.Position())
						repeat = append(repeat, c)
					}
					return fmt.Sprint(r.Commit.GetVersion()), err
				})
			},
			"append again": func(t *rapid.T) {
				if len(repeat) == 0 {
					t.Skip("nothing to repeat")
				}
				i := rapid.IntRange(0, len(repeat)/2-1).Draw(t, "commit")
				both(t, "append again", func(s *side) (string, error) {
					c := repeat[2*i]
					for _, p := range s.positions {
						if p.Version+1 == c.GetVersion() {
							r, err := s.Append(ctx, key, p, c)
							return fmt.Sprint(r.Commit.GetVersion()), err
						}
					}
					return "", errors.New("unreachable")
				})
			},
			"noise": func(t *rapid.T) {
				both(t, "noise", func(s *side) (string, error) {
					_, err := s.Inject(ctx, key, []byte("noise"), false)
					return "", err
				})
			},
			"load": func(t *rapid.T) {
				at := rapid.IntRange(0, len(sides[0].positions)-1).Draw(t, "at")
				both(t, "load", func(s *side) (out string, err error) {
					err = s.Load(ctx, key, s.positions[at], func(r eventstore.Recorded) error {
						out += fmt.Sprint(r.Commit.GetVersion(), r.Commit.GetId(), ";")
						return nil
					})
					return out, err
				})
			},
			"at": func(t *rapid.T) {
				v := rapid.Uint64Range(0, uint64(len(sides[0].positions))).Draw(t, "version")
				both(t, "at", func(s *side) (string, error) {
					got, err := s.At(ctx, key, []uint64{v})
					return got[v].GetId(), err
				})
			},
		})
	})
}

// class is what a caller can tell of an error.
func class(err error) string {
	for _, known := range []error{
		eventstore.ErrConflict, eventstore.ErrUnknown, eventstore.ErrTooLarge, eventstore.ErrNotFound,
		domain.ErrGap, domain.ErrHash,
	} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if err != nil {
		return "another error"
	}
	return ""
}
