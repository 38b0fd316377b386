package actors_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Elsewhere two members took the same task. Here five members claim one task in
// ten calls each, all at a time, while their conversation goes round three nodes,
// one of which is killed at it: one has it, and every other claim is refused and
// says who has it. So it is with fifty operators that complete it.
func TestB28OneOfFiftyWins(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %v", killed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { oneWinner(t, killed) })
		})
	}
}

func oneWinner(t *testing.T, killed bool) {
	names := []string{"Ana", "Ben", "Cat", "Dan", "Eva"}
	gate, ready := make(chan struct{}), atomic.Int64{}
	c := newCluster(t, strict(t, func(ctx context.Context, from model.Caller, r request) (model.Reply, error) {
		if from.Member == "Lead" || !r.has("claim it") || r.called("task_update") > 0 {
			return say("ok"), nil
		}
		var claims []*rollcallv1.ToolCall
		for range 10 {
			claims = append(claims, call("task_update", fmt.Sprintf(`{"task_id":"t1","owner":%q,"status":"in_progress"}`, from.Member)))
		}
		ready.Add(1)
		err := until(ctx, gate)
		if err == nil { // not all in one commit
			<-time.After(time.Duration(slices.Index(names, from.Member)) * 300 * time.Millisecond)
		}
		return calls(claims...), err
	}))
	nodes := []*peer{c.up("n1"), c.up("n2"), c.up("n3")}
	for _, n := range nodes {
		defer n.down()
	}
	c.do(withMembers("go", names...))
	c.do(addTask("", "the one task"))
	for i := range names {
		c.do(post(fmt.Sprint("m", i+1), "claim it", 0))
	}
	c.until("all are about to claim", func(*domain.State) bool { return ready.Load() == int64(len(names)) })
	owner := c.find(c.owner(), nodes...)
	owner.link.set(func(l *link) { l.late = 100 * time.Millisecond })
	close(gate)
	<-time.After(700 * time.Millisecond)
	if killed {
		owner.store.Crash()
	} else if err := c.disk.Drain(t.Context(), owner.name, true); err != nil {
		t.Fatal(err)
	}
	s := c.until("all have claimed", func(s *domain.State) bool { return s.Opened && len(domain.Due(s)) == 0 })
	if c.owner() == owner.name {
		t.Errorf("%s has it still", owner.name)
	}
	winner := s.Tasks[0].Owner
	accepted, refused := map[string]int{}, 0
	for _, e := range c.events() {
		f := e.GetToolCallFinished()
		switch {
		case f.GetName() != "task_update":
		case !f.GetError():
			accepted[s.Member(f.GetMember()).Name]++
		case strings.Contains(f.GetOutput().GetText(), "[task-claimed]") && strings.Contains(f.GetOutput().GetText(), winner):
			refused++
		default:
			t.Errorf("%s is refused with %q", f.GetMember(), f.GetOutput().GetText())
		}
	}
	if by := c.outcomesBy(); len(by) != 2 {
		t.Errorf("the claims were decided by %v", by)
	}
	claimed := count(c.events(), (*rollcallv1.Event).GetTaskClaimed, func(k *rollcallv1.TaskClaimed) bool { return k != nil })
	if claimed != 1 || refused != 40 || len(accepted) != 1 || accepted[winner] != 10 {
		t.Errorf("claimed %d times; %s has it; accepted %v, refused %d\n%s", claimed, winner, accepted, refused, c.story())
	}

	// Fifty operators, each through whatever node, some of them on the way out.
	here, there := nodes[0].name, nodes[1].name
	switch owner.name { // it may be dead
	case here:
		here = nodes[2].name
	case there:
		there = nodes[2].name
	}
	c.only(here, "n1", "n2", "n3")
	var answers []<-chan *rollcallv1.Answer
	for i := range 50 {
		cmd := &rollcallv1.Command{Id: fmt.Sprint("done-", i), Kind: &rollcallv1.Command_ChangeTask{ChangeTask: &rollcallv1.ChangeTask{
			Operation: rollcallv1.ChangeTask_OPERATION_DONE, Task: "t1", Text: fmt.Sprint("by ", i),
		}}}
		answers = append(answers, c.ask(cmd))
		if i == 20 {
			for name, on := range map[string]bool{here: true, there: false} {
				if err := c.disk.Drain(t.Context(), name, on); err != nil {
					t.Fatal(err)
				}
			}
			<-time.After(300 * time.Millisecond)
		}
	}
	won := ""
	for i, answer := range answers {
		a := c.heard(answer)
		switch {
		case a.GetRefusal() == nil && won == "":
			won = fmt.Sprint("by ", i)
		case a.GetRefusal().GetCode() != "task-closed" || a.GetRefusal().GetTry() == "":
			t.Errorf("operator %d is answered %v", i, a)
		}
	}
	s = c.quiet()
	if s.Tasks[0].Result != won || won == "" {
		t.Errorf("%q won, the result is %q", won, s.Tasks[0].Result)
	}
	c.fenced(t)
	once(t, c.events())
	justified(t, c.events(), len(c.brain.record()))
}

// outcomesBy are the nodes that decided calls of tools.
func (c *cluster) outcomesBy() map[string]int {
	c.t.Helper()
	by := map[string]int{}
	err := c.disk.Load(c.t.Context(), key, eventstore.Position{}, func(r eventstore.Recorded) error {
		for _, e := range r.Commit.GetEvents() {
			if e.GetToolCallFinished() != nil {
				by[r.Commit.GetNode()]++
			}
		}
		return nil
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return by
}

// find the node of that name.
func (c *cluster) find(name string, nodes ...*peer) *peer {
	c.t.Helper()
	for _, n := range nodes {
		if n.name == name {
			return n
		}
	}
	c.t.Fatalf("there is no node %q", name)
	return nil
}
