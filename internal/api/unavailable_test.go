package api_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
)

// election is a store whose servers have no leader for some attempts, of which
// every other one is stored all the same, and nobody hears of it.
type election struct {
	eventstore.Store
	left atomic.Int64
}

func (e *election) Publish(ctx context.Context, m eventstore.Envelope) (uint64, bool, error) {
	if left := e.left.Add(-1); left >= 0 {
		if left%2 == 0 {
			_, _, _ = e.Store.Publish(ctx, m) // its acknowledgement is lost
		}
		return 0, false, nats.ErrTimeout
	}
	return e.Store.Publish(ctx, m)
}

// A leader being elected at NATS refuses nobody: the command is stored when one
// is there, and done once.
func TestNobodyIsRefusedByAnElection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.server.Close(); err != nil {
		t.Fatal(err)
	}
	store := &election{Store: w.store}
	store.left.Store(4)
	w.serve(api.Config{Store: store})
	if _, refused := w.ask("open", `{"name":"kite","contract":"mailbox","objective":"Fly it."}`); refused != nil {
		t.Fatalf("refused: %+v", refused)
	}
	if got := w.position(w.keys()[0]).Version; got != 1 {
		t.Errorf("the conversation is at version %d: the command was done more than once", got)
	}
}
