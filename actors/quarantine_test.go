package actors_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/memory"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// ailing reads one conversation's log from where it is damaged, until it is
// mended. Everything else is sound.
type ailing struct {
	eventstore.Store
	read   func(ctx context.Context, after eventstore.Position, fn func(eventstore.Recorded) error) error
	mended atomic.Bool
}

func (a *ailing) Load(ctx context.Context, k domain.Key, after eventstore.Position, fn func(eventstore.Recorded) error) error {
	if k == key && !a.mended.Load() {
		return a.read(ctx, after, fn)
	}
	return a.Store.Load(ctx, k, after, fn)
}

// Follow fails, so that every conversation is loaded by itself.
func (*ailing) Follow(context.Context, uint64, func(eventstore.Recorded) error, func(uint64, string, error)) error {
	return errors.New("not to be read whole")
}

// damages are the ways in which a conversation cannot be loaded. Each makes of
// its raw commits those that are read.
var damages = []struct {
	name   string
	err    error
	damage func(raw [][]byte) [][]byte
}{
	{"a gap", domain.ErrGap, func(raw [][]byte) [][]byte { return slices.Delete(raw, 1, 2) }},
	{"a flipped bit", domain.ErrHash, func(raw [][]byte) [][]byte { raw[1][len(raw[1])/2] ^= 1; return raw }},
	{"no commit at all", domain.ErrHash, func(raw [][]byte) [][]byte { raw[1] = []byte("what is this?"); return raw }},
	{"a forged commit", domain.ErrHash, func(raw [][]byte) [][]byte {
		c, err := domain.Unseal(raw[1])
		if err != nil {
			panic(err)
		}
		c.Hash, c.Node = nil, "somebody"
		if raw[1], err = domain.Seal(c); err != nil {
			panic(err)
		}
		return raw
	}},
	{"a crash of the fold", nil, nil},
}

// quarantine: whatever keeps a conversation from being loaded, it is set aside,
// its messages are held, the others of its partition go on, and a retry
// re-drives it when it is mended, and not before.
func TestQuarantine(t *testing.T) {
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, func(_ context.Context, _ model.Caller, r request) (model.Reply, error) { return say("hello"), nil })
				n, _ := w.node()
				w.open("hi")
				w.quiet()
				w.do(post("lead", "and again hi", 0))
				w.quiet()
				other := neighbour()
				w.neighbour(t, other, openIn(other))
				w.close(n)
				store := &ailing{Store: w.disk, read: broken(t, w, d.damage)}
				n = w.on(store)
				defer func() { w.close(n) }()
				setAside := func() {
					t.Helper()
					w.until("set aside", func(*domain.State) bool { return len(n.Quarantined()) == 1 })
					why := n.Quarantined()[key]
					if d.err != nil && !errors.Is(why, d.err) || d.err == nil && !strings.Contains(why.Error(), "crashed: the fold is broken") {
						t.Errorf("set aside because %v", why)
					}
				}
				setAside()
				version, calls := w.state().Version, w.brain.count("Lead")
				var answers []<-chan *rollcallv1.Answer
				tell := func(text string) {
					answers = append(answers, w.ask(post("lead", text, rollcallv1.MailMode_MAIL_MODE_QUEUE)))
				}
				held := func() {
					t.Helper()
					<-time.After(3 * eventstore.AckWait)
					synctest.Wait()
					if got := w.disk.Pending(key.Partition()); got != len(answers) {
						t.Fatalf("%d of %d messages are held", got, len(answers))
					}
					for i, a := range answers {
						if len(a) > 0 {
							t.Errorf("message %d is answered: %v", i, <-a)
						}
					}
					if _, quiet := n.Quiet(); !quiet {
						t.Error("a conversation that is set aside keeps the node busy")
					}
				}
				tell("word 0.")
				tell("word 1.")
				held()
				w.neighbour(t, other, post("lead", "and you?", 0))
				if got, err := n.Roll(t.Context(), domain.Key{Tenant: key.Tenant}); err != nil || len(got) != 1 || got[0].Conversation != other.Conversation {
					t.Errorf("the roll: %v, %v", got, err)
				}
				// A retry in vain, and a restart: it stays as it was.
				answers = append(answers, w.ask(retryLead()))
				setAside()
				held()
				w.close(n)
				n = w.on(store)
				setAside()
				tell("word 2.")
				held()
				w.neighbour(t, other, post("lead", "and now?", 0))
				if w.state().Version != version || w.brain.count("Lead") != calls+2 { // the neighbour's
					t.Errorf("it went on while it was set aside\n%s", w.story())
				}

				store.mended.Store(true)
				held() // nothing happens by itself
				w.do(retryLead())
				for i, a := range answers {
					if r := (<-a).GetRefusal(); r != nil {
						t.Errorf("message %d, after the retry: %v", i, r)
					}
				}
				w.quiet()
				if len(n.Quarantined()) != 0 {
					t.Error(n.Quarantined())
				}
				var words []string
				for _, e := range w.events() {
					if text := e.GetMessageDelivered().GetBody().GetText(); strings.HasPrefix(text, "word") {
						words = append(words, text)
					}
				}
				if want := []string{"word 0.", "word 1.", "word 2."}; !slices.Equal(words, want) {
					t.Errorf("delivered %v", words)
				}
				justified(t, w.events(), w.brain.count("Lead")-3) // the neighbour's
			})
		})
	}
}

// broken reads the conversation as it is after the damage.
func broken(t *testing.T, w *world, damage func([][]byte) [][]byte) func(context.Context, eventstore.Position, func(eventstore.Recorded) error) error {
	t.Helper()
	if damage == nil {
		return func(context.Context, eventstore.Position, func(eventstore.Recorded) error) error {
			panic("the fold is broken")
		}
	}
	var raw [][]byte
	err := w.disk.Load(t.Context(), key, eventstore.Position{}, func(r eventstore.Recorded) error {
		raw = append(raw, bytes.Clone(r.Raw))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	log := memory.New()
	t.Cleanup(log.Close)
	for _, data := range damage(raw) {
		if _, err := log.Inject(t.Context(), key, data, true); err != nil {
			t.Fatal(err)
		}
	}
	return func(ctx context.Context, after eventstore.Position, fn func(eventstore.Recorded) error) error {
		return log.Load(ctx, key, after, fn)
	}
}

// neighbour is another conversation of the same partition.
func neighbour() domain.Key {
	for i := 0; ; i++ {
		k := domain.Key{Tenant: key.Tenant, Conversation: fmt.Sprintf("c%d", i)}
		if k.Partition() == key.Partition() {
			return k
		}
	}
}

// neighbour brings another conversation a command, and waits until it rests.
func (w *world) neighbour(t *testing.T, k domain.Key, cmd *rollcallv1.Command) {
	t.Helper()
	before := w.disk.Pending(k.Partition())
	w.publishTo(k, cmd)
	for deadline := time.Now().Add(time.Minute); ; <-time.After(100 * time.Millisecond) {
		synctest.Wait()
		if w.disk.Pending(k.Partition()) == before {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the neighbour does not go on")
		}
	}
}

func openIn(k domain.Key) *rollcallv1.Command {
	cmd := openCommand("hi")
	cmd.GetOpenConversation().Conversation = k.Conversation
	return cmd
}

func retryLead() *rollcallv1.Command {
	return &rollcallv1.Command{Kind: &rollcallv1.Command_RetryMember{RetryMember: &rollcallv1.RetryMember{}}}
}
