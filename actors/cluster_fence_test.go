package actors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/faulty"
	"github.com/rollcall-dev/rollcall/internal/model"
	"github.com/rollcall-dev/rollcall/internal/tool"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// press is a slow tool that knows when it was at work.
type press struct {
	idempotent bool
	// stubborn: it does not heed that it is stopped.
	stubborn bool

	mu   sync.Mutex
	work []pressing
}

type pressing struct {
	call         string
	began, ended time.Time
}

// pressTime is several times as long as a lease lasts.
const pressTime = 4*eventstore.LeaseTTL + time.Second

func (p *press) Definition() *rollcallv1.ToolDefinition {
	return &rollcallv1.ToolDefinition{Name: "press", Description: "presses", Schema: `{"type":"object"}`, Idempotent: p.idempotent}
}

func (p *press) Call(ctx context.Context, plan domain.ToolPlan, _ json.RawMessage) (tool.Outcome, error) {
	p.mu.Lock()
	n := len(p.work)
	p.work = append(p.work, pressing{call: plan.Call.GetId(), began: time.Now()})
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.work[n].ended = time.Now()
		p.mu.Unlock()
	}()
	stop := ctx.Done()
	if p.stubborn {
		stop = nil
	}
	select {
	case <-time.After(pressTime):
		return tool.Outcome{Output: fmt.Sprint("press ", n+1)}, nil
	case <-stop:
		return tool.Outcome{}, ctx.Err()
	}
}

func (p *press) done() []pressing {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]pressing(nil), p.work...)
}

// blocked are the ways in which a node cannot keep its lease while it works.
var blocked = map[string]func(p *peer) func(context.Context, eventstore.Lease) error{
	"renewals hang": func(*peer) func(context.Context, eventstore.Lease) error { return hang },
	"renewals fail": func(*peer) func(context.Context, eventstore.Lease) error {
		return func(context.Context, eventstore.Lease) error { return faulty.ErrFault }
	},
	"renewals are done and not answered": func(p *peer) func(context.Context, eventstore.Lease) error {
		left := 3
		return func(ctx context.Context, l eventstore.Lease) error {
			if left--; left >= 0 {
				_ = p.link.Store.Renew(ctx, l)
			}
			<-ctx.Done()
			return ctx.Err()
		}
	},
}

// Elsewhere a call that lasted longer than a lease was executed again while it
// still ran. Here a node cannot renew its lease while it presses for four lease
// times: its call has ended before another node takes the work, one that cannot be
// repeated is not, and what comes of it at the node that lost it leaves no trace.
func TestB21LongCallOnce(t *testing.T) {
	for how, block := range blocked {
		for _, p := range []*press{{}, {idempotent: true}, {stubborn: true}, {idempotent: true, stubborn: true}} {
			t.Run(fmt.Sprintf("%s, idempotent %v, stubborn %v", how, p.idempotent, p.stubborn), func(t *testing.T) {
				p := &press{idempotent: p.idempotent, stubborn: p.stubborn}
				synctest.Test(t, func(t *testing.T) { longCall(t, p, block) })
			})
		}
	}
}

func longCall(t *testing.T, p *press, block func(p *peer) func(context.Context, eventstore.Lease) error) {
	c := newCluster(t, strict(t, func(_ context.Context, _ model.Caller, r request) (model.Reply, error) {
		if r.called("press") == 0 {
			return calls(call("press", `{}`)), nil
		}
		return say("It is pressed."), nil
	}))
	c.extra = []tool.Tool{p}
	first, second := c.pair()
	defer second.down()
	defer first.down()
	c.tell(openCommand("press"))
	c.until("it presses", func(*domain.State) bool { return len(p.done()) == 1 })
	first.link.cut(block(first))
	c.until("the other has it", func(*domain.State) bool { return c.owner() == second.name })
	if w := p.done()[0]; !p.stubborn && (w.ended.IsZero() || !w.ended.Before(second.link.claimedAt())) {
		t.Errorf("the call of the node that could not renew ended at %v, the other claimed at %v", w.ended, second.link.claimedAt())
	}
	c.quiet()
	<-time.After(2 * pressTime) // whatever the first still does comes to its end
	first.link.mend()
	version := c.state().Version
	<-time.After(2 * time.Minute)
	work := p.done()
	want, output := 1, "Outcome unknown"
	if p.idempotent {
		want, output = 2, "press 2"
	}
	if len(work) != want || work[0].call != work[len(work)-1].call {
		t.Fatalf("it was pressed as %v\n%s", work, c.story())
	}
	if !p.stubborn && want == 2 && work[1].began.Before(work[0].ended) {
		t.Error("both pressed at a time")
	}
	shown := lastRequest(t, c.world, "Lead")
	if got := shown[len(shown)-1].Content; !strings.HasPrefix(got, output) {
		t.Errorf("the press came to %q, want %q", got, output)
	}
	if got := count(c.events(), (*rollcallv1.Event).GetToolCallFinished, func(f *rollcallv1.ToolCallFinished) bool { return f != nil }); got != 1 {
		t.Errorf("%d outcomes\n%s", got, c.story())
	}
	if after := c.state().Version; after != version {
		t.Errorf("afterwards the log went from version %d to %d\n%s", version, after, c.story())
	}
	c.fenced(t)
	once(t, c.events())
	justified(t, c.events(), len(c.brain.record()))
	checkCalls(t, c.world, c.events(), 1)
	if first, second := c.called(first.name), c.called(second.name); first != 1 || second != 1 {
		t.Errorf("the first node made %d model calls and the second %d", first, second)
	}
}

// The same with a model that answers after four lease times: the call of the node
// that cannot renew is given up before another asks again, and a model that does
// not heed that is not heard.
func TestB21LongModelCallOnce(t *testing.T) {
	for how, block := range blocked {
		for _, stubborn := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stubborn %v", how, stubborn), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCluster(t, func(ctx context.Context, _ model.Caller, _ request) (model.Reply, error) {
						stop := ctx.Done()
						if stubborn {
							stop = nil
						}
						select {
						case <-time.After(pressTime):
							return say("answered"), nil
						case <-stop:
							return model.Reply{}, ctx.Err()
						}
					})
					first, second := c.pair()
					defer second.down()
					defer first.down()
					c.tell(openCommand("think"))
					c.until("the call", func(*domain.State) bool { return c.called(first.name) == 1 })
					first.link.cut(block(first))
					c.until("the other asks", func(*domain.State) bool { return c.called(second.name) == 1 })
					c.quiet()
					<-time.After(2 * pressTime)
					first.link.mend()
					<-time.After(time.Minute)
					if !stubborn {
						if end := c.asked()[0].end; !end.Before(second.link.claimedAt()) {
							t.Errorf("the call of the node that could not renew ended at %v, the other claimed at %v", end, second.link.claimedAt())
						}
						c.apart(t)
					}
					c.fenced(t)
					once(t, c.events())
					if n, r := len(c.brain.record()), resumed(c.events()); n != 2 || r != 1 {
						t.Errorf("%d calls, taken up %d times\n%s", n, r, c.story())
					}
				})
			})
		}
	}
}

// deludedWays are what a node that goes on to believe in its lease is asked, in
// which order with the node that holds it, and how often it may ask the model.
var deludedWays = []struct {
	name string
	// busy: it is in the middle of a model call when the other takes over.
	busy bool
	give func(c *cluster, first *peer, cmd *rollcallv1.Command)
	may  int
}{
	{"the holder first", false, func(c *cluster, first *peer, cmd *rollcallv1.Command) {
		c.tell(cmd)
		<-time.After(time.Second)
		first.haunt(cmd)
	}, 0},
	{"the deluded first", false, func(c *cluster, first *peer, cmd *rollcallv1.Command) {
		first.haunt(cmd)
		<-time.After(time.Second)
		c.tell(cmd)
	}, 1},
	{"both at once", false, func(c *cluster, first *peer, cmd *rollcallv1.Command) {
		c.tell(cmd)
		first.haunt(cmd)
	}, 1},
	{"both at once, while it works", true, func(c *cluster, first *peer, cmd *rollcallv1.Command) {
		c.tell(cmd)
		first.haunt(cmd)
	}, 0},
}

// haunt gives a deluded node a message that the inbox does not give it.
func (p *peer) haunt(cmd *rollcallv1.Command) {
	data, err := proto.Marshal(cmd)
	if err != nil {
		p.c.t.Fatal(err)
	}
	p.link.ghosts <- eventstore.Envelope{Key: key, To: "_", Data: data, Header: map[string]string{
		eventstore.HeaderContentType: "application/protobuf", eventstore.HeaderID: cmd.GetId(),
	}}
}

// Elsewhere two servers ran one session, and their events were mixed. Here a node
// goes on to believe in a lease that another has taken: it is told that its
// renewals are good, it sees itself as owner, it gets the messages. Whoever is
// first by the log wins; the deluded one stops itself, asks no model any more, and
// each message is read once.
func TestB23OneOfTwoActivations(t *testing.T) {
	for _, way := range deludedWays {
		for _, late := range []time.Duration{0, 300 * time.Millisecond} {
			t.Run(fmt.Sprintf("%s, commits take %v", way.name, late), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCluster(t, func(ctx context.Context, _ model.Caller, r request) (model.Reply, error) {
						takes := 3 * time.Second
						if r.has("word 0.") && !r.has("word 1.") {
							takes = pressTime
						}
						select {
						case <-time.After(takes):
							return say("I heard."), nil
						case <-ctx.Done():
							return model.Reply{}, ctx.Err()
						}
					})
					first, second := c.pair()
					defer second.down()
					defer first.down()
					c.tell(openCommand("listen"))
					c.quiet()
					first.link.delude(t)
					if way.busy {
						c.tell(post("lead", "word 0.", rollcallv1.MailMode_MAIL_MODE_QUEUE))
						// The lease lapses while the call goes on.
						c.until("it is asked", func(*domain.State) bool { return c.called(first.name) == 2 })
					}
					if err := c.disk.Drain(t.Context(), first.name, true); err != nil { // it does not see that
						t.Fatal(err)
					}
					c.owns(second.name)
					before := c.called(first.name)
					first.link.set(func(l *link) { l.late = late })
					second.link.set(func(l *link) { l.late = late })
					const words = 6
					for i := range words {
						cmd := post("lead", fmt.Sprintf("word %d.", i+1), rollcallv1.MailMode_MAIL_MODE_QUEUE)
						cmd.Id = fmt.Sprint("word-", i+1)
						way.give(c, first, cmd)
						<-time.After(time.Second)
					}
					s := c.quiet()
					<-time.After(time.Minute)
					if got := c.called(first.name) - before; got > way.may {
						t.Errorf("the deluded node asked the model %d times, it may %d\n%s", got, way.may, c.story())
					}
					story := c.story()
					for i := range words {
						if n := strings.Count(story, fmt.Sprintf(`text:"word %d."`, i+1)); n != 1 {
							t.Errorf("word %d is delivered %d times", i+1, n)
						}
					}
					if len(s.Lead().Unread) > 0 || c.called(second.name) == 0 {
						t.Errorf("%d are unread, the holder asked the model %d times", len(s.Lead().Unread), c.called(second.name))
					}
					c.fenced(t)
					once(t, c.events())
					justified(t, c.events(), len(c.brain.record()))
					checkCalls(t, c.world, c.events(), 1)
				})
			})
		}
	}
}
