package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// idLen is the length of the short ids by which histories tell commits apart.
const idLen = 7

// asked is an operation on one conversation's log.
type asked struct {
	key string
	// id of the commit to append; empty to load.
	id string
	// after are the ids of the commits it was to follow.
	after string
}

// answer of the store.
type answer struct {
	outcome outcome
	// ids of the commits that were loaded, in order.
	ids string
}

type outcome string

const (
	ok       outcome = "ok"
	conflict outcome = "conflict"
	// unknown: it may still happen, at any time.
	unknown outcome = "unknown"
)

// logModel is a log as it ought to be: what an append finds is decided at one
// moment between its call and its return. The state is the ids of the commits,
// one after the other.
//
// A load is of such a moment too, as long as nobody reads from a server that led
// and is split off from the others: for some seconds that one answers from the
// past, which is a beginning of the log and nothing else.
func logModel(past bool) porcupine.Model {
	m := model
	m.Step = func(state, input, output any) (bool, any) {
		if in, out := input.(asked), output.(answer); past && in.id == "" {
			return strings.HasPrefix(state.(string), out.ids), state
		}
		return model.Step(state, input, output)
	}
	return m
}

var model = porcupine.Model{
	Init: func() any { return "" },
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		of := map[string][]porcupine.Operation{}
		for _, op := range history {
			key := op.Input.(asked).key
			of[key] = append(of[key], op)
		}
		var all [][]porcupine.Operation
		for _, ops := range of {
			all = append(all, ops)
		}
		return all
	},
	Step: func(state, input, output any) (bool, any) {
		log, in, out := state.(string), input.(asked), output.(answer)
		fits := log == in.after
		switch {
		case in.id == "":
			return log == out.ids, log
		case out.outcome == ok:
			return fits, log + in.id
		case out.outcome == conflict:
			return len(log) > len(in.after) && !strings.HasPrefix(log[len(in.after):], in.id), log
		case fits: // of unknown fate, and here it was done
			return true, log + in.id
		}
		return true, log
	},
	DescribeOperation: func(input, output any) string {
		in, out := input.(asked), output.(answer)
		if in.id == "" {
			return fmt.Sprintf("load %s: %d", in.key, len(out.ids)/idLen)
		}
		return fmt.Sprintf("append %s after %d of %s: %s", in.id, len(in.after)/idLen, in.key, out.outcome)
	},
}

// history is what all clients did.
type history struct {
	mu    sync.Mutex
	begun time.Time
	ops   []porcupine.Operation
	n     map[outcome]int
}

// now is the history's clock: one for all clients, and it only goes forward.
func (h *history) now() int64 { return int64(time.Since(h.begun)) }

func (h *history) add(client int, in asked, called int64, out answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	returned := h.now()
	if out.outcome == unknown {
		returned = math.MaxInt64
	}
	h.n[out.outcome]++
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Call: called, Output: out, Return: returned})
}

// writer is a client of the log: it appends to some conversations and loads them.
type writer struct {
	id    int
	store eventstore.Log
	rng   *rand.Rand
	keys  []domain.Key
	h     *history
	// seen is what it last knew of each conversation.
	seen map[domain.Key]view
	// calm is how long it rests between two operations.
	calm time.Duration
	// reads: it appends nothing, and so nothing keeps it from reading on while
	// nobody can append.
	reads bool
	t     testing.TB
}

type view struct {
	at  eventstore.Position
	ids string
}

// tryFor bounds one try of an operation.
const tryFor = 3 * time.Second

func (w *writer) work(ctx context.Context) {
	for ctx.Err() == nil {
		key := w.keys[w.rng.IntN(len(w.keys))]
		if w.reads || w.rng.IntN(5) == 0 || !w.append(ctx, key) {
			w.load(ctx, key)
		}
		rest(ctx, w.calm)
	}
}

// load reads a conversation from its beginning.
func (w *writer) load(ctx context.Context, key domain.Key) {
	called := w.h.now()
	for ctx.Err() == nil {
		var v view
		var ids strings.Builder
		try, cancel := context.WithTimeout(ctx, tryFor)
		err := w.store.Load(try, key, eventstore.Position{}, func(r eventstore.Recorded) error {
			v.at = r.Position()
			ids.WriteString(r.Commit.GetId()[:idLen])
			return nil
		})
		cancel()
		if errors.Is(err, domain.ErrGap) || errors.Is(err, domain.ErrHash) {
			w.t.Errorf("load: %v", err)
			return
		}
		if err == nil {
			v.ids = ids.String()
			w.seen[key] = v
			w.h.add(w.id, asked{key: key.Conversation}, called, answer{outcome: ok, ids: v.ids})
			return
		}
	}
}

// append appends to what it knows of the conversation. A commit of unknown fate
// is appended again, byte by byte the same, until its fate is known.
func (w *writer) append(ctx context.Context, key domain.Key) bool {
	v := w.seen[key]
	id := ulid.Make().String()
	id = strings.ToLower(id[len(id)-idLen:] + "-" + id)
	c := &rollcallv1.Commit{
		Version: v.at.Version + 1, PreviousHash: v.at.Hash, Id: id, Node: fmt.Sprint("w", w.id), Epoch: 1,
		Time: timestamppb.Now(), CommandIds: []string{id},
		Events: []*rollcallv1.Event{{Kind: &rollcallv1.Event_LeadReplied{LeadReplied: &rollcallv1.LeadReplied{Run: "r1", Text: &rollcallv1.Body{Text: id}}}}},
	}
	in := asked{key: key.Conversation, id: id[:idLen], after: v.ids}
	called := w.h.now()
	for {
		try, cancel := context.WithTimeout(ctx, tryFor)
		r, err := w.store.Append(try, key, v.at, c)
		cancel()
		switch {
		case err == nil:
			w.seen[key] = view{at: r.Position(), ids: v.ids + id[:idLen]}
			w.h.add(w.id, in, called, answer{outcome: ok})
			return true
		case errors.Is(err, eventstore.ErrConflict):
			w.h.add(w.id, in, called, answer{outcome: conflict})
			return false
		case !errors.Is(err, eventstore.ErrUnknown):
			w.t.Errorf("append: neither done, nor another's, nor of unknown fate: %v", err)
			return false
		case ctx.Err() != nil:
			w.h.add(w.id, in, called, answer{outcome: unknown})
			return false
		}
	}
}

// linear is a test of the log on a cluster of three servers.
type linear struct {
	t       *testing.T
	b       *breaker
	writers []*writer
	h       *history
	rng     *rand.Rand
	// past: loads may be of the past.
	past bool
}

func newLinear(t *testing.T, seed uint64, clients, conversations int, wrap func(eventstore.Log) eventstore.Log) *linear {
	t.Helper()
	rng := chance(t, seed)
	s := startServers(t, newNetwork(t), 3)
	l := &linear{t: t, b: newBreaker(t, s), rng: rng, h: &history{begun: time.Now(), n: map[outcome]int{}}}
	provision(t, l.b.admin)
	var keys []domain.Key
	for range conversations {
		keys = append(keys, domain.Key{Tenant: "main", Conversation: strings.ToLower(ulid.Make().String())})
	}
	for i, name := range names("c", clients) {
		urls := s.urls(name)
		urls = append(urls[i%3:], urls[:i%3]...)
		nc := s.connect(name, urls, nats.DontRandomize())
		t.Cleanup(nc.Close)
		var store eventstore.Log
		poll(t, "the store opens", func() bool {
			ctx, cancel := within(tryFor)
			defer cancel()
			j, err := eventstore.Open(ctx, nc, eventstore.Config{Replicas: 3})
			store = j
			return err == nil
		})
		if wrap != nil {
			store = wrap(store)
		}
		l.b.clients = append(l.b.clients, name)
		l.writers = append(l.writers, &writer{
			t: t, id: i, store: store, rng: rand.New(rand.NewPCG(seed, uint64(i)+2)), keys: keys, h: l.h, seen: map[domain.Key]view{}, calm: 15 * time.Millisecond,
		})
	}
	return l
}

func provision(t testing.TB, nc *nats.Conn) {
	t.Helper()
	var err error
	defer func() {
		if err != nil {
			t.Log("provision: ", err)
		}
	}()
	poll(t, "the streams are set up", func() bool { // the servers may not all be known yet
		ctx, cancel := within(20 * time.Second)
		defer cancel()
		err = eventstore.Provision(ctx, nc, eventstore.Config{Replicas: 3})
		return err == nil
	})
}

// run has all clients work while the plan is played, and judges what they saw.
func (l *linear) run(p plan) porcupine.CheckResult {
	l.t.Helper()
	l.t.Logf("the plan:\n%v", p)
	ctx, stop := context.WithCancel(l.t.Context())
	var wg sync.WaitGroup
	for _, w := range l.writers {
		wg.Go(func() { w.work(ctx) })
	}
	l.b.play(ctx, p)
	// Every client gets through once more, however long an election takes.
	before := l.done()
	poll(l.t, "every client goes on", func() bool {
		for i, n := range l.done() {
			if n < before[i]+3 {
				return false
			}
		}
		return true
	})
	stop()
	wg.Wait()
	for _, w := range l.writers { // and all see the same in the end
		for _, key := range w.keys {
			w.load(l.t.Context(), key)
		}
	}
	result, info := porcupine.CheckOperationsVerbose(logModel(l.past), l.h.ops, time.Minute)
	l.t.Logf("%d operations, %v: %s", len(l.h.ops), l.h.n, result)
	if result == porcupine.Illegal && !l.t.Failed() {
		l.draw(info)
	}
	return result
}

// done counts the operations of each client.
func (l *linear) done() []int {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	n := make([]int, len(l.writers))
	for _, op := range l.h.ops {
		n[op.ClientId]++
	}
	return n
}

// draw leaves a picture of a history that no log has.
func (l *linear) draw(info porcupine.LinearizationInfo) {
	path := l.t.ArtifactDir() + "/history.html"
	if err := porcupine.VisualizePath(logModel(l.past), info, path); err != nil {
		l.t.Log(err)
		return
	}
	l.t.Logf("a picture of it (kept with -artifacts): %s", path)
}

// TestLinearizable: several clients append to the same conversations, three
// interleaved in one stream, and some only read, while servers and wires break.
// What each was told, ok, conflict or what it loaded, is what one log at one
// place would have said.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	for _, seed := range seeds(t) {
		t.Run(fmt.Sprint("seed-", seed), func(t *testing.T) {
			l := newLinear(t, seed, 5, 3, nil)
			l.writers[4].reads = true
			whom := append([]string{theLeader, theLeader, theLeader}, append(l.b.servers.names(), l.b.clients...)...)
			steps := draw(l.rng, 5, serverFaults, whom, 5*time.Second, time.Second)
			if soak(t) > 0 {
				steps = draw(l.rng, 21, serverFaults, whom, 12*time.Second, time.Second)
			}
			l.past = slices.ContainsFunc(steps, func(s step) bool { return s.kind == split })
			if got := l.run(steps); got != porcupine.Ok {
				t.Errorf("the history is %s", got)
			}
		})
	}
}

// hasty is a store with a fault: where it does not know what became of a commit
// it says that another was first, and whoever asked decides again.
type hasty struct{ eventstore.Log }

func (h hasty) Append(ctx context.Context, key domain.Key, after eventstore.Position, c *rollcallv1.Commit) (eventstore.Recorded, error) {
	try, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	r, err := h.Log.Append(try, key, after, c)
	if errors.Is(err, eventstore.ErrUnknown) {
		err = eventstore.ErrConflict
	}
	return r, err
}

// TestLinearizableFindsIt: a store that takes an unknown fate for a conflict is
// found out as soon as acknowledgements are lost.
func TestLinearizableFindsIt(t *testing.T) {
	t.Parallel()
	l := newLinear(t, 7, 2, 1, func(log eventstore.Log) eventstore.Log { return hasty{log} })
	lost := plan{}
	for range 4 {
		for _, client := range l.b.clients {
			lost = append(lost, step{kind: deafen, whom: client, hold: 500 * time.Millisecond, rest: 300 * time.Millisecond, reset: true})
		}
	}
	if got := l.run(lost); got != porcupine.Illegal {
		t.Errorf("commits were lost sight of, and the history is %s", got)
	}
}
