package actors_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/actors"
	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// reading is a store that counts how often its log is read from the beginning,
// and holds or fails such a reading when told so.
type reading struct {
	moody
	begun atomic.Int64
	hold  chan struct{}
	fail  error
	// damaged is a conversation whose commits are none to whoever reads on.
	damaged domain.Key
}

func (r *reading) Follow(ctx context.Context, seq uint64, fn func(eventstore.Recorded) error, skipped func(uint64, string, error)) error {
	if r.begun.Add(1); r.fail != nil {
		return r.fail
	}
	return r.Store.Follow(ctx, seq, func(rec eventstore.Recorded) error {
		if r.hold != nil && rec.Seq > 1 { // in the middle of it
			<-r.hold
		}
		if rec.Key == r.damaged {
			skipped(rec.Seq, eventstore.EventSubject(rec.Key), domain.ErrHash)
			return nil
		}
		return fn(rec)
	}, skipped)
}

// many opens conversations of one member on all partitions.
func (w *world) many(n int) {
	w.t.Helper()
	for i := range n {
		k := domain.Key{Tenant: key.Tenant, Conversation: fmt.Sprintf("c%d", i)}
		b, err := domain.New(k).Begin(&domain.Rules{Contracts: contract.All(), DefaultModel: "test"}, domain.Stamp{Time: time.Now(), Node: "n0", CommitID: k.Conversation})
		if err == nil {
			_, err = b.Decide(&rollcallv1.Command{Id: "open", Kind: &rollcallv1.Command_OpenConversation{OpenConversation: &rollcallv1.OpenConversation{Contract: "mailbox"}}})
		}
		if err == nil {
			_, err = w.disk.Append(w.t.Context(), k, eventstore.Position{}, b.Commit())
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// A node that starts reads the log once, whatever its partitions and
// conversations are, and then every member answers the roll without another
// look at it; what cannot be read so is loaded by itself.
func TestOneReadingForAll(t *testing.T) {
	const conversations = 200
	for name, c := range map[string]struct {
		fail    error
		damaged domain.Key
		loads   int64
	}{
		"read":     {},
		"not read": {fail: errors.New("no"), loads: conversations},
		"in part":  {damaged: domain.Key{Tenant: key.Tenant, Conversation: "c7"}, loads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil)
				w.many(conversations)
				store := &reading{moody: moody{Store: w.disk}, fail: c.fail, damaged: c.damaged}
				n, err := actors.Start(t.Context(), actors.Config{Node: "n1", Store: store, Models: w.brain, Rules: &domain.Rules{Contracts: contract.All()}})
				if err != nil {
					t.Fatal(err)
				}
				defer w.close(n)
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				all, err := n.Roll(ctx, domain.Key{Tenant: key.Tenant})
				if err != nil || len(all) != conversations {
					t.Errorf("%d of %d answered: %v", len(all), conversations, err)
				}
				if begun, loads := store.begun.Load(), store.loads.Load(); begun != 1 || loads != c.loads {
					t.Errorf("%d readings and %d loads, want 1 and %d", begun, loads, c.loads)
				}
			})
		})
	}
}

// What happens in a conversation while the log is read is not undone by what
// was read: no step is done twice, and the roll tells the newest version.
func TestReadingOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(context.Context, model.Caller, request) (model.Reply, error) { return say("hello"), nil })
		w.many(3)
		k := domain.Key{Tenant: key.Tenant, Conversation: "c1"}
		store := &reading{moody: moody{Store: w.disk}, hold: make(chan struct{})}
		n, err := actors.Start(t.Context(), actors.Config{
			Node: "n1", Store: store, Models: w.brain, Rules: &domain.Rules{Contracts: contract.All(), DefaultModel: "test"},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer w.close(n)
		if _, _, err := w.disk.Publish(t.Context(), eventstore.Envelope{Key: k, To: domain.LeadID, Data: []byte("hello")}); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Second) // it reads, and the conversation works
		version := func() (v uint64) {
			err := w.disk.Load(t.Context(), k, eventstore.Position{}, func(r eventstore.Recorded) error {
				v = r.Commit.GetVersion()
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		worked := version()
		if store.begun.Load() != 1 || worked < 3 {
			t.Fatalf("%d readings, version %d: nothing was overtaken", store.begun.Load(), worked)
		}
		close(store.hold)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		all, err := n.Roll(ctx, domain.Key{Tenant: key.Tenant})
		if err != nil || len(all) != 3 {
			t.Fatalf("%d answered: %v", len(all), err)
		}
		for _, p := range all {
			if p.Conversation == k.Conversation && p.Version != worked {
				t.Errorf("it answers from version %d, the log has %d", p.Version, worked)
			}
		}
		if got := len(w.brain.record()); got != 1 || version() != worked {
			t.Errorf("%d model calls and version %d, want one and %d", got, version(), worked)
		}
	})
}
