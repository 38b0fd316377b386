package actors_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// shy is a storage whose steps fail, or crash their caller, a few times each.
type shy struct {
	eventstore.Store
	mu     sync.Mutex
	left   map[string]int
	panics bool
}

var errShy = errors.New("the storage is not ready")

func (s *shy) ready(step string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left[step] == 0 {
		return nil
	}
	s.left[step]--
	if s.panics {
		panic("the storage crashed: " + step)
	}
	return errShy
}

func (s *shy) Load(ctx context.Context, k domain.Key, after eventstore.Position, fn func(eventstore.Recorded) error) error {
	if err := s.ready("load"); err != nil {
		return err
	}
	return s.Store.Load(ctx, k, after, fn)
}

func (s *shy) LoadSnapshot(ctx context.Context, k domain.Key, v uint32) (eventstore.Snapshot, bool, error) {
	if err := s.ready("snapshot"); err != nil {
		return eventstore.Snapshot{}, false, err
	}
	return s.Store.LoadSnapshot(ctx, k, v)
}

func (s *shy) Claim(ctx context.Context, node string, p int) (eventstore.Lease, error) {
	if err := s.ready("claim"); err != nil {
		return eventstore.Lease{}, err
	}
	return s.Store.Claim(ctx, node, p)
}

func (s *shy) Receive(ctx context.Context, l eventstore.Lease) (eventstore.Receiver, error) {
	if err := s.ready("receive"); err != nil {
		return nil, err
	}
	return s.Store.Receive(ctx, l)
}

func (s *shy) Append(ctx context.Context, k domain.Key, after eventstore.Position, c *rollcallv1.Commit) (eventstore.Recorded, error) {
	if err := s.ready("append"); err != nil {
		return eventstore.Recorded{}, err
	}
	return s.Store.Append(ctx, k, after, c)
}

// Follow fails, so that every conversation is loaded by itself.
func (*shy) Follow(context.Context, uint64, func(eventstore.Recorded) error, func(uint64, string, error)) error {
	return errors.New("not to be read whole")
}

// Elsewhere mail to one who sleeps or is starting was tried twice and then
// dropped, or died with the start that failed. Here a conversation fails to come
// up three times while mail for three of its members arrives; afterwards each has
// all of its mail, once, and has been shown it.
func TestB08MailWhileTheStartFails(t *testing.T) {
	for _, step := range []string{"load", "snapshot", "claim", "receive", "append"} {
		for _, panics := range []bool{false, true} {
			if panics && step != "load" && step != "snapshot" {
				continue // only these are in the hands of one conversation
			}
			t.Run(fmt.Sprint(step, ", crashes ", panics), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, func(context.Context, model.Caller, request) (model.Reply, error) { return say("ok"), nil })
					n, _ := w.node()
					w.do(withMembers("go", "Ada", "Bob"))
					w.quiet()
					w.close(n)
					store := &shy{Store: w.disk, left: map[string]int{step: 3}, panics: panics}
					n = w.on(store)
					defer w.close(n)
					to := []string{"lead", "m1", "m2"}
					var answers []<-chan *rollcallv1.Answer
					for i := range 21 {
						answers = append(answers, w.ask(alertCommand(to[i%3], fmt.Sprintf("word %d.", i))))
						<-time.After(50 * time.Millisecond)
					}
					for tries := 0; panics && tries < 5; tries++ { // it is set aside, and its mail held
						<-time.After(time.Minute)
						if len(n.Quarantined()) == 0 {
							break
						}
						w.ask(retryCommand("")) // held with the rest if it crashes again
					}
					for _, a := range answers {
						if r := w.heard(a).GetRefusal(); r != nil {
							t.Errorf("refused: %v", r)
						}
					}
					w.quiet()
					if store.left[step] != 0 {
						t.Fatalf("%s was tried too seldom", step)
					}
					onceEach(t, w, to, 21)
				})
			})
		}
	}
}

// onceEach checks that word i was delivered once, to its recipient, consumed once,
// and stands once in what its recipient was last shown.
func onceEach(t *testing.T, w *world, to []string, words int) {
	t.Helper()
	events := w.events()
	justified(t, events, len(w.brain.record()))
	for i := range words {
		word := fmt.Sprintf("word %d.", i)
		var id string
		for _, e := range events {
			if m := e.GetMessageDelivered(); m.GetBody().GetText() == word {
				if id != "" || m.GetTo() != to[i%len(to)] {
					t.Errorf("%s is delivered again, or to %s", word, m.GetTo())
				}
				id = m.GetMessage()
			}
		}
		consumed := 0
		for _, e := range events {
			for _, r := range slices.Concat(e.GetRunStarted().GetConsumed(), e.GetMessagesConsumed().GetMessages()) {
				if r.GetMessage() == id {
					consumed++
				}
			}
		}
		name := w.state().Member(to[i%len(to)]).Name
		if got := strings.Count(lastOf(w, name), word); id == "" || consumed != 1 || got != 1 {
			t.Errorf("%s (%s) is consumed %d times and shown to %s %d times", word, id, consumed, name, got)
		}
	}
}

// Elsewhere mail that came between the reading of a mailbox and the mark was
// marked as read and never shown. Here mail comes at every moment of a turn: while
// its start is being stored, while the model thinks, while the reply is being
// stored, while its end is. Every request shows exactly the mail that the log says
// was consumed for it, and what came later is unread until the next one.
func TestB09TheReadMarkIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(_ context.Context, _ model.Caller, r request) (model.Reply, error) {
			<-time.After(300 * time.Millisecond)
			if strings.Count(r.text(), "tool: ")%3 != 2 {
				return calls(call("task_list", `{}`)), nil
			}
			return say("ok"), nil
		})
		store := &slow{Store: w.disk}
		n := w.on(store)
		defer w.close(n)
		w.open("go")
		var answers []<-chan *rollcallv1.Answer
		for i := range 120 {
			answers = append(answers, w.ask(alertCommand("lead", fmt.Sprintf("word %d.", i))))
			<-time.After(time.Duration(7+13*(i%11)) * time.Millisecond)
			if i == 60 {
				w.do(interruptCommand("lead")) // what was read and not answered is unread again
			}
		}
		for _, a := range answers {
			if r := w.heard(a).GetRefusal(); r != nil {
				t.Errorf("refused: %v", r)
			}
		}
		s := w.quiet()
		if len(s.Lead().Unread) > 0 {
			t.Errorf("%d messages are left unread", len(s.Lead().Unread))
		}
		if n := shownIsConsumed(t, w); n < 15 {
			t.Errorf("only %d requests", n)
		}
		justified(t, w.events(), len(w.brain.record()))
	})
}

// slow takes a while for every append.
type slow struct{ eventstore.Store }

func (s *slow) Append(ctx context.Context, k domain.Key, after eventstore.Position, c *rollcallv1.Commit) (eventstore.Recorded, error) {
	<-time.After(100 * time.Millisecond)
	r, err := s.Store.Append(ctx, k, after, c)
	<-time.After(100 * time.Millisecond)
	return r, err
}

var shownID = regexp.MustCompile(`<message id=\\"(msg\d+)\\"`)

// shownIsConsumed holds every request against the mail that the log consumed for
// it, and gives their number.
func shownIsConsumed(t *testing.T, w *world) (requests int) {
	t.Helper()
	type step struct {
		run  string
		step uint32
	}
	framed := map[string]bool{}
	want := map[step][][]string{}
	var read []string
	for _, e := range w.events() {
		if m := e.GetMessageDelivered(); m.GetKind() == rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT {
			framed[m.GetMessage()] = true
		}
		for _, r := range slices.Concat(e.GetRunStarted().GetConsumed(), e.GetMessagesConsumed().GetMessages()) {
			if framed[r.GetMessage()] {
				read = append(read, r.GetMessage())
			}
		}
		for _, r := range e.GetMessagesReturned().GetMessages() {
			read = slices.DeleteFunc(read, func(id string) bool { return id == r.GetMessage() })
		}
		if c := e.GetModelCallStarted(); c != nil {
			at := step{c.GetRun(), c.GetStep()}
			want[at] = append(want[at], slices.Clone(read))
		}
	}
	for _, a := range w.brain.record() {
		at := step{a.from.Run, a.from.Step}
		if len(want[at]) == 0 {
			t.Errorf("%v was called, and never begun", at)
			continue
		}
		var shown []string
		for _, m := range shownID.FindAllStringSubmatch(a.body, -1) {
			shown = append(shown, m[1])
		}
		if !slices.Equal(shown, want[at][0]) {
			t.Errorf("%v shows\n%v, consumed were\n%v", at, shown, want[at][0])
		}
		want[at] = want[at][1:]
		requests++
	}
	return requests
}

// Elsewhere a step read a session that did not yet show the answer before it.
// Here the next word is sent before the answer to the last one is stored, a
// thousand times, or ten thousand with ROLLCALL_SOAK: every turn is shown the
// whole conversation up to it.
func TestB49FollowUpSeesTheAnswer(t *testing.T) {
	conversations, rounds := 100, 10
	if os.Getenv("ROLLCALL_SOAK") != "" {
		conversations, rounds = 250, 40
	}
	word := regexp.MustCompile(`word (\d+)\.$`)
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, func(_ context.Context, from model.Caller, r request) (model.Reply, error) {
			last := r.Messages[len(r.Messages)-1]
			found := word.FindStringSubmatch(last.Content)
			if found == nil {
				t.Errorf("the last message is %q", last.Content)
				return say("?"), nil
			}
			n := 0
			fmt.Sscan(found[1], &n)
			if want := 2*n + 2; len(r.Messages) != want {
				t.Errorf("turn %d is shown %d messages, want %d", n, len(r.Messages), want)
			} else if n > 0 && r.Messages[2*n].Content != fmt.Sprintf("echo %d", n-1) {
				t.Errorf("turn %d is shown %q as the answer before it", n, r.Messages[2*n].Content)
			}
			if n+1 < rounds {
				next := post("lead", fmt.Sprintf("word %d.", n+1), rollcallv1.MailMode_MAIL_MODE_QUEUE)
				next.Id = fmt.Sprintf("word-%d", n+1)
				w.publishTo(from.Key, next)
			}
			return say(fmt.Sprintf("echo %d", n)), nil
		})
		n, _ := w.node()
		defer w.close(n)
		opened := 0
		for i := 0; opened < conversations; i++ {
			k := domain.Key{Tenant: "main", Conversation: fmt.Sprintf("01%024d", i)}
			if k.Partition() != key.Partition() {
				continue
			}
			opened++
			cmd := openCommand("word 0.")
			cmd.GetOpenConversation().Conversation = k.Conversation
			w.publishTo(k, cmd)
		}
		for w.brain.total() < conversations*rounds || w.disk.Pending(key.Partition()) > 0 {
			before := w.brain.total()
			<-time.After(time.Minute)
			if w.brain.total() == before && w.disk.Pending(key.Partition()) > 0 {
				t.Fatalf("it stopped after %d turns", before)
			}
		}
		if got := w.brain.total(); got != conversations*rounds {
			t.Errorf("%d turns, want %d", got, conversations*rounds)
		}
	})
}

func (b *brain) total() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.calls)
}
