package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/oklog/ulid/v2"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// groupBytes bounds what rides in one commit: a command is added only while
// the events before it are smaller than this.
const groupBytes = eventstore.MaxCommit / 2

// flight is one commit on its way to the log.
type flight struct {
	commit  *rollcallv1.Commit
	decided []decided
}

// decided is what became of one item of the queue.
type decided struct {
	item   *item
	result domain.Result
	err    error
}

// pump decides what is queued, in order, and sends one commit to the log.
// Items stay in the queue until the commit is durable.
func (c *conversation) pump(a actor.Context) {
	if c.state == nil || c.flight != nil || len(c.box.queue) == 0 {
		return
	}
	batch, err := c.state.Begin(c.Rules, c.stamp(c.lease, strings.ToLower(ulid.Make().String())))
	if err != nil { // a higher epoch has written: the partition is another's
		c.state = nil
		c.lost(fmt.Errorf("%w: %w", eventstore.ErrPartitionLost, err))
		return
	}
	f := &flight{}
	for i, it := range c.box.queue {
		if i > 0 && (c.alone || batch.Size() > groupBytes) {
			break
		}
		result, err := batch.Decide(it.command)
		f.decided = append(f.decided, decided{item: it, result: result, err: err})
	}
	if c.doubts(f) {
		c.load()
		return
	}
	f.commit = batch.Commit()
	if f.commit == nil {
		c.finish(a, f, nil)
		return
	}
	c.flight = f
	ctx, key, at, self := c.ctx, c.box.key, c.at, c.self
	origin := f.origin()
	c.steps.Go(func() {
		m := c.append(eventstore.WithOrigin(ctx, origin), key, at, f.commit)
		if ctx.Err() == nil {
			c.system.Root.Send(self, m)
		}
	})
}

// doubts reports whether something is refused on the ground of a state that may
// be of the past: the log's leader may have been cut off and not know it. What is
// appended finds out by itself; a refusal would stand. It is decided again on a
// state that is read when the leader is known to lead, and that once a claim.
func (c *conversation) doubts(f *flight) bool {
	if c.Alone || c.proved || !slices.ContainsFunc(f.decided, func(d decided) bool { return d.err != nil }) {
		return false
	}
	c.proved, c.doubtful = true, true
	return true
}

// append retries the identical commit until its fate is known.
func (c *conversation) append(ctx context.Context, key domain.Key, at eventstore.Position, commit *rollcallv1.Commit) *appended {
	retry := delays(50*time.Millisecond, 2*time.Second)
	for {
		rec, err := c.Store.Append(ctx, key, at, commit)
		if err == nil || ctx.Err() != nil || errors.Is(err, eventstore.ErrConflict) || errors.Is(err, eventstore.ErrTooLarge) {
			return &appended{recorded: rec, err: err}
		}
		c.Log.Warn("append; trying the same commit again", "conversation", key.String(), "version", commit.GetVersion(), "error", err)
		pause(ctx, retry())
	}
}

// settle goes on after an append.
func (c *conversation) settle(a actor.Context, m *appended) {
	f := c.flight
	c.flight = nil
	switch {
	case m.err == nil:
		c.conflicts, c.proved = 0, true
		c.progress(f)
		c.at = m.recorded.Position()
		c.state.Committed(m.recorded.Commit)
		c.Feed.Committed(m.recorded)
		c.finish(a, f, m.recorded.Commit)
	case errors.Is(m.err, eventstore.ErrTooLarge):
		c.tooLarge(f)
		c.load()
	default:
		// Another writer was first: what was decided is void. The queue is
		// decided again on what the log says.
		c.conflicts++
		c.suspended = false // a drain's RunSuspended too
		c.load()
	}
}

// progress forgets earlier crashes, unless the commit only took up what a
// crash had left.
func (c *conversation) progress(f *flight) {
	c.alone = false
	for _, d := range f.decided {
		if d.err == nil && d.item.command.GetResumeRun() == nil {
			c.box.crashes = 0
		}
	}
}

// finish answers what was decided, now that it is durable, and goes on.
func (c *conversation) finish(a actor.Context, f *flight, commit *rollcallv1.Commit) {
	for _, d := range f.decided {
		// One by one: a crash in an answer must not take the others with it.
		c.box.queue = c.box.queue[1:]
		c.answer(d)
	}
	c.afterCommit(a)
	if c.draining != nil {
		c.drain(a)
		return
	}
	c.pump(a)
}

// owes reports whether a step of the run is due.
func (c *conversation) owes(member, run string) bool {
	return slices.ContainsFunc(domain.Due(c.state), func(w domain.Work) bool { return w.Member == member && w.Run == run })
}

func (c *conversation) answer(d decided) {
	it := d.item
	if it.decided != nil {
		it.decided <- c.owes(runOf(it.command))
	}
	refused, no := asRefusal(d.err)
	if no && !(it.redrove && refused.GetCode() == domain.CodeNotHeld) {
		if it.delivery == nil {
			c.outcomeRefused(it, refused)
			return
		}
		key, ctx := c.box.key, c.ctx
		c.steps.Go(func() { c.refuse(ctx, key, it, refused) })
		return
	}
	c.box.cover(it.delivery)
	if it.reply != "" {
		c.Answer(it.reply, &rollcallv1.Answer{
			Conversation: c.box.key.Conversation,
			Version:      d.result.Version,
			Subject:      d.result.Subject,
			Command:      it.command.GetId(),
		})
	}
}

// outcomeRefused: a late outcome of a step that is over is dropped. Any other
// refusal would leave the run open for ever, so the run fails with its reason.
func (c *conversation) outcomeRefused(it *item, r *rollcallv1.Refusal) {
	member, run := runOf(it.command)
	if r.GetCode() == "stale-outcome" || run == "" {
		c.Log.Debug("late outcome dropped", "conversation", c.box.key.String(), "member", member, "run", run)
		return
	}
	if it.command.GetFailRun() != nil {
		c.Log.Error("run cannot be failed", "conversation", c.box.key.String(), "run", run, "code", r.GetCode(), "why", r.GetWhy())
		return
	}
	c.box.queue = append(c.box.queue, failRun(member, run, r.GetCode(), r.GetWhat()+": "+r.GetWhy()))
}

// tooLarge replaces the command whose events do not fit one commit: alone it
// is refused, in company the next round decides it alone.
func (c *conversation) tooLarge(f *flight) {
	if len(f.decided) > 1 {
		c.alone = true
		return
	}
	it := f.decided[0].item
	c.box.queue = c.box.queue[1:]
	refused := &rollcallv1.Refusal{
		Code: "commit-too-large", What: "the change was not stored",
		Why: fmt.Sprintf("its events are over %d KiB together", eventstore.MaxCommit>>10),
		Try: "ask for less at once, or put long text into files",
	}
	if member, run := runOf(it.command); run != "" {
		c.box.queue = append(c.box.queue, failRun(member, run, refused.GetCode(), refused.GetWhy()))
		return
	}
	key, ctx := c.box.key, c.ctx
	c.steps.Go(func() { c.refuse(ctx, key, it, refused) })
}

// afterCommit does what the state owes, acknowledges what the log covers, and
// saves a snapshot now and then.
func (c *conversation) afterCommit(a actor.Context) {
	c.act(a)
	due := c.due()
	c.acknowledge(c.box.release(due))
	c.setActive(due)
	if !due {
		c.idleAt = time.Now()
	}
	if c.at.Version >= c.snapshot+c.SnapshotEvery {
		c.saveSnapshot()
	}
}

// acknowledge is done in the background; a failure only means that the
// message comes again and is found to be done.
func (c *conversation) acknowledge(ds []eventstore.Delivery) {
	if len(ds) == 0 {
		return
	}
	ctx := c.ctx
	c.steps.Go(func() {
		for _, d := range ds {
			if err := d.Ack(ctx); err != nil && ctx.Err() == nil {
				c.Log.Warn("acknowledge; the message will come again", "seq", d.Seq(), "error", err)
			}
		}
	})
}

func (c *conversation) saveSnapshot() {
	c.snapshot = c.at.Version
	data, err := c.state.Marshal()
	if err != nil {
		c.Log.Error("snapshot", "conversation", c.box.key.String(), "error", err)
		return
	}
	ctx, key := c.ctx, c.box.key
	snap := eventstore.Snapshot{Position: c.at, EvolveVersion: domain.EvolveVersion, Data: data}
	c.steps.Go(func() {
		if err := c.Store.SaveSnapshot(ctx, key, snap); err != nil && ctx.Err() == nil {
			c.Log.Warn("save snapshot", "conversation", key.String(), "error", err)
		}
	})
}
