package actors

import (
	"context"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
)

// patience is how long a run waits for its turn to call the model before the
// log says that it is suspended.
const patience = time.Second

// admit waits until the run may call its model. One that waits longer than
// patience is suspended in the log, and taken up when its turn comes. leave
// gives its slot back; false: the step was stopped.
func (m *member) admit(ctx context.Context, p domain.StepPlan, again time.Time) (leave func(), ok bool) {
	turn := make(chan bool, 1)
	m.steps.Go(func() { turn <- m.line(ctx, again) })
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case ok = <-turn:
	case <-late.C:
		noted := m.note(ctx, suspendRun(p.Member.ID, p.Run, m.waitsFor(again)))
		if ok = <-turn; ok && !(noted && m.note(ctx, goOn(p.Member.ID, p.Run))) {
			m.leave()
			ok = false
		}
	}
	return m.leave, ok
}

// line waits until the last attempt is long enough ago, the server wants
// requests, and one of the node's slots is free, which it takes: who waits
// for anything else holds none. False when ctx ended.
func (m *member) line(ctx context.Context, again time.Time) bool {
	pause(ctx, time.Until(again))
	for {
		if m.Models.Pass(ctx) != nil {
			return false
		}
		select {
		case m.slots <- struct{}{}:
		case <-ctx.Done():
			return false
		}
		if m.Models.Held() <= 0 {
			return true
		}
		m.leave() // the server spoke while the run stood in line
	}
}

func (m *member) leave() { <-m.slots }

func (m *member) waitsFor(again time.Time) string {
	switch {
	case time.Until(again) > 0:
		return "its next attempt is not due yet"
	case m.Models.Held() > 0:
		return "the model server wants no requests yet"
	}
	return "all model calls of this node are in use"
}

// note has the conversation decide a command while the step goes on, and waits
// until that is durable; false: the step was stopped, or is to be.
func (m *member) note(ctx context.Context, it *item) bool {
	it.decided = make(chan bool, 1)
	m.system.Root.Send(m.conversation, &outcome{item: it})
	select {
	case owed := <-it.decided:
		return owed && ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
