package actors_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/eventstore/faulty"
	"github.com/rollcall-dev/rollcall/internal/model"
)

// points are the kinds of durable point, and how often the story crosses each
// at least: fewer means that the story, or the counting, has shrunk.
var points = map[faulty.Point]int{
	faulty.Append: 20, faulty.PutBlob: 3, faulty.Snapshot: 2,
	faulty.Publish: 2, faulty.Ack: 3, faulty.DeadLetter: 1,
	faulty.ConsumerDelete: 2, faulty.ConsumerCreate: 2,
	faulty.Claim: 2, faulty.Renew: 5, faulty.Release: 2,
	faulty.Arm: 1, faulty.Fire: 1,
	faulty.Reply: 2,
	// Nothing cancels a timer yet. Whoever does puts it into the story.
	faulty.Cancel: 0,
}

// aLongTime is longer than leases last and timers run.
const aLongTime = 2 * time.Minute

// A scenario is a story that crash-everywhere plays.
type scenario struct {
	think func(context.Context, model.Caller, request) (model.Reply, error)
	// play drives it to its end, as course says.
	play func(w *world, away time.Duration, faults ...faulty.Fault) *course
	// points that it crosses at least.
	points map[faulty.Point]int
	// members that answer the roll at the end.
	members int
	// thin is how many of the points, one in so many, are also tried with nobody
	// there for a long time; pairs is how many stories have two crashes.
	thin, pairs int
}

var mailboxStory = scenario{think: storyBrain, play: play, points: points, members: 3, thin: 2, pairs: 24}

// crash-everywhere: the story is played once for every durable point of its
// undisturbed course and every way to crash there; at some of them, and at every
// rare one, once more with nobody there for a long time; and then with two
// crashes in one story.
func TestCrashEverywhere(t *testing.T) { mailboxStory.everywhere(t) }

func (sc scenario) everywhere(t *testing.T) {
	want, hits := sc.undisturbed(t)
	if t.Failed() {
		return
	}
	counts := map[faulty.Point]int{}
	for _, h := range hits {
		counts[h.Point]++
	}
	t.Logf("crash-everywhere: %d durable points %v, %d ways to crash at each", len(hits), counts, len(faulty.Crashes))
	for point, least := range sc.points {
		if n := counts[point]; n < least || least == 0 && n > 0 {
			t.Errorf("%d points of kind %q, want at least %d", n, point, least)
		}
	}
	for point := range counts {
		if _, ok := sc.points[point]; !ok {
			t.Errorf("points of kind %q are not in the table", point)
		}
	}
	var plays, struck atomic.Int64
	crash := func(t *testing.T, away time.Duration, faults ...faulty.Fault) {
		t.Run(fmt.Sprint(faults, " ", away), func(t *testing.T) {
			t.Parallel()
			plays.Add(1)
			synctest.Test(t, func(t *testing.T) { struck.Add(int64(sc.crashing(t, want, away, faults...))) })
		})
	}
	t.Run("once", func(t *testing.T) {
		for i, h := range hits {
			for _, how := range faulty.Crashes {
				crash(t, 0, faulty.Fault{Point: h.Point, N: h.N, How: how})
			}
			if i%sc.thin == 0 || sc.points[h.Point] < 3 {
				crash(t, aLongTime, faulty.Fault{Point: h.Point, N: h.N, How: faulty.Crashes[i%len(faulty.Crashes)]})
			}
		}
	})
	t.Logf("crash-everywhere: %d of %d stories crashed", struck.Load(), plays.Load())
	if struck.Load() < plays.Load()*9/10 {
		t.Errorf("only %d of %d stories met their crash", struck.Load(), plays.Load())
	}

	seed, pairs := seed(t), sc.pairs
	if os.Getenv("ROLLCALL_SOAK") != "" {
		pairs = 1000
	}
	plays.Store(0)
	struck.Store(0)
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Run("twice", func(t *testing.T) {
		for range pairs {
			first := rng.IntN(len(hits)) + 1
			second := rng.IntN(max(len(hits)-first, 8)) + 1
			how := func() faulty.How { return faulty.Crashes[rng.IntN(len(faulty.Crashes))] }
			away := []time.Duration{0, 0, aLongTime}[rng.IntN(3)]
			crash(t, away, faulty.Fault{Point: faulty.Any, N: first, How: how()}, faulty.Fault{Point: faulty.Any, N: second, How: how()})
		}
	})
	t.Logf("crash-everywhere: %d crashes in %d stories with two, ROLLCALL_SEED=%d", struck.Load(), plays.Load(), seed)
	if struck.Load() < plays.Load()*3/2 {
		t.Errorf("only %d crashes in %d stories with two", struck.Load(), plays.Load())
	}
}

// undisturbed is what the story comes to, and the points it crosses.
func (sc scenario) undisturbed(t *testing.T) (want string, hits []faulty.Hit) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sc.think)
		hits = sc.play(w, 0).store.Hits()
		want = ending(t, w.state(), w.events())
		justified(t, w.events(), len(w.brain.record()))
		once(t, w.events())
		checkCalls(t, w, w.events(), 0)
		rests(t, w, sc.members)
		if testing.Verbose() {
			t.Log(want)
		}
	})
	return want, slices.Clone(hits)
}

// crashing plays the story with crashes and holds it against the undisturbed
// one. It returns how many nodes were lost.
func (sc scenario) crashing(t *testing.T, want string, away time.Duration, faults ...faulty.Fault) int {
	w := newWorld(t, sc.think)
	c := sc.play(w, away, faults...)
	events := w.events()
	justified(t, events, len(w.brain.record()))
	once(t, events)
	checkCalls(t, w, events, c.crashed)
	if got := ending(t, w.state(), events); got != want {
		t.Errorf("ended otherwise than undisturbed:\n%s\nwant\n%s\n%s", got, want, w.story())
	}
	if n := len(c.dead()); n != 1 {
		t.Errorf("%d dead letters", n)
	}
	rests(t, w, sc.members)
	return c.crashed
}

// seed is ROLLCALL_SEED, or another one each time.
func seed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("ROLLCALL_SEED")
	if text == "" {
		return rand.Uint64()
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("ROLLCALL_SEED: %v", err)
	}
	return n
}
