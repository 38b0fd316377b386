package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Two writers on three replicas: each version has one winner, and the loser
// always learns that it lost, by whichever of two codes a server says so. Of
// conversations that are interleaved in one stream none hinders another.
func TestLosers(t *testing.T) {
	t.Parallel()
	l := newLinear(t, 3, 2, 3, nil)
	t.Run("b52-interleaved-conversations", func(t *testing.T) {
		var wg sync.WaitGroup
		for _, key := range l.writers[0].keys[:2] {
			wg.Go(func() {
				var at eventstore.Position
				for n := range 40 { // alone on its subject, it never meets a conflict
					r, err := l.writers[0].store.Append(t.Context(), key, at, numbered(at, "w0-"+key.Conversation, n))
					if err != nil {
						t.Errorf("version %d of %s: %v", n+1, key, err)
						return
					}
					at = r.Position()
				}
			})
		}
		wg.Wait()
	})
	t.Run("b55-the-loser-meets-a-conflict", func(t *testing.T) {
		var at eventstore.Position
		for n := range 100 {
			if at = l.duel(t, l.writers[0].keys[2], at, n); t.Failed() {
				return
			}
		}
	})
}

// duel has two writers append the same version at once, and gives the position
// of the winner's.
func (l *linear) duel(t *testing.T, key domain.Key, at eventstore.Position, n int) eventstore.Position {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var won [2]eventstore.Recorded
	var errs [2]error
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			won[i], errs[i] = l.writers[i].store.Append(ctx, key, at, numbered(at, fmt.Sprint("w", i), n))
		})
	}
	wg.Wait()
	for i := range 2 {
		if errs[i] == nil && errors.Is(errs[1-i], eventstore.ErrConflict) {
			return won[i].Position()
		}
	}
	t.Errorf("round %d: %v and %v; one is to win, the other to meet a conflict", n, errs[0], errs[1])
	return at
}

func numbered(at eventstore.Position, node string, n int) *rollcallv1.Commit {
	return &rollcallv1.Commit{
		Version: at.Version + 1, PreviousHash: at.Hash, Node: node, Epoch: 1, Time: timestamppb.Now(),
		Id: fmt.Sprintf("%s-%d-%x", node, n, at.Hash), CommandIds: []string{fmt.Sprint("c", n)},
		Events: []*rollcallv1.Event{{Kind: &rollcallv1.Event_LeadReplied{LeadReplied: &rollcallv1.LeadReplied{Run: "r1", Text: &rollcallv1.Body{Text: fmt.Sprint(n)}}}}},
	}
}
