package actors_test

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/memory"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// counted counts the commits that are read of a store.
type counted struct {
	eventstore.Store
	loaded, asked atomic.Int64
}

func (c *counted) Load(ctx context.Context, k domain.Key, after eventstore.Position, fn func(eventstore.Recorded) error) error {
	return c.Store.Load(ctx, k, after, func(r eventstore.Recorded) error {
		c.loaded.Add(1)
		return fn(r)
	})
}

func (c *counted) At(ctx context.Context, k domain.Key, versions []uint64) (map[uint64]*rollcallv1.Commit, error) {
	c.asked.Add(int64(len(versions)))
	return c.Store.At(ctx, k, versions)
}

// TestInputLongConversation: one conversation of 60,000 commits. A node that
// has its snapshot reads no more than the tail behind it; one that has none
// reads all, once, and leaves a snapshot for the next.
func TestInputLongConversation(t *testing.T) {
	commits := 6_000
	if os.Getenv("ROLLCALL_SOAK") != "" {
		commits = 60_000
	}
	const every, turn = 200, 20 // commits between snapshots, and of one turn at most
	synctest.Test(t, func(t *testing.T) {
		// Most of its log was made without a model: nobody judges it at the end.
		settleLetters(t)
		w := &world{t: t, disk: memory.New(), answers: map[string]chan *rollcallv1.Answer{}, brain: &brain{
			think: func(context.Context, model.Caller, request) (model.Reply, error) { return say("well"), nil },
		}}
		t.Cleanup(w.disk.Close)
		at := eventstore.Position{}
		rules := &domain.Rules{Contracts: contract.All(), DefaultModel: "test"}
		before := domaintest.Long(t, key, rules, commits, func(c *rollcallv1.Commit) {
			r, err := w.disk.Append(t.Context(), key, at, c)
			if err != nil {
				t.Fatal(err)
			}
			at = r.Position()
		})
		// answers starts a node, has it answer, and counts what it read for it.
		answers := func(words string) (loaded, asked int64) {
			t.Helper()
			store := &counted{Store: w.disk}
			n := w.on(store)
			defer w.close(n)
			calls := len(w.brain.record())
			w.do(post("lead", words, rollcallv1.MailMode_MAIL_MODE_UNSPECIFIED))
			w.quiet()
			if got := len(w.brain.record()) - calls; got != 1 {
				t.Errorf("%s: %d model calls", words, got)
			}
			return store.loaded.Load(), store.asked.Load()
		}
		if loaded, _ := answers("without a snapshot"); loaded != int64(commits) {
			t.Errorf("without a snapshot %d commits were read, want %d", loaded, commits)
		}
		// The request shows the newest of the transcript, not all of it.
		for _, words := range []string{"with one", "and once more"} {
			loaded, asked := answers(words)
			if loaded > every+turn || asked > 5_000 {
				t.Errorf("%s: %d commits were read at the start and %d for the request, of %d", words, loaded, asked, commits)
			}
			t.Logf("%s: %d read at the start, %d for the request", words, loaded, asked)
		}
		all := w.brain.record()
		if size := len(all[len(all)-1].body); size > 1<<20 {
			t.Errorf("the request has %d bytes", size)
		}
		if s := w.state(); s.LastMessage != before.LastMessage+3 || s.Lead().Held {
			t.Errorf("the conversation went from message %d to %d", before.LastMessage, s.LastMessage)
		}
		if data, err := w.state().Marshal(); err != nil || len(data) > 3<<20 {
			t.Errorf("the state has %d bytes, %v", len(data), err)
		}
	})
}
