package actors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
)

// conversation is the one writer of a conversation's log on this node. Its
// state is always what the log says; between a decision and its durability it
// does nothing else.
type conversation struct {
	*runtime
	box    *box
	lease  eventstore.Lease
	lost   func(error)
	parent *actor.PID

	self   *actor.PID
	ctx    context.Context
	cancel context.CancelFunc

	// state is nil while loading, quarantined or lost.
	state *domain.State
	at    eventstore.Position
	// given is the state to begin with, nil where it is to be loaded.
	given *loaded
	// flight is the commit being appended and how many items of the queue it
	// covers.
	flight *flight
	// members that have an actor, and what each is doing ("" for nothing).
	members map[string]*crew
	// arming timers were sent to the store, armed ones are known to be there.
	arming, armed map[string]time.Time
	// rolls wait for the load.
	rolls []*rollCall
	// warming: the partition waits for the load before it warms another; warm
	// counts the members in runtime.warmed.
	warming bool
	warm    int64
	// conflicts counts the appends in a row that another writer forestalled.
	conflicts int
	// proved: what this claim loaded was not of the past; doubtful: it is loaded
	// again, for that.
	proved, doubtful bool
	// alone: decide one command a commit, after one was too large.
	alone    bool
	draining *drain
	// suspended: the drain's RunSuspended were decided; told: drained was sent.
	suspended, told bool
	active          bool // counted in runtime.active
	idleAt          time.Time
	snapshot        uint64 // version of the last snapshot loaded or begun
}

// crew is a member as its conversation knows it: its actor, and the key of the
// step it is at ("" for none).
type crew struct {
	pid  *actor.PID
	step string
}

// Receive is called by the actor system only.
func (c *conversation) Receive(a actor.Context) {
	switch m := a.Message().(type) {
	case *actor.Started:
		c.start(a)
	case *actor.Restarting:
		c.box.crashes++
		c.end()
	case *actor.Stopping, *actor.Stopped:
		c.end()
	case *deliver:
		c.box.seen++
		c.accept(a, m.item)
	case *outcome:
		c.accept(a, m.item)
	case *loaded:
		c.ready(a, m)
	case *appended:
		c.settle(a, m)
	case *timerArmed:
		c.timerIs(a, m)
	case *keepWarm:
		c.box.seen++
		c.warming = true
		if c.state != nil || c.box.quarantine != nil {
			c.isWarm(a)
		}
	case *rollCall:
		c.box.seen++
		c.rolls = append(c.rolls, m)
		c.callRoll(a)
	case *present:
		m.call.add(m.place, m.member)
	case *tick:
		c.box.seen++
		c.tick(a)
	case *drain:
		c.draining = m
		c.drain(a)
	case *restarted:
		c.memberRestarted(a, m)
	}
}

func (c *conversation) start(a actor.Context) {
	c.self = a.Self()
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.members = map[string]*crew{}
	c.arming, c.armed = map[string]time.Time{}, map[string]time.Time{}
	c.setActive(true)
	if c.box.crashes >= maxCrashes && c.box.quarantine == nil {
		c.quarantine(fmt.Errorf("crashed %d times in a row", c.box.crashes))
	}
	switch {
	case c.box.quarantine != nil:
	case c.given != nil:
		c.ready(a, c.given)
		c.given = nil
	default:
		c.load()
	}
}

func (c *conversation) end() {
	if c.cancel != nil {
		c.cancel()
	}
	c.setActive(false)
	c.warmed.Add(-c.warm)
	c.warm = 0
}

func (c *conversation) setActive(on bool) {
	if on != c.active {
		c.active = on
		if on {
			c.runtime.active.Add(1)
		} else {
			c.runtime.active.Add(-1)
		}
	}
	c.busy()
}

// accept queues a command. A quarantined conversation holds its messages; a
// retry re-drives it.
func (c *conversation) accept(a actor.Context, it *item) {
	if c.draining != nil {
		return // the inbox keeps it for the next owner
	}
	c.box.queue = append(c.box.queue, it)
	if c.box.quarantine != nil {
		if it.command.GetRetryMember() == nil {
			return // held; nothing goes on here until a retry
		}
		it.redrove = true
		c.box.quarantine, c.box.crashes = nil, 0
		c.setAside(c.box.key, nil)
		c.load()
	}
	c.setActive(true)
	c.pump(a)
}

// load rebuilds the state from the snapshot and the log.
func (c *conversation) load() {
	c.state = nil
	ctx, key, conflicts, doubtful := c.ctx, c.box.key, c.conflicts, c.doubtful
	c.doubtful = false
	c.steps.Go(func() {
		if doubtful {
			if err := c.Store.Current(ctx); err != nil {
				return // the conversation ends
			}
		}
		if conflicts > 1 {
			// Who was first is not seen yet, or writes all the time.
			c.Log.Warn("another writer is first again and again", "conversation", key.String(), "times", conflicts)
			pause(ctx, min(10*time.Millisecond<<min(conflicts, 10), 2*time.Second))
		}
		m := c.fold(ctx, key)
		if ctx.Err() == nil {
			c.system.Root.Send(c.self, m)
		}
	})
}

func (c *conversation) fold(ctx context.Context, key domain.Key) (m *loaded) {
	defer func() {
		if r := recover(); r != nil {
			m = &loaded{err: fmt.Errorf("load conversation: crashed: %v", r)}
		}
	}()
	retry, begun := delays(100*time.Millisecond, 5*time.Second), time.Now()
	for {
		m, err := rebuild(ctx, c.Store, key)
		switch {
		case err == nil:
			return m
		case errors.Is(err, domain.ErrGap) && !c.Alone && time.Since(begun) < doubt && ctx.Err() == nil:
			// Read at the wrong moment, perhaps: it is tried again.
		case ctx.Err() != nil || errors.Is(err, domain.ErrGap) || errors.Is(err, domain.ErrHash) || errors.Is(err, domain.ErrNotCommit):
			return &loaded{err: err}
		}
		c.Log.Warn("load conversation; trying again", "conversation", key.String(), "error", err)
		pause(ctx, retry())
	}
}

// doubt is how long a log that seems to lack something is read again where there
// are several servers: one that was just elected to lead answers before it has
// caught up, and one that was cut off goes on answering from the past for ten
// seconds, until it notices.
const doubt = 15 * time.Second

// Load rebuilds a conversation from its snapshot and log, without any effect.
func Load(ctx context.Context, store eventstore.Store, key domain.Key) (*domain.State, eventstore.Position, error) {
	m, err := rebuild(ctx, store, key)
	return m.state, m.at, err
}

func rebuild(ctx context.Context, store eventstore.Store, key domain.Key) (*loaded, error) {
	m := &loaded{state: domain.New(key)}
	snap, ok, err := store.LoadSnapshot(ctx, key, domain.EvolveVersion)
	if err != nil {
		return m, err
	}
	if ok {
		if s, err := domain.Unmarshal(snap.Data); err == nil && s.Version == snap.Position.Version {
			m.state, m.at, m.snapshot = s, snap.Position, snap.Position.Version
		}
	}
	err = store.Load(ctx, key, m.at, func(r eventstore.Recorded) error {
		m.state.Evolve(r.Commit)
		m.at = r.Position()
		return nil
	})
	return m, err
}

// ready takes up a loaded state: open runs whose step was lost are resumed. A
// step that is still under way, or has an outcome in the queue, was not lost.
func (c *conversation) ready(a actor.Context, m *loaded) {
	if m.err == nil {
		m.err = c.understood(m.state)
	}
	if m.err != nil {
		c.quarantine(m.err)
		c.rollNone()
		c.isWarm(a)
		c.drain(a)
		return
	}
	// A long tail behind the snapshot, or a log without one, is not read again
	// at every start: the next commit, or a rest, saves one.
	c.state, c.at, c.snapshot = m.state, m.at, m.snapshot
	var resume []*item
	taken := c.box.resuming()
	for _, w := range domain.Due(c.state) {
		if crew := c.members[w.Member]; crew != nil && crew.step == stepKey(w) || taken[w.Run] {
			continue
		}
		resume = append(resume, resumeRun(w.Member, w.Run))
	}
	c.box.front(resume...)
	c.warmMembers(a)
	c.isWarm(a)
	c.callRoll(a)
	if c.draining != nil {
		c.drain(a)
		return
	}
	c.pump(a)
	if c.flight == nil && c.state != nil { // it may be read once more: see doubts
		c.afterCommit(a)
	}
}

func (c *conversation) quarantine(err error) {
	for _, it := range c.box.queue { // whoever asked for it while it was loaded
		it.redrove = it.redrove || it.command.GetRetryMember() != nil
	}
	c.box.quarantine = err
	c.state = nil
	c.setAside(c.box.key, err)
	c.setActive(false)
}

// tick extends held messages and asks to leave when nothing is going on.
func (c *conversation) tick(a actor.Context) {
	for _, it := range c.box.queue {
		if it.delivery != nil {
			c.extend(it.delivery)
		}
	}
	for _, d := range c.box.held {
		c.extend(d)
	}
	if !c.due() && len(c.box.held) == 0 && time.Since(c.idleAt) >= c.PassivateAfter {
		a.Send(c.parent, &passivate{key: c.box.key, seen: c.box.seen})
	}
}

func (c *conversation) extend(d eventstore.Delivery) {
	if err := d.Hold(); err != nil {
		c.Log.Debug("hold inbox message", "seq", d.Seq(), "error", err)
	}
}

// drain suspends open runs and reports when nothing is in flight. What was
// queued and not decided stays in the inbox for the next owner.
func (c *conversation) drain(a actor.Context) {
	if c.draining == nil || c.told || c.flight != nil {
		return
	}
	if c.state != nil && !c.suspended {
		c.suspended = true
		if c.suspend(a) {
			return
		}
	}
	c.told = true
	a.Send(c.parent, &drained{key: c.box.key})
}

// suspend stops every step and commits RunSuspended for it; false when nothing
// was running.
func (c *conversation) suspend(a actor.Context) bool {
	c.box.queue = nil
	for _, w := range domain.Due(c.state) {
		c.stopStep(a, w.Member)
		c.box.queue = append(c.box.queue, suspendRun(w.Member, w.Run, c.draining.why))
	}
	c.pump(a)
	return c.flight != nil
}
