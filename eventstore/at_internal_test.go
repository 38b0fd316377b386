package eventstore

import (
	"errors"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// A leader that was just elected may not have caught up with what the last one
// acknowledged: what it does not have is looked for again, for a while.
func TestWhatALeaderDoesNotHaveIsLookedForAgain(t *testing.T) {
	nc, s := alone(t)
	s.replicated = true
	key := domain.Key{Tenant: "main", Conversation: "c1"}
	if _, err := s.At(t.Context(), key, []uint64{1}); !errors.Is(err, ErrNotFound) {
		t.Fatalf("what never comes: %v", err)
	}
	asked, err := nc.SubscribeSync("$JS.API.STREAM.MSG.GET." + StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = asked.Unsubscribe() }() // gone with the connection otherwise
	found := make(chan error, 1)
	go func() {
		_, err := s.At(t.Context(), key, []uint64{1})
		found <- err
	}()
	if _, err := asked.NextMsg(time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), key, Position{}, &rollcallv1.Commit{Node: "n1"}); err != nil {
		t.Fatal(err)
	}
	if err := <-found; err != nil {
		t.Errorf("what came a moment later: %v", err)
	}
}
