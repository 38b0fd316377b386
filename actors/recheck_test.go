package actors_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// moments is a store, and a model, that tell of every moment of a turn: before
// and after each step that can be seen from outside. At each they call a hook,
// in the goroutine of the step, which goes on when the hook returns.
type moments struct {
	eventstore.Store
	mu    sync.Mutex
	names []string
	// hook is called with the number of the moment, from 0.
	hook func(i int, name string)
}

func (m *moments) moment(name string) {
	m.mu.Lock()
	i := len(m.names)
	m.names = append(m.names, name)
	m.mu.Unlock()
	if m.hook != nil {
		m.hook(i, name)
	}
}

func (m *moments) Append(ctx context.Context, k domain.Key, after eventstore.Position, c *rollcallv1.Commit) (eventstore.Recorded, error) {
	m.moment(fmt.Sprintf("before version %d", c.GetVersion()))
	r, err := m.Store.Append(ctx, k, after, c)
	m.moment(fmt.Sprintf("after version %d", c.GetVersion()))
	return r, err
}

func (m *moments) At(ctx context.Context, k domain.Key, versions []uint64) (map[uint64]*rollcallv1.Commit, error) {
	m.moment("before the request is built")
	return m.Store.At(ctx, k, versions)
}

func (m *moments) PutBlob(ctx context.Context, k domain.Key, data []byte) (*rollcallv1.Blob, error) {
	m.moment("before a blob")
	b, err := m.Store.PutBlob(ctx, k, data)
	m.moment("after a blob")
	return b, err
}

func (m *moments) Receive(ctx context.Context, l eventstore.Lease) (eventstore.Receiver, error) {
	r, err := m.Store.Receive(ctx, l)
	return &momentReceiver{r, m}, err
}

type momentReceiver struct {
	eventstore.Receiver
	m *moments
}

func (r *momentReceiver) Next(ctx context.Context) (eventstore.Delivery, error) {
	d, err := r.Receiver.Next(ctx)
	return &momentDelivery{d, r.m}, err
}

type momentDelivery struct {
	eventstore.Delivery
	m *moments
}

func (d *momentDelivery) Ack(ctx context.Context) error {
	d.m.moment("before an acknowledgement")
	err := d.Delivery.Ack(ctx)
	d.m.moment("after an acknowledgement")
	return err
}

// late is what arrives in the turn, in the ways that mail can.
type late struct {
	name string
	kind rollcallv1.MailKind
	mode rollcallv1.MailMode
	to   string
}

var latecomers = []late{
	{"an interruption", rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, rollcallv1.MailMode_MAIL_MODE_UNSPECIFIED, "lead"},
	{"a word for the next step", rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, rollcallv1.MailMode_MAIL_MODE_STEER, "lead"},
	{"a word for the next turn", rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, rollcallv1.MailMode_MAIL_MODE_QUEUE, "lead"},
	{"an alert", rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT, rollcallv1.MailMode_MAIL_MODE_UNSPECIFIED, "lead"},
	{"a word to a member", rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, rollcallv1.MailMode_MAIL_MODE_UNSPECIFIED, "m1"},
}

const lateWord = "have you heard this?"

// turn plays one turn of the Lead, with a tool between its two steps, and one of
// Ana beside it. At the chosen moments a late message is published; with
// settled, what it sets going comes to rest before the step of that moment goes
// on, without it they run into each other.
func turn(t *testing.T, l late, at []int, settled bool) []string {
	w := newWorld(t, func(_ context.Context, from model.Caller, r request) (model.Reply, error) {
		if r.called("file_write") == 0 {
			return calls(call("file_write", fmt.Sprintf(`{"path":"a.txt","content":%q}`, from.Member))), nil
		}
		return say("done"), nil
	})
	think, m := w.brain.think, &moments{Store: w.disk}
	w.brain.think = func(ctx context.Context, from model.Caller, r request) (model.Reply, error) {
		m.moment("the call of " + from.Member)
		reply, err := think(ctx, from, r)
		m.moment("the answer to " + from.Member)
		return reply, err
	}
	var waiting sync.Mutex // synctest.Wait is one goroutine's at a time
	m.hook = func(i int, name string) {
		for n, moment := range at {
			if moment != i {
				continue
			}
			cmd := post(l.to, fmt.Sprintf("%s %d", lateWord, n), l.mode)
			cmd.GetPostMessage().Kind = l.kind
			cmd.Id = fmt.Sprint("late-", n)
			if err := w.publish(w.disk, cmd, ""); err != nil {
				t.Error(err)
			}
			if settled && waiting.TryLock() {
				<-time.After(time.Millisecond) // all that can go on does, before time does
				waiting.Unlock()
			}
		}
	}
	n := w.on(m)
	defer w.close(n)
	open := openCommand("go")
	open.GetOpenConversation().Members = []*rollcallv1.MemberSpec{{Name: "Ana", Brief: "go too"}}
	began := time.Now()
	w.do(open)
	s := w.quiet()
	if took := time.Since(began); took > time.Minute {
		t.Errorf("a message was heard only after %s: it had to come again", took)
	}
	<-time.After(time.Minute) // nothing comes later
	m.mu.Lock()
	names := m.names
	m.mu.Unlock()
	for n, moment := range at {
		if moment < len(names) {
			heard(t, w, s, fmt.Sprintf("%s %d", lateWord, n), l.to, names[moment])
		}
	}
	justified(t, w.events(), len(w.brain.record()))
	once(t, w.events())
	return names
}

// heard: the message is delivered once, consumed once and for good, and the
// model was shown it; who was spoken to rests.
func heard(t *testing.T, w *world, s *domain.State, text, to, moment string) {
	t.Helper()
	id, consumed, returned := "", 0, 0
	refs := func(all []*rollcallv1.MessageRef) (n int) {
		for _, r := range all {
			if r.GetMessage() == id {
				n++
			}
		}
		return n
	}
	for _, e := range w.events() {
		if d := e.GetMessageDelivered(); d.GetBody().GetText() == text {
			if id != "" {
				t.Errorf("%s: delivered twice", moment)
			}
			id = d.GetMessage()
		}
		if id != "" {
			consumed += refs(e.GetRunStarted().GetConsumed()) + refs(e.GetMessagesConsumed().GetMessages())
			returned += refs(e.GetMessagesReturned().GetMessages())
		}
	}
	shown := false
	for _, c := range w.brain.record() {
		shown = shown || strings.Contains(c.body, text)
	}
	m := s.Member(to)
	if id == "" || consumed != returned+1 || !shown || len(m.Unread) > 0 || m.Run != nil {
		t.Errorf("%s: message %q was consumed %d times and returned %d times, shown %v, %d unread\n%s", moment, id, consumed, returned, shown, len(m.Unread), w.story())
	}
}

// mailbox-recheck: a message that arrives at any moment of a turn, before and
// after each of its steps, is never missed: each moment, in each of the ways a
// message can come, with what it sets going running into the turn or going
// before it; and two messages at every pair of moments of a turn's last step.
func TestMailboxRecheck(t *testing.T) {
	var names []string
	synctest.Test(t, func(t *testing.T) { names = turn(t, latecomers[0], nil, false) })
	if len(names) < 30 {
		t.Fatalf("only %d moments, want at least 30: the turn or the counting has shrunk", len(names))
	}
	var played, met atomic.Int64
	play := func(t *testing.T, l late, settled bool, at ...int) {
		played.Add(1)
		synctest.Test(t, func(t *testing.T) {
			if crossed := turn(t, l, at, settled); at[len(at)-1] < len(crossed) {
				met.Add(1)
			}
		})
	}
	t.Run("all", func(t *testing.T) {
		for _, l := range latecomers {
			t.Run(l.name, func(t *testing.T) {
				t.Parallel()
				for i := range names {
					play(t, l, true, i)
					play(t, l, false, i)
				}
			})
		}
		t.Run("two at a time", func(t *testing.T) {
			t.Parallel()
			for i := len(names) - lastMoments; i < len(names); i++ {
				for j := i; j < len(names); j++ {
					play(t, latecomers[2], (i+j)%2 == 0, i, j)
				}
			}
		})
	})
	want := int64(len(names)*len(latecomers)*2 + lastMoments*(lastMoments+1)/2)
	t.Logf("mailbox-recheck: %d moments, %d of %d interleavings met: %q", len(names), met.Load(), want, names)
	if played.Load() != want || met.Load() < want*9/10 {
		t.Errorf("%d of %d interleavings were met, want %d", met.Load(), played.Load(), want)
	}
}

// lastMoments of a turn are those at which two messages come.
const lastMoments = 8
