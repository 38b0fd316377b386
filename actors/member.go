package actors

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// member is a member's actor. It does one step at a time in a goroutine of its
// own, which ends with a command to the conversation, or with nothing when it
// was stopped.
type member struct {
	*runtime
	key          domain.Key
	id           string
	conversation *actor.PID
	// again is true when an earlier life of this actor crashed.
	again bool

	step   string
	cancel context.CancelFunc
	// wait before the next attempt of the run, as its last failed one asked.
	wait    time.Duration
	waiting string
}

// job is one step: it returns the command that records what it came to, and
// how long the next attempt should wait.
type job interface {
	run(ctx context.Context, m *member, wait time.Duration) (*rollcallv1.Command, time.Duration)
	// who the step belongs to.
	owner() (member, run string)
}

// Receive is called by the actor system only.
func (m *member) Receive(a actor.Context) {
	switch msg := a.Message().(type) {
	case *actor.Started:
		if m.again {
			a.Send(m.conversation, &restarted{member: m.id})
		}
	case *actor.Restarting, *actor.Stopping, *actor.Stopped:
		m.stop()
	case *begin:
		m.begin(a, msg)
	case *stopStep:
		if msg.key == m.step {
			m.stop()
		}
	case *stepDone:
		if msg.key == m.step {
			m.stop()
			m.wait = msg.wait
			_, m.waiting = runOf(msg.command)
			a.Send(m.conversation, &outcome{item: &item{command: msg.command}})
		}
	case *answerRoll:
		a.Send(m.conversation, &present{call: msg.call, place: msg.place, member: msg.as.answeredBy(m.id)})
	}
}

func (m *member) stop() {
	if m.cancel != nil {
		m.cancel()
		m.cancel = nil
	}
	m.step = ""
}

func (m *member) begin(a actor.Context, b *begin) {
	m.stop()
	wait := m.wait
	if _, run := b.job.owner(); run != m.waiting {
		wait = 0
	}
	m.wait, m.waiting = 0, ""
	ctx, cancel := context.WithCancel(context.Background())
	m.step, m.cancel = b.key, cancel
	self := a.Self()
	m.peers.works(m.key.Partition(), 1)
	m.steps.Go(func() {
		defer m.peers.works(m.key.Partition(), -1)
		cmd, wait := m.guard(ctx, b.job, wait)
		if ctx.Err() == nil && cmd != nil {
			m.system.Root.Send(self, &stepDone{key: b.key, command: cmd, wait: wait})
		}
	})
}

// guard turns a panic in a model client or a tool into a failed run: none
// takes a neighbour down.
func (m *member) guard(ctx context.Context, j job, wait time.Duration) (cmd *rollcallv1.Command, next time.Duration) {
	defer func() {
		if r := recover(); r != nil {
			member, run := j.owner()
			m.Log.Error("step crashed", "conversation", m.key.String(), "member", member, "run", run, "reason", r, "stack", string(debug.Stack()))
			cmd = failRun(member, run, "step-crashed", fmt.Sprintf("the step crashed: %v", r)).command
		}
	}()
	return j.run(ctx, m, wait)
}
