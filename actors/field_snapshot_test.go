package actors_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/actors"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/faulty"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Elsewhere whoever asked for the change that caused a snapshot got no answer,
// and after a crash right behind the snapshot an event was applied twice. Here a
// snapshot is taken after every commit, or after every third; the node is lost at each of them, before it, right after it, and before it learns of it.
// Everybody is answered, once, and the state from the snapshot is the state from
// the log alone.
func TestB57AcrossTheSnapshot(t *testing.T) {
	for _, every := range []uint64{1, 3} {
		var hits int
		var want string
		synctest.Test(t, func(t *testing.T) { hits, want = snapshots(t, every) })
		if t.Failed() {
			return
		}
		if hits < 3 {
			t.Fatalf("only %d snapshots, one every %d commits", hits, every)
		}
		for n := range hits {
			for _, how := range append([]faulty.How{faulty.Fail, faulty.LoseAck}, faulty.Crashes...) {
				fault := faulty.Fault{Point: faulty.Snapshot, N: n + 1, How: how}
				t.Run(fmt.Sprint("every ", every, ", ", fault), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						if _, got := snapshots(t, every, fault); got != want {
							t.Errorf("it came to\n%s\nwant\n%s", got, want)
						}
					})
				})
			}
		}
	}
}

// snapshots plays questions and answers over snapshots and says what they came
// to.
func snapshots(t *testing.T, every uint64, faults ...faulty.Fault) (hits int, summary string) {
	t.Helper()
	w := newWorld(t, func(_ context.Context, _ model.Caller, r request) (model.Reply, error) {
		if r.called("task_create") < 2 {
			return calls(call("task_create", fmt.Sprintf(`{"title":"task %d","description":"x"}`, r.called("task_create")))), nil
		}
		return say("ok"), nil
	})
	often := func(c *actors.Config) { c.SnapshotEvery = every }
	n, store := w.begin(often, faults...)
	defer func() { w.close(n) }()
	taken := false
	takeOver := func() {
		if !taken {
			taken = true
			w.close(n)
			n, _ = w.begin(often)
		}
	}
	crashed := func() <-chan struct{} {
		if taken {
			return nil
		}
		return store.Crashed()
	}
	answered := map[string]uint64{}
	ask := func(cmd *rollcallv1.Command) {
		for {
			select {
			case a := <-w.ask(cmd):
				if a.GetRefusal() != nil || a.GetVersion() == 0 || a.GetCommand() != cmd.GetId() {
					t.Fatalf("%s is answered %v", cmd.GetId(), a)
				}
				answered[cmd.GetId()] = a.GetVersion()
				return
			case <-crashed():
				takeOver()
			case <-time.After(30 * time.Second): // the answer is lost; ask again
			}
		}
	}
	ask(openCommand("go"))
	for i := range 6 {
		cmd := post("lead", fmt.Sprintf("word %d.", i), rollcallv1.MailMode_MAIL_MODE_QUEUE)
		cmd.Id = fmt.Sprintf("word-%d", i)
		ask(cmd)
	}
	<-time.After(2 * time.Second)
	select {
	case <-crashed():
		takeOver()
	default:
	}
	s := w.quiet()
	for _, h := range store.Hits() {
		if h.Point == faulty.Snapshot {
			hits++
		}
	}
	fold := domain.New(key)
	err := w.disk.Load(t.Context(), key, eventstore.Position{}, func(r eventstore.Recorded) error {
		if err := domain.CheckNext(fold.Version, fold.LastHash, r.Commit); err != nil {
			return err
		}
		fold.Evolve(r.Commit)
		return nil
	})
	if err != nil || fold.Hash() != s.Hash() {
		t.Errorf("the state from the snapshot is %s, from the log alone %s, %v", s.Hash(), fold.Hash(), err)
	}
	for id, version := range answered {
		if !inCommit(t, w, version, id) {
			t.Errorf("%s is not in version %d, which its answer names", id, version)
		}
	}
	justified(t, w.events(), len(w.brain.record()))
	var words []string
	for _, e := range w.events() {
		if m := e.GetMessageDelivered(); m.GetKind() == rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE {
			words = append(words, m.GetBody().GetText())
		}
	}
	return hits, fmt.Sprint(len(s.Tasks), " tasks, ", len(s.Lead().Unread), " unread, ", strings.Join(words, ", "))
}

func inCommit(t *testing.T, w *world, version uint64, command string) bool {
	t.Helper()
	found, err := w.disk.At(t.Context(), key, []uint64{version})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(found[version].String(), command)
}

// Elsewhere a crash of an actor took with it what waited to be handled. Here a
// conversation crashes in everything that it calls while it works, with twenty
// commands queued: none is lost, none is done twice, and each is answered.
func TestB60QueueSurvivesAPanic(t *testing.T) {
	for _, where := range []string{"contract", "feed", "answer"} {
		for _, panics := range []int{1, 2} {
			t.Run(fmt.Sprint(where, " ", panics), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { panicking(t, where, panics) })
			})
		}
	}
}

func panicking(t *testing.T, where string, panics int) {
	w := newWorld(t, strict(t, func(_ context.Context, _ model.Caller, r request) (model.Reply, error) {
		if r.called("task_list") == 0 {
			return calls(call("task_list", `{}`), call("task_create", `{"title":"once","description":"x"}`)), nil
		}
		return say("ok"), nil
	}))
	b := &bomb{}
	broken := &crashingContract{}
	w.wrap = func(c domain.Contract) domain.Contract { broken.Contract = c; return broken }
	n, _ := w.begin(func(c *actors.Config) {
		c.Feed = b
		answer := c.Answer
		c.Answer = func(subject string, a *rollcallv1.Answer) {
			answer(subject, a)
			b.tick("answer")
		}
	})
	defer w.close(n)
	w.do(openCommand("first"))
	if where == "contract" {
		broken.mu.Lock()
		broken.left = panics
		broken.mu.Unlock()
	}
	b.set(where, panics)
	var answers []<-chan *rollcallv1.Answer
	began := time.Now()
	for i := range 20 {
		answers = append(answers, w.ask(post("lead", fmt.Sprintf("word %d.", i), rollcallv1.MailMode_MAIL_MODE_QUEUE)))
	}
	for _, a := range answers {
		if got := w.heard(a); got.GetRefusal() != nil {
			t.Errorf("refused: %v", got)
		}
	}
	if took := time.Since(began); took > 30*time.Second { // the inbox would bring them again, minutes later
		t.Errorf("the last answer came after %s", took)
	}
	w.quiet()
	if where != "contract" && b.spent() != panics {
		t.Errorf("it crashed %d times", b.spent())
	}
	story := w.story()
	for i := range 20 {
		if n := strings.Count(story, fmt.Sprintf(`text:"word %d."`, i)); n != 1 {
			t.Errorf("word %d is delivered %d times", i, n)
		}
	}
	if n := strings.Count(story, `title:"once"`); n != 1 {
		t.Errorf("the task was made %d times", n)
	}
	justified(t, w.events(), len(w.brain.record()))
}

// bomb is a feed, and more, that panics at its next calls.
type bomb struct {
	mu    sync.Mutex
	where string
	left  int
	done  int
}

func (b *bomb) set(where string, left int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.where, b.left = where, left
}

func (b *bomb) spent() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.done
}

func (b *bomb) tick(where string) {
	b.mu.Lock()
	bang := b.where == where && b.left > 0
	if bang {
		b.left--
		b.done++
	}
	b.mu.Unlock()
	if bang {
		panic("the " + where + " is broken")
	}
}

func (b *bomb) Committed(eventstore.Recorded) { b.tick("feed") }

func (b *bomb) Text(model.Caller, string, string) {}
