// Package storetest is the conformance suite of package eventstore: whatever
// claims to be a Store passes it.
//
// The cases are independent and run in parallel, each on a conversation and a
// partition of its own, so that all may share one store. None of them sleeps:
// they poll with a deadline, which in a testing/synctest bubble takes no time.
package storetest

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Store is what the suite tests: a store into whose log a stranger can write.
type Store interface {
	eventstore.Store
	// Inject stores raw bytes on a conversation's log; with claims they present
	// themselves as a commit.
	Inject(ctx context.Context, key domain.Key, raw []byte, claims bool) (seq uint64, err error)
}

// Case is one test of the suite.
type Case struct {
	Name string
	Run  func(t *testing.T, s Store)
}

// Cases lists the whole suite.
func Cases() []Case {
	var all []Case
	for _, group := range [][]Case{logCases, tamperCases, raceCases, cacheCases, inboxCases, ownerCases, leaseCases, nodeCases, timerCases} {
		all = append(all, group...)
	}
	return all
}

// Run runs the suite, each case on the store that open returns for it.
func Run(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			c.Run(t, open(t))
		})
	}
}

// patience is how long a case waits for what must happen.
const patience = 30 * time.Second

var partitions atomic.Int64

// newKey names a conversation that no other case uses.
func newKey() domain.Key {
	return domain.Key{Tenant: "main", Conversation: strings.ToLower(ulid.Make().String())}
}

// newPartition takes the next partition; there are more of them than cases
// that need one.
func newPartition() int { return int(partitions.Add(1)) % domain.Partitions }

// keyIn names a conversation of the partition.
func keyIn(partition int) domain.Key {
	for {
		if k := newKey(); k.Partition() == partition {
			return k
		}
	}
}

// commit makes the commit that follows a position, with a body of n bytes.
func commit(after eventstore.Position, word string, n int) *rollcallv1.Commit {
	return &rollcallv1.Commit{
		Version: after.Version + 1, PreviousHash: after.Hash,
		Id: strings.ToLower(ulid.Make().String()), Node: "n1", Epoch: 1,
		Time:       timestamppb.New(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		CommandIds: []string{word},
		Events: []*rollcallv1.Event{{Kind: &rollcallv1.Event_LeadReplied{LeadReplied: &rollcallv1.LeadReplied{
			Run: "r1", Text: &rollcallv1.Body{Text: strings.Repeat("x", n)},
		}}}},
	}
}

// appendN appends n small commits and returns them.
func appendN(t *testing.T, s eventstore.Store, key domain.Key, after eventstore.Position, n int) []eventstore.Recorded {
	t.Helper()
	var all []eventstore.Recorded
	for range n {
		r, err := s.Append(t.Context(), key, after, commit(after, "c", 10))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
		after = r.Position()
	}
	return all
}

func load(ctx context.Context, s eventstore.Store, key domain.Key, after eventstore.Position) ([]eventstore.Recorded, error) {
	var all []eventstore.Recorded
	err := s.Load(ctx, key, after, func(r eventstore.Recorded) error {
		all = append(all, r)
		return nil
	})
	return all, err
}

// mustLoad loads the log and compares it with what was appended.
func mustLoad(t *testing.T, s eventstore.Store, key domain.Key, after eventstore.Position, want []eventstore.Recorded) {
	t.Helper()
	got, err := load(t.Context(), s, key, after)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("loaded %d commits, want %d", len(got), len(want))
	}
	for i, w := range want {
		if got[i].Seq != w.Seq || got[i].Key != key || !bytes.Equal(got[i].Raw, w.Raw) {
			t.Fatalf("commit %d: loaded version %d at %d, want version %d at %d", i, got[i].Commit.GetVersion(), got[i].Seq, w.Commit.GetVersion(), w.Seq)
		}
	}
}

// eventually polls until ok reports true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %v", what, patience)
		case <-tick.C:
		}
	}
}
