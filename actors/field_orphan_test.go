package actors_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/faulty"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// hands are what the operator may do with a run whose process died, and what
// must be true at once when it is done to one that is open.
var hands = map[string]struct {
	do   func(w *world) *rollcallv1.Command
	then func(s *domain.State) bool
}{
	"interrupt": {func(*world) *rollcallv1.Command { return interruptCommand("m1") }, func(s *domain.State) bool { return s.Member("m1").Run == nil && s.Member("m1").Held }},
	"dissolve":  {func(*world) *rollcallv1.Command { return dissolveCommand() }, func(s *domain.State) bool { return !s.Member("m1").Alive() }},
	"write": {
		func(*world) *rollcallv1.Command { return post("m1", "on", rollcallv1.MailMode_MAIL_MODE_INTERRUPT) },
		func(s *domain.State) bool { return s.Member("m1").Run != nil },
	},
	"cancel": {func(*world) *rollcallv1.Command {
		return &rollcallv1.Command{Kind: &rollcallv1.Command_ChangeTask{ChangeTask: &rollcallv1.ChangeTask{Operation: rollcallv1.ChangeTask_OPERATION_CANCEL, Task: "t1"}}}
	}, func(s *domain.State) bool { return len(s.OpenTasks()) == 0 }},
	"pause": {func(w *world) *rollcallv1.Command { return pauseCommand() }, func(s *domain.State) bool { return s.Paused }},
}

// Elsewhere a run was marked as running for ever when its process had died, and
// what should end it refused. Here the node is lost at every commit of a turn,
// before it and after it: when the intent is stored and nothing is sent, while the
// model is asked, when it has answered and nothing is stored, in the middle of its
// steps. The next node owns what is open, every hand of the operator works on it
// at once, and in the end nothing is left that seems to live.
func TestB17NoRunWithoutAnOwner(t *testing.T) {
	t.Run("b17-no-run-without-an-owner", func(t *testing.T) {
		var opened, hits int
		synctest.Test(t, func(t *testing.T) { opened, hits = orphan(t, "", nil) })
		if hits-opened < 3 {
			t.Fatalf("the turn takes only %d commits", hits-opened)
		}
		for n := opened; n < hits; n++ {
			for _, how := range []faulty.How{faulty.CrashBefore, faulty.CrashAfter} {
				for hand := range hands {
					fault := faulty.Fault{Point: faulty.Append, N: n + 1, How: how}
					t.Run(fmt.Sprint(fault, ", ", hand), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { orphan(t, hand, &fault) })
					})
				}
			}
		}
	})
}

func orphan(t *testing.T, hand string, fault *faulty.Fault) (opened, hits int) {
	t.Helper()
	gate := make(chan struct{})
	w := newWorld(t, strict(t, func(ctx context.Context, from model.Caller, r request) (model.Reply, error) {
		switch {
		case from.Member != "Ada" || !r.has("begin") && !r.has("the task"):
			return say("ok"), nil
		case r.called("task_update") == 0:
			return calls(call("task_update", `{"task_id":"t1","status":"in_progress"}`)), nil
		}
		return say("ok"), until(ctx, gate)
	}))
	n, store := w.node()
	w.do(withMembers("go", "Ada"))
	w.quiet()
	appends := func() (n int) {
		for _, h := range store.Hits() {
			if h.Point == faulty.Append {
				n++
			}
		}
		return n
	}
	opened = appends()
	if fault != nil {
		store.Add(*fault)
	}
	w.ask(addTask("Ada", "the task"))
	w.ask(post("m1", "begin", 0))
	<-time.After(5 * time.Second)
	hits = appends()
	if fault == nil {
		close(gate)
		w.quiet()
		hits = appends()
		w.close(n)
		return opened, hits
	}
	w.close(n)
	n, _ = w.named("n2")
	defer func() { w.close(n) }()
	s := w.until("it is taken up", func(s *domain.State) bool {
		return len(s.Tasks) == 1 && w.disk.Pending(key.Partition()) <= 1 && (s.Member("m1").Run == nil || s.Member("m1").Run.Step == 2)
	})
	open := s.Member("m1").Run != nil
	h := hands[hand]
	began := time.Now()
	a := w.heard(w.ask(h.do(w)))
	if took := time.Since(began); took > eventstore.LeaseTTL+2*time.Second { // the lost node's lease, and a look at it
		t.Errorf("%s took %s", hand, took)
	}
	if open && (a.GetRefusal() != nil || !h.then(w.state())) {
		t.Errorf("%s of an open run came to %v\n%s", hand, a, w.story())
	}
	w.ask(resumeCommand())
	close(gate)
	<-time.After(time.Minute)
	s = w.quiet()
	for _, m := range s.Members {
		if m.Run != nil || m.Status == rollcallv1.MemberStatus_MEMBER_STATUS_WORKING {
			t.Errorf("%s is %v\n%s", m.Name, m.Status, w.story())
		}
	}
	justified(t, w.events(), len(w.brain.record()))
	return opened, hits
}
