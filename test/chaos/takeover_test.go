package chaos_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// slow is a conversation in mid-run: two steps are done, and the third is with
// the model, which does not answer before it is told to.
type slow struct {
	*world
	id, word string
	owner    *node
	// epoch of the owner's claim.
	epoch uint64
}

func (w *world) inMidRun(word string) *slow {
	w.t.Helper()
	s := &slow{world: w, id: api.NewID(), word: word}
	if err := w.open(w.ctx(), w.c, s.id, "takes it "+word, "Take it "+word+"."); err != nil {
		w.t.Fatal(err)
	}
	s.called(1)
	s.owner = w.owner(s.id)
	s.epoch = w.cluster().Owners[keyOf(s.id).Partition()].Epoch
	if s.owner == nil {
		w.t.Fatalf("nobody owns %s, and it is worked on", s.id)
	}
	return s
}

// called waits until the third step was asked for n times, and gives the last.
func (s *slow) called(n int) scripted.Request {
	s.t.Helper()
	var last scripted.Request
	poll(s.t, fmt.Sprintf("step 3 is asked for, time %d", n), func() bool {
		seen := 0
		for _, r := range s.asked(s.id) {
			if r.RuleName == s.word+" 3" {
				seen++
				last = r
			}
		}
		return seen >= n
	})
	return last
}

// ends releases the model and waits for the end of the conversation.
func (s *slow) ends() {
	s.t.Helper()
	s.models.Release(s.word)
	poll(s.t, "it goes on to its end", func() bool {
		st := s.state(s.id)
		return quiet(st) && st.Status() == "idle" && len(st.Lead().Files) == 3
	})
}

// continued checks what the log and the model server have of a run that another
// node took up: nothing twice but the call that was lost, and nothing more of the
// old owner's claim.
func (s *slow) continued() {
	s.t.Helper()
	calls := map[string]int{}
	for _, r := range s.asked(s.id) {
		calls[r.RuleName]++
	}
	want := map[string]int{s.word + " 1": 1, s.word + " 2": 1, s.word + " 3": 2, s.word + " done": 1}
	if fmt.Sprint(calls) != fmt.Sprint(want) {
		s.t.Errorf("the model was asked %v, want %v", calls, want)
	}
	runs, resumed, over := 0, 0, false
	for _, r := range s.commits(s.id) {
		over = over || r.Commit.GetEpoch() > s.epoch
		if over && r.Commit.GetEpoch() <= s.epoch {
			s.t.Errorf("version %d is of the old owner's claim, after another's", r.Commit.GetVersion())
		}
		for _, e := range r.Commit.GetEvents() {
			if e.GetRunStarted() != nil {
				runs++
			}
			if up := e.GetRunResumed(); up != nil {
				resumed++
				if r.Commit.GetEpoch() == s.epoch {
					s.t.Errorf("version %d: the old owner takes the run up", r.Commit.GetVersion())
				}
			}
		}
	}
	if runs != 1 || resumed != 1 || !over {
		s.t.Errorf("%d runs, taken up %d times, by another's claim: %t", runs, resumed, over)
	}
}

// TestTakeover is the case takeover: in mid-run the owner is killed, or stopped
// and woken when another has its work. The other goes on from the last step; the
// stopped one leaves no trace in the log and starts no further step.
func TestTakeover(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script("lightly", "gravely", "calmly"), rollcall(t), rollcall(t))
	w.settled()

	t.Run("killed", func(t *testing.T) {
		s := w.on(t).inMidRun("lightly")
		begun := time.Now()
		s.owner.proc.kill()
		s.called(2)
		t.Logf("from kill -9 to the next step: %v", after(begun))
		s.ends()
		s.continued()
		s.owner.start()
		s.owner.ready()
		s.settled()
	})
	t.Run("killed and back at once", func(t *testing.T) {
		s := w.on(t).inMidRun("gravely")
		begun := time.Now()
		s.owner.proc.kill()
		s.owner.start()
		s.called(2)
		t.Logf("from kill -9, with a restart, to the next step: %v", after(begun))
		s.ends()
		s.continued()
		s.owner.ready()
		s.settled()
	})
	t.Run("stopped and woken", func(t *testing.T) {
		s := w.on(t).inMidRun("calmly")
		begun := time.Now()
		s.owner.proc.stop()
		s.called(2)
		t.Logf("from SIGSTOP to the next step: %v", after(begun))
		s.models.Release(s.word) // both are answered: the sleeper finds its answer when it wakes
		poll(t, "the other is done", func() bool {
			st := s.state(s.id)
			return quiet(st) && len(st.Lead().Files) == 3
		})
		s.owner.proc.cont()
		s.settled() // the woken one has looked around and taken its share again
		s.ends()
		s.continued()
		// What it gets to do from now on, it does by a new claim.
		if _, err := s.c.Send(s.ctx(), s.id, &rollcallv1.PostMessage{Body: &rollcallv1.Body{Text: "Still there?"}}); err != nil {
			t.Fatal(err)
		}
		poll(t, "it answers", func() bool {
			st := s.state(s.id)
			return quiet(st) && st.Status() == "idle" && len(s.asked(s.id)) == 6
		})
	})
	w.on(t).judge(nil)
}

// on is the world for a subtest.
func (w *world) on(t *testing.T) *world {
	one := *w
	one.t = t
	return &one
}
