package actors_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/actors"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// crowd is many conversations, in all partitions.
func crowd(n int) (keys []domain.Key) {
	for i := range n {
		keys = append(keys, domain.Key{Tenant: "main", Conversation: fmt.Sprintf("01jcr%021d", i)})
	}
	return keys
}

// Elsewhere one identity was active twice while nodes came and went. Here three
// nodes are restarted one after the other, in good order or killed, under two
// hundred conversations of four steps each. At no time are two nodes at one
// member, the roll has each member once, no step is done twice, and each was asked
// for once, and once more for each time its node let go of it.
func TestB59RollingRestart(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %v", killed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { rollingRestart(t, killed) })
		})
	}
}

func rollingRestart(t *testing.T, killed bool) {
	const steps = 4
	keys := crowd(200)
	if killed {
		keys = crowd(60)
	}
	share := len(keys) / 6
	c := newCluster(t, func(ctx context.Context, from model.Caller, r request) (model.Reply, error) {
		// Each takes its own time, so that a stop meets runs in every phase.
		takes := time.Duration(1+int(from.Key.Conversation[25]-'0')) * 700 * time.Millisecond
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return model.Reply{}, ctx.Err()
		}
		if r.called("task_create") < steps-1 {
			return calls(call("task_create", fmt.Sprintf(`{"title":"step %d","description":"x","owner":"user"}`, r.called("task_create")))), nil
		}
		return say("done"), nil
	})
	c.whole = true
	c.change = func(cfg *actors.Config) { cfg.MaxRuns = 200 }
	names := []string{"n1", "n2", "n3"}
	nodes := map[string]*peer{}
	for _, name := range names {
		nodes[name] = c.up(name)
	}
	defer func() {
		for _, n := range nodes {
			n.down()
		}
	}()
	open := func(keys []domain.Key) {
		for _, k := range keys {
			cmd := openCommand("go")
			cmd.Id = "open-" + k.Conversation
			cmd.GetOpenConversation().Conversation = k.Conversation
			c.publishTo(k, cmd)
		}
	}
	open(keys[:2*share])
	<-time.After(2 * time.Second)
	lost := 0
	for i, name := range names {
		if killed {
			lost += len(c.at(name))
			nodes[name].store.Crash()
		}
		nodes[name].down()
		open(keys[(2+i)*share : (3+i)*share])
		<-time.After(time.Second)
		nodes[name] = c.up(name)
		<-time.After(3 * time.Second)
	}
	open(keys[5*share:])
	c.settle(keys)
	// Everybody is somewhere, once.
	where := map[string]string{}
	for name, n := range nodes {
		present, err := n.Roll(t.Context(), domain.Key{Tenant: "main"})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range present {
			if at := where[p.Conversation]; at != "" {
				t.Errorf("%s is at %s and at %s", p.Conversation, at, name)
			}
			where[p.Conversation] = name
		}
	}
	if len(where) != len(keys) {
		t.Errorf("%d of %d members answer", len(where), len(keys))
	}
	asked, suspended, of := 0, 0, map[domain.Key]int{}
	for _, s := range c.asked() {
		of[s.from.Key]++
	}
	for _, k := range keys {
		events, n := c.log(k), of[k]
		once(t, events)
		set := count(events, (*rollcallv1.Event).GetRunSuspended, func(s *rollcallv1.RunSuspended) bool { return s != nil })
		justified(t, events, n)
		asked, suspended = asked+n, suspended+set
		if tasks := count(events, (*rollcallv1.Event).GetTaskCreated, func(k *rollcallv1.TaskCreated) bool { return k != nil }); tasks != steps-1 {
			t.Errorf("%s made %d tasks", k.Conversation, tasks)
		}
	}
	if most := steps*len(keys) + suspended + lost; asked > most {
		t.Errorf("%d model calls, with %d suspensions and %d lost: at most %d", asked, suspended, lost, most)
	}
	if killed && lost == 0 || !killed && suspended < len(keys)/4 {
		t.Errorf("it met nobody at work: %d were suspended, %d lost", suspended, lost)
	}
	c.apart(t)
	t.Logf("%d model calls for %d steps, %d suspended, %d lost", asked, steps*len(keys), suspended, lost)
}

// at is what a node is asking the model now.
func (c *cluster) at(node string) (open []span) {
	for _, s := range c.asked() {
		if s.node == node && s.end.IsZero() {
			open = append(open, s)
		}
	}
	return open
}

// log is the events of a conversation.
func (w *world) log(k domain.Key) (all []*rollcallv1.Event) {
	w.t.Helper()
	err := w.disk.Load(w.t.Context(), k, eventstore.Position{}, func(r eventstore.Recorded) error {
		all = append(all, r.Commit.GetEvents()...)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// settle waits until nothing is due in any of the conversations.
func (c *cluster) settle(keys []domain.Key) {
	c.t.Helper()
	for _, k := range keys {
		deadline := time.Now().Add(10 * time.Minute)
		for {
			s, _, err := actors.Load(c.t.Context(), c.disk, k)
			if err == nil && s.Opened && len(domain.Due(s)) == 0 {
				break
			}
			if time.Now().After(deadline) {
				c.t.Fatalf("%s does not come to rest: %v", k, err)
			}
			<-time.After(time.Second)
		}
	}
}

// ends of a node in the middle of what it was told.
var endings = map[string]func(p *peer){
	"stopped": func(p *peer) { p.down() },
	"drained": func(p *peer) { _ = p.c.disk.Drain(p.c.t.Context(), p.name, true) },
	"killed":  func(p *peer) { p.store.Crash(); p.down() },
}

// Elsewhere an agent's host acknowledged messages while it shut down, and they
// were lost; and what was sent to a dead node vanished. Here fifty messages for
// five conversations are on their way through three nodes, and one after another
// ends, until one is left. Each message is in the log once, or its sender was told
// that it is not.
func TestB61StopWithFiftyInFlight(t *testing.T) {
	for how, end := range endings {
		for _, late := range []time.Duration{0, 30 * time.Millisecond} {
			t.Run(fmt.Sprintf("%s, commits take %v", how, late), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { fiftyInFlight(t, late, end) })
			})
		}
	}
}

func fiftyInFlight(t *testing.T, late time.Duration, end func(p *peer)) {
	keys := crowd(5)
	c := newCluster(t, func(ctx context.Context, _ model.Caller, _ request) (model.Reply, error) {
		select {
		case <-time.After(50 * time.Millisecond):
			return say("ok"), nil
		case <-ctx.Done():
			return model.Reply{}, ctx.Err()
		}
	})
	c.whole = true
	nodes := []*peer{c.up("n1"), c.up("n2"), c.up("n3")}
	for _, n := range nodes {
		defer n.down()
		n.link.set(func(l *link) { l.late = late })
	}
	for _, k := range keys {
		cmd := openCommand("go")
		cmd.GetOpenConversation().Conversation = k.Conversation
		c.publishTo(k, cmd)
	}
	c.settle(keys)
	type sent struct {
		id     string
		key    domain.Key
		answer chan *rollcallv1.Answer
		failed error
	}
	var all []*sent
	for i := range 50 {
		one := &sent{id: fmt.Sprint("word-", i), key: keys[i%len(keys)], answer: make(chan *rollcallv1.Answer, 1)}
		cmd := post("lead", one.id+".", rollcallv1.MailMode_MAIL_MODE_QUEUE)
		cmd.Id = one.id
		data, err := proto.Marshal(cmd)
		if err != nil {
			t.Fatal(err)
		}
		c.world.mu.Lock()
		c.answers[one.id] = one.answer
		c.world.mu.Unlock()
		// Through each of the nodes, also those that are ending.
		_, _, one.failed = nodes[i%len(nodes)].store.Publish(t.Context(), eventstore.Envelope{Key: one.key, To: "_", Data: data, Header: map[string]string{
			eventstore.HeaderContentType: "application/protobuf", eventstore.HeaderID: one.id, eventstore.HeaderReply: one.id,
		}})
		all = append(all, one)
		switch i {
		case 20, 40:
			<-time.After(late + time.Millisecond)
			end(nodes[i/20-1])
		case 49:
		default:
			if i%10 == 0 {
				<-time.After(late)
			}
		}
	}
	c.settle(keys)
	c.until("the inbox is empty", func(*domain.State) bool {
		left := 0
		for p := range domain.Partitions {
			left += c.disk.Pending(p)
		}
		return left == 0
	})
	stored := 0
	for _, one := range all {
		in := count(c.log(one.key), (*rollcallv1.Event).GetMessageDelivered, func(m *rollcallv1.MessageDelivered) bool {
			return m.GetBody().GetText() == one.id+"."
		})
		told := ""
		select {
		case a := <-one.answer:
			told = "yes"
			if a.GetRefusal() != nil {
				told = a.GetRefusal().GetCode()
			}
		default:
		}
		stored += in
		switch {
		case in > 1, in == 0 && one.failed == nil, told != "" && (told == "yes") != (in == 1):
			t.Errorf("%s is %d times in the log; to send it gave %v, the answer is %q", one.id, in, one.failed, told)
		}
	}
	if stored < 30 {
		t.Errorf("only %d of %d messages were taken", stored, len(all))
	}
	for _, k := range keys {
		events := c.log(k)
		once(t, events)
		var n int
		for _, s := range c.asked() {
			if s.from.Key == k {
				n++
			}
		}
		justified(t, events, n)
		if s, _, err := actors.Load(t.Context(), c.disk, k); err != nil || len(s.Lead().Unread) > 0 {
			t.Errorf("%d messages of %s are unread, %v", len(s.Lead().Unread), k, err)
		}
	}
	if letters, err := c.disk.DeadLetters(t.Context(), 10); err != nil || len(letters) > 0 {
		t.Errorf("dead letters: %v, %v", letters, err)
	}
	if strings.Contains(c.owner(), "n1") {
		t.Error("the first that ended still owns a partition")
	}
}
