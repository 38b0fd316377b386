package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const fleetScript = `rules:
  - {name: note, has: [Hold on], lacks: ['"name":"file_write","arguments"'], tools: [{name: file_write, args: {path: note.txt, content: It holds.}}]}
  - {name: hold, has: [Hold on], hold: steady, text: It held.}
  - {name: hello, text: Hello.}
`

// TestFleet: three nodes on one server, and what users of other systems suffered
// when their nodes came, went and died.
func TestFleet(t *testing.T) {
	t.Parallel()
	f := newFleet(t, script(t, fleetScript), 3)
	var ids []string
	// Elsewhere the shutdown of a worker was taken for the user's stop.
	t.Run("b24-not-the-users-stop", func(t *testing.T) { ids = append(ids, f.on(t).letGo()...) })
	// Elsewhere a task had two owners.
	t.Run("b28-one-of-fifty-wins", func(t *testing.T) { ids = append(ids, f.on(t).oneOfFifty()) })
	// Elsewhere requests to a dead node vanished, and their clients hung.
	t.Run("b58-nothing-vanishes-at-a-dead-node", func(t *testing.T) { ids = append(ids, f.on(t).deadNode()...) })
	// Elsewhere messages were acknowledged while their host shut down.
	t.Run("b61-stop-with-fifty-in-flight", func(t *testing.T) { ids = append(ids, f.on(t).stopInFlight()...) })
	f.settle(ids...)
}

// on is the fleet for a subtest.
func (f *fleet) on(t *testing.T) *fleet {
	one := *f
	one.place, one.nodes = f.place.on(t), nil
	for _, n := range f.nodes {
		one.nodes = append(one.nodes, n.on(t))
	}
	return &one
}

// hanging counts the calls of the conversations that a hold keeps.
func (f *fleet) hanging(ids []string) (n int) {
	for _, id := range ids {
		for _, r := range f.asked(id, "") {
			if r.RuleName == "hold" && !r.Ended {
				n++
			}
		}
	}
	return n
}

// letGo stops a node, starts it again, and drains another, while models hang: its
// runs are set down by the node, and go on elsewhere.
func (f *fleet) letGo() []string {
	ids := f.openAt(2, "Hold on.")
	hang := func(what string) {
		f.t.Helper()
		f.poll(what, func() bool { return f.hanging(ids) == len(ids) })
	}
	hang("all models hang")
	began := time.Now()
	f.nodes[0].stop()
	f.t.Logf("from SIGTERM to the end of the node: %v", time.Since(began))
	hang("the others ask again")
	f.t.Logf("from SIGTERM to the last next step: %v", time.Since(began))
	f.join(f.nodes[0]) // it takes a share of what hangs elsewhere
	f.shared()
	hang("all hang, in their new places")
	drained := f.name(f.nodes[1])
	f.ok("node", "drain", drained)
	f.shared(f.nodes[1])
	hang("the drained node's hang elsewhere")
	f.ok("node", "drain", drained, "--off")
	f.shared()
	hang("all hang, at home again")
	f.models.Release("steady")
	reasons := map[string]int{}
	for _, id := range ids {
		f.until(f.c, id, "it goes on to its end", quiet)
		facts := f.facts(f.c, id)
		suspended, resumed := only(facts, (*rollcallv1.Event).GetRunSuspended), only(facts, (*rollcallv1.Event).GetRunResumed)
		for _, s := range suspended {
			reasons[s.GetReason()]++
		}
		ends := only(facts, (*rollcallv1.Event).GetRunFinished)
		if len(ends) != 1 || ends[0].GetReason() != rollcallv1.FinishReason_FINISH_REASON_IDLE || len(only(facts, (*rollcallv1.Event).GetMessagesReturned)) > 0 {
			f.t.Errorf("%s: the runs ended as %v", id, ends)
		}
		if answer(f.events(f.c, id)) != "It held." || len(runsOf(facts, "lead")) != 1 || len(outcomes(facts, "file_write")) != 1 {
			f.t.Errorf("%s was answered %q in %d runs, %d files", id, answer(f.events(f.c, id)), len(runsOf(facts, "lead")), len(outcomes(facts, "file_write")))
		}
		if len(suspended) != len(resumed) || len(f.asked(id, "")) != 2+len(suspended) {
			f.t.Errorf("%s was set down %d times, taken up %d times, asked for %d times", id, len(suspended), len(resumed), len(f.asked(id, "")))
		}
	}
	if len(reasons) != 2 || reasons["the node is stopping"] < 2 || reasons["the partition moves to another node"] < 4 {
		f.t.Errorf("runs were set down because %v", reasons)
	}
	return ids
}

// oneOfFifty has fifty operators complete one task, and assign another to fifty
// owners, all at a time, through whatever node answers them.
func (f *fleet) oneOfFifty() string {
	id := f.open(f.c, "board", "Say hello.")
	for _, title := range []string{"the one", "the other"} {
		got(f.c.ChangeTask(f.ctx(), id, &rollcallv1.ChangeTask{Operation: rollcallv1.ChangeTask_OPERATION_ADD, Title: title, Owner: "user"})).must(f.t)
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	done, codes := "", map[string]int{}
	for i := range 50 {
		all.Go(func() {
			text := fmt.Sprint("done by ", i)
			_, err := f.c.ChangeTask(f.ctx(), id, &rollcallv1.ChangeTask{Operation: rollcallv1.ChangeTask_OPERATION_DONE, Task: "t1", Text: text})
			_, assigned := f.c.ChangeTask(f.ctx(), id, &rollcallv1.ChangeTask{Operation: rollcallv1.ChangeTask_OPERATION_ASSIGN, Task: "t2", Owner: fmt.Sprint("owner ", i)})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && done == "":
				done = text
			case err == nil:
				f.t.Errorf("%q and %q both won", done, text)
			default:
				codes[api.AsRefusal(err).Code]++
			}
			if assigned != nil {
				f.t.Errorf("owner %d: %v", i, assigned)
			}
		})
	}
	all.Wait()
	s := f.until(f.c, id, "rest", quiet)
	if codes["task-closed"] != 49 || done == "" || s.Tasks[0].Result != done {
		f.t.Errorf("%q won, the result is %q, the others are refused with %v", done, s.Tasks[0].Result, codes)
	}
	last := ""
	for _, e := range f.events(f.c, id) {
		if r := e.GetTaskReassigned(); r.GetTask() == "t2" {
			last = r.GetOwner()
		}
	}
	if last == "" || s.Tasks[1].Owner != last {
		f.t.Errorf("the other task belongs to %q, assigned last was %q", s.Tasks[1].Owner, last)
	}
	return id
}

// sending is a message and what its sender was told.
type sending struct {
	id, word string
	answer   api.AnswerBody
	err      error
	took     time.Duration
}

// speaks sends messages into the conversations, so many at a time, and calls meet
// when half of them are sent.
func (f *fleet) speaks(ids []string, clients, each int, meet func()) (all []sending) {
	var mu sync.Mutex
	var talking sync.WaitGroup
	half := make(chan struct{})
	for i := range clients {
		talking.Go(func() {
			for j := range each {
				one := sending{id: ids[(i+j)%len(ids)], word: fmt.Sprintf("word %d of %d.", j, i)}
				began := time.Now()
				ctx, cancel := context.WithTimeout(f.t.Context(), patience)
				one.answer, one.err = f.c.Send(ctx, one.id, &rollcallv1.PostMessage{Body: &rollcallv1.Body{Text: one.word}, Mode: rollcallv1.MailMode_MAIL_MODE_QUEUE})
				cancel()
				one.took = time.Since(began)
				mu.Lock()
				if all = append(all, one); len(all) == clients*each/2 {
					close(half)
				}
				mu.Unlock()
			}
		})
	}
	<-half
	meet()
	talking.Wait()
	return all
}

// heard holds what senders were told against the log.
func (f *fleet) heard(ids []string, all []sending, most time.Duration) {
	f.t.Helper()
	story := map[string]string{}
	for _, id := range ids {
		f.until(f.c, id, "rest", quiet)
		var b strings.Builder
		for _, m := range only(f.facts(f.c, id), (*rollcallv1.Event).GetMessageDelivered) {
			b.WriteString("\n" + m.GetBody().GetText() + "\n")
		}
		story[id] = b.String()
	}
	var longest time.Duration
	errs := 0
	for _, one := range all {
		longest = max(longest, one.took)
		switch n := strings.Count(story[one.id], "\n"+one.word+"\n"); {
		case n > 1, n == 0 && one.err == nil:
			f.t.Errorf("%q is %d times in the log of %s; its sender was told %+v, %v", one.word, n, one.id, one.answer, one.err)
		case one.err != nil:
			errs++
			f.t.Logf("%q: in the log %d times, its sender was told %v", one.word, n, one.err)
		case one.took > most:
			f.t.Errorf("%q was answered after %v", one.word, one.took)
		}
	}
	if errs > len(all)/10 {
		f.t.Errorf("%d of %d senders were told an error", errs, len(all))
	}
	f.t.Logf("%d messages, %d errors, the slowest answer after %v", len(all), errs, longest)
}

// deadNode kills the node that owns a conversation, while clients write to it and
// to others.
func (f *fleet) deadNode() []string {
	ids := f.openAt(1, "Say hello.")
	var dead *place
	var command said
	began := time.Now()
	all := f.speaks(ids, 8, 10, func() {
		began = time.Now()
		dead = f.owner(ids[0])
		dead.kill()
		command = f.rollcall("send", ids[0], "A word by the command line.")
	})
	f.heard(ids, all, 20*time.Second)
	switch in := strings.Count(fmt.Sprint(f.facts(f.c, ids[0])), "A word by the command line."); {
	case command.code == 0 && in == 1:
	case command.code != 0 && strings.Contains(command.err, "node-unreachable"):
	default:
		f.t.Errorf("send ended with %d, and it is %d times in the log: %s%s", command.code, in, command.out, command.err)
	}
	within(f.t, "it all", began, time.Minute)
	f.join(dead)
	f.shared()
	return ids
}

// stopInFlight stops two nodes, one after the other, with fifty messages in
// flight.
func (f *fleet) stopInFlight() []string {
	ids := f.openAt(2, "Say hello.")
	all := f.speaks(ids, 50, 2, func() {
		for _, n := range f.nodes[:2] {
			if err := n.node.Process.Signal(syscall.SIGTERM); err != nil {
				f.t.Error(err)
			}
			n.stop()
		}
	})
	f.heard(ids, all, 10*time.Second)
	for _, n := range f.nodes[:2] {
		f.join(n)
	}
	f.shared()
	return ids
}
