package actors

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rollcall-dev/rollcall/domain"
)

// due reports whether the state owes work: steps of open runs, timers that the
// store is not known to have, or commands not yet decided. While it does, the
// newest inbox message stays unacknowledged.
func (c *conversation) due() bool {
	if c.state == nil || c.flight != nil || len(c.box.queue) > 0 || len(domain.Due(c.state)) > 0 {
		return true
	}
	for _, t := range domain.ArmedTimers(c.state) {
		if !c.armed[t.Timer].Equal(t.Due) {
			return true
		}
	}
	return false
}

// act makes the members do exactly what is due: a step that is due and not
// under way begins, a step that is under way and not due any more ends. It
// runs right after the commit that made the work due, so a request is built
// from the state of that version.
func (c *conversation) act(a actor.Context) {
	if c.draining != nil || c.state == nil {
		return
	}
	due := map[string]domain.Work{}
	for _, w := range domain.Due(c.state) {
		due[w.Member] = w
	}
	for _, t := range domain.ArmedTimers(c.state) {
		c.arm(t)
	}
	for id, m := range c.members {
		if w, ok := due[id]; m.step != "" && (!ok || stepKey(w) != m.step) {
			c.stopStep(a, id)
		}
	}
	taken := c.box.resuming() // those begin with the commit that takes them up
	for id, w := range due {
		if m := c.member(a, id); m.step == "" && !taken[w.Run] {
			if j := c.job(w); j != nil {
				m.step = stepKey(w)
				a.Send(m.pid, &begin{key: m.step, job: j})
			}
		}
	}
}

func stepKey(w domain.Work) string {
	return fmt.Sprintf("%s/%d/%d/%s", w.Run, w.Step, w.Attempt, w.Call)
}

func (c *conversation) job(w domain.Work) job {
	switch w.Kind {
	case domain.CallModel:
		if plan, ok := c.state.StepPlan(w.Member); ok {
			return modelJob{plan}
		}
	case domain.CallTool:
		if plan, ok := c.state.ToolPlan(w.Member); ok {
			return toolJob{plan}
		}
	}
	c.Log.Error("work without a plan", "conversation", c.box.key.String(), "run", w.Run)
	return nil
}

func (c *conversation) stopStep(a actor.Context, id string) {
	if m := c.members[id]; m != nil && m.step != "" {
		a.Send(m.pid, &stopStep{key: m.step})
		m.step = ""
	}
}

// member returns the member's actor, which is made when it is not there.
func (c *conversation) member(a actor.Context, id string) *crew {
	if m := c.members[id]; m != nil {
		return m
	}
	rt, key, conv := c.runtime, c.box.key, a.Self()
	lives := 0
	props := actor.PropsFromProducer(func() actor.Actor {
		lives++
		return &member{runtime: rt, key: key, id: id, conversation: conv, again: lives > 1}
	}, supervisor(c.Log))
	pid, err := a.SpawnNamed(props, id)
	if err != nil {
		panic(err) // the name is taken: our book-keeping is wrong
	}
	m := &crew{pid: pid}
	c.members[id] = m
	return m
}

// memberRestarted: the step of a crashed member's actor is lost, like one of a
// crashed node.
func (c *conversation) memberRestarted(a actor.Context, m *restarted) {
	if crew := c.members[m.member]; crew != nil {
		crew.step = ""
	}
	if c.state == nil || c.draining != nil { // a load takes up what it finds open
		return
	}
	for _, r := range domain.Due(c.state) {
		if r.Member == m.member {
			c.accept(a, resumeRun(r.Member, r.Run))
		}
	}
}

func (c *conversation) arm(w domain.Work) {
	ctx, key, self := c.ctx, c.box.key, c.self
	if at, ok := c.arming[w.Timer]; ok && at.Equal(w.Due) {
		return
	}
	c.arming[w.Timer] = w.Due
	c.steps.Go(func() {
		retry := delays(100*time.Millisecond, 5*time.Second)
		for ctx.Err() == nil {
			err := c.Store.ArmTimer(ctx, key, w.Timer, w.Due)
			if err == nil {
				break
			}
			c.Log.Warn("arm timer", "conversation", key.String(), "timer", w.Timer, "error", err)
			pause(ctx, retry())
		}
		if ctx.Err() == nil {
			c.system.Root.Send(self, &timerArmed{timer: w.Timer, due: w.Due})
		}
	})
}

// timerIs notes that the store has a timer: only then may the message that
// set it be acknowledged.
func (c *conversation) timerIs(a actor.Context, m *timerArmed) {
	c.armed[m.timer] = m.due
	if c.state != nil && c.flight == nil {
		c.afterCommit(a)
	}
}
