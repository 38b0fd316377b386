package actors_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore/faulty"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// play drives the story to its end. When the node crashes, another one takes
// over and whatever was asked and not answered is asked again, as a client
// would. It returns the points met by the first node.
func play(t *testing.T, w *world, fault ...faulty.Fault) []faulty.Hit {
	t.Helper()
	node, store := w.node(fault...)
	defer func() { w.close(node) }()
	restarted := false
	takeOver := func() {
		if !restarted {
			restarted = true
			w.close(node)
			node, _ = w.node()
		}
	}
	crashed := func() <-chan struct{} {
		if restarted {
			return nil
		}
		return store.Crashed()
	}
	say := func(cmd *rollcallv1.Command) {
		for {
			select {
			case a := <-w.ask(cmd):
				if r := a.GetRefusal(); r != nil {
					t.Fatalf("refused: %v", r)
				}
				return
			case <-crashed():
				takeOver()
			case <-time.After(30 * time.Second):
				// the answer was lost; ask again
			}
		}
	}
	say(openCommand(objective))
	w.until("the Lead is called", func(*domain.State) bool {
		select {
		case <-crashed():
			takeOver()
		default:
		}
		return w.brain.count("Lead") > 0
	})
	more := post("lead", hurry, rollcallv1.MailMode_MAIL_MODE_UNSPECIFIED)
	more.Id = "more"
	say(more)
	w.until("the story ends", func(s *domain.State) bool {
		select {
		case <-crashed():
			takeOver()
		default:
		}
		return len(domain.Due(s)) == 0 && w.disk.Pending(key.Partition()) == 0 && s.Version > 1
	})
	return store.Hits()
}

// crash-everywhere: the story is played once for every durable point of its
// undisturbed course and every way to crash there.
func TestCrashEverywhere(t *testing.T) {
	var want string
	var hits []faulty.Hit
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, storyBrain)
		hits = play(t, w)
		want = ending(t, w.state(), w.events())
		justified(t, w.events(), len(w.brain.record()))
		if testing.Verbose() {
			t.Log(want)
		}
	})
	if t.Failed() {
		return
	}
	counts := map[faulty.Point]int{}
	for _, h := range hits {
		counts[h.Point]++
	}
	t.Logf("crash-everywhere: %d durable points %v, %d ways to crash at each", len(hits), counts, len(faulty.Crashes))
	for point, least := range map[faulty.Point]int{
		faulty.Append: 12, faulty.PutBlob: 2, faulty.Ack: 2, faulty.Claim: 1, faulty.Receive: 1, faulty.Reply: 2,
	} {
		if counts[point] < least {
			t.Errorf("only %d points of kind %q, want at least %d: the story or the counting has shrunk", counts[point], point, least)
		}
	}
	for _, h := range hits {
		for _, how := range faulty.Crashes {
			fault := faulty.Fault{Point: h.Point, N: h.N, How: how}
			t.Run(fmt.Sprint(fault), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, storyBrain)
					play(t, w, fault)
					events := w.events()
					justified(t, events, len(w.brain.record()))
					if got := ending(t, w.state(), events); got != want {
						t.Errorf("ended otherwise than undisturbed:\n%s\nwant\n%s\n%s", got, want, w.story())
					}
					checkCalls(t, w, events)
				})
			})
		}
	}
}

// checkCalls: a step is called once, and once more for each time its run was
// taken up again.
func checkCalls(t *testing.T, w *world, events []*rollcallv1.Event) {
	t.Helper()
	resumed, made := map[string]int{}, map[string]map[uint32]int{}
	for _, e := range events {
		if r := e.GetRunResumed(); r != nil {
			resumed[r.GetRun()]++
		}
	}
	for _, c := range w.brain.record() {
		if made[c.from.Run] == nil {
			made[c.from.Run] = map[uint32]int{}
		}
		made[c.from.Run][c.from.Step]++
	}
	for run, steps := range made {
		extra := 0
		for _, n := range steps {
			extra += n - 1
		}
		if extra > resumed[run] {
			t.Errorf("run %s made %d calls too many, it was resumed %d times", run, extra, resumed[run])
		}
	}
}
