package chaos_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// workload is what clients do while things break: some open conversations whose
// teams work by themselves, some publish notes as any NATS client can. Each keeps
// a record of what it was promised.
type workload struct {
	w  *world
	wg sync.WaitGroup

	mu    sync.Mutex
	told  []said
	kites []string
	// dragons are teams with assignments.
	dragons []string
	notes   []string
}

func (l *workload) tell(s said) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, s)
}

// begin starts the clients. They take up nothing new when stop ends, and finish
// what they have begun, however long that takes.
func (w *world) begin(stop context.Context, seed uint64, flyers, noters int) *workload {
	l := &workload{w: w}
	for i := range flyers {
		name := fmt.Sprint("flyer", i+1)
		w.b.clients = append(w.b.clients, name)
		c, rng := w.client(name), rand.New(rand.NewPCG(seed, uint64(100+i)))
		l.wg.Go(func() { l.fly(stop, c, name, rng) })
	}
	for i := range noters {
		name := fmt.Sprint("noter", i+1)
		w.b.clients = append(w.b.clients, name)
		nc := w.servers.connect(name, nil)
		w.t.Cleanup(nc.Close)
		rng := rand.New(rand.NewPCG(seed, uint64(200+i)))
		l.wg.Go(func() { l.note(stop, nc, name, rng) })
	}
	return l
}

// fly opens conversations with a team, one after the other, on the contracts
// mailbox and dag in turn, and says a word to each while it works.
func (l *workload) fly(stop context.Context, c *api.Client, name string, rng *rand.Rand) {
	for n := 1; stop.Err() == nil; n++ {
		id := api.NewID()
		contract, objective, into := "mailbox", "Fly a kite.", &l.kites
		if n%2 == 0 {
			contract, objective, into = "dag", "Fly a dragon.", &l.dragons
		}
		err := l.w.openOn(l.w.ctx(), c, contract, id, fmt.Sprintf("kite %s-%d", name, n), objective)
		l.tell(said{conversation: id, acknowledged: err == nil, how: "opened by " + name})
		if l.unsaid(name+" opens a conversation", err) {
			rest(stop, time.Second)
			continue
		}
		l.mu.Lock()
		*into = append(*into, id)
		l.mu.Unlock()
		l.opened(id)
		rest(stop, between(rng, 0, 900*time.Millisecond))
		text := fmt.Sprintf("%s asks about kite %d.", name, n)
		_, err = c.Send(l.w.ctx(), id, &rollcallv1.PostMessage{Body: &rollcallv1.Body{Text: text}})
		l.tell(said{conversation: id, text: text, acknowledged: err == nil, how: "sent by the API"})
		l.unsaid(name+" sends", err)
		rest(stop, between(rng, 200*time.Millisecond, 1200*time.Millisecond))
	}
}

// unsaid reports whether a command was not acknowledged. Servers may be gone for
// longer than a client waits: then it is told honestly that nobody knows what
// became of the command. Any other error is a fault.
func (l *workload) unsaid(what string, err error) bool {
	if err != nil && !errors.Is(err, &domain.Refusal{Code: "outcome-unknown"}) {
		l.w.t.Errorf("%s: %v", what, err)
	}
	return err != nil
}

// opened waits until a conversation is there. That a command is accepted may be
// all that can be said of it for a while: it is stored, and nobody has decided it.
func (l *workload) opened(id string) {
	for l.w.ctx().Err() == nil && len(l.w.commits(id)) == 0 {
		rest(context.Background(), 50*time.Millisecond)
	}
}

// note publishes to the Lead of a conversation, on the bare subject: with an id
// until it is acknowledged, and sometimes once more; or without one, once, and
// then it may be lost if it was not acknowledged.
func (l *workload) note(stop context.Context, nc *nats.Conn, name string, rng *rand.Rand) {
	c := api.NewClient(nc, "main")
	c.Patience = 0
	id := api.NewID()
	for l.unsaid(name+" opens a conversation", l.w.open(l.w.ctx(), c, id, "notes of "+name, "Note what you are told.")) {
		l.tell(said{conversation: id, how: "opened by " + name})
		if l.w.t.Failed() {
			return
		}
		id = api.NewID()
	}
	l.mu.Lock()
	l.notes = append(l.notes, id)
	l.mu.Unlock()
	l.tell(said{conversation: id, acknowledged: true, how: "opened by " + name})
	l.opened(id)
	for n := 1; stop.Err() == nil; n++ {
		m := nats.NewMsg("rollcall.in.main." + id + ".lead")
		text := fmt.Sprintf("%s notes %d.", name, n)
		m.Data = []byte(text)
		s := said{conversation: id, text: text, how: "published without an id"}
		if rng.IntN(4) == 0 {
			s.acknowledged = publish(nc, m) == nil
		} else {
			s.how = "published under an id"
			m.Header.Set("Rollcall-Id", fmt.Sprint(name, "-", n))
			again := rng.IntN(3) // more often than need be, perhaps long after
			for !s.acknowledged || again > 0 {
				if err := publish(nc, m); err == nil {
					if s.acknowledged {
						again--
					}
					s.acknowledged = true
				} else {
					rest(context.Background(), 50*time.Millisecond)
				}
			}
		}
		l.tell(s)
		rest(stop, between(rng, 50*time.Millisecond, 600*time.Millisecond))
	}
}

// publish publishes once and waits for JetStream's acknowledgement.
func publish(nc *nats.Conn, m *nats.Msg) error {
	ctx, cancel := within(2 * time.Second)
	defer cancel()
	reply, err := nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return err
	}
	var ack struct {
		Seq   uint64 `json:"seq"`
		Error *struct {
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(reply.Data, &ack); err != nil {
		return err
	}
	if ack.Error != nil {
		return fmt.Errorf("refused: %s", ack.Error.Description)
	}
	return nil
}

// flies waits until a team is at rest with its work done.
func (l *workload) flies(id string, done func(*domain.State) bool) {
	l.w.t.Helper()
	var s *domain.State
	defer func() {
		if l.w.t.Failed() && s != nil && !(quiet(s) && done(s)) {
			l.w.t.Logf("%s at version %d (partition %d): due %v", id, s.Version, keyOf(id).Partition(), domain.Due(s))
		}
	}()
	poll(l.w.t, "the kite of "+id+" flies", func() bool {
		s = l.w.state(id)
		return quiet(s) && done(s)
	})
}

// end waits until the clients are done and every conversation has come to rest,
// with its work done.
func (l *workload) end() []said {
	l.w.t.Helper()
	l.wg.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	begun := time.Now()
	for _, id := range l.kites {
		l.flies(id, func(s *domain.State) bool { return len(s.Tasks) == 2 && len(s.OpenTasks()) == 0 })
	}
	for _, id := range l.dragons {
		l.flies(id, func(s *domain.State) bool {
			return len(s.Tasks) == 2 && len(s.OpenTasks()) == 0 && len(s.Teams) == 1 && s.ActiveTeam() == nil && s.Task("t1").Revision > 0 && s.Task("t2").Revision > 0
		})
	}
	for _, id := range l.notes {
		poll(l.w.t, "the notes of "+id+" are taken", func() bool { return quiet(l.w.state(id)) })
	}
	l.w.t.Logf("all at rest %v after everything was mended: %d kites, %d dragons", after(begun), len(l.kites), len(l.dragons))
	return l.told
}
