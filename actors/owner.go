package actors

import (
	"context"
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/ingress"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const (
	// Held inbox messages are extended this often; the store's wait is minutes.
	holdEvery = 30 * time.Second
)

// owner claims one partition, again whenever it is lost, and passes what its
// inbox brings to the partition's actor.
type owner struct {
	*runtime
	partition int
	pid       *actor.PID
}

// run returns when ctx has ended and the partition is let go.
func (o *owner) run(ctx context.Context) {
	for last := uint64(0); o.peers.turn(ctx, o.partition, last); {
		asked := time.Now()
		lease, err := o.Store.Claim(ctx, o.Node, o.partition)
		if err != nil {
			if !errors.Is(err, eventstore.ErrHeld) && ctx.Err() == nil {
				o.Log.Warn("claim partition", "partition", o.partition, "error", err)
			}
			o.peers.next(ctx)
			continue
		}
		last = lease.Epoch
		o.hold(ctx, lease, asked)
	}
}

// hold works on the partition until the lease is lost or ctx ends.
func (o *owner) hold(ctx context.Context, lease eventstore.Lease, claimed time.Time) {
	session, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	stopDrain := context.AfterFunc(ctx, func() { end(nil) })
	defer stopDrain()

	renewed := make(chan struct{})
	renewing, stopRenewing := context.WithCancel(context.WithoutCancel(ctx))
	go func() { defer close(renewed); o.renew(renewing, lease, claimed, end) }()
	defer func() { stopRenewing(); <-renewed }()

	receiver, err := o.Store.Receive(session, lease)
	if err != nil {
		if ctx.Err() == nil {
			o.Log.Warn("receive partition", "partition", o.partition, "error", err)
			pause(ctx, 200*time.Millisecond)
		}
		o.release(lease)
		return
	}
	o.system.Root.Send(o.pid, &gained{lease: lease, lost: end})
	o.peers.holds(o.partition, end)
	o.receive(session, receiver, end)
	o.peers.holds(o.partition, nil)
	receiver.Close()

	lost := context.Cause(session)
	drop := &dropAll{done: make(chan struct{})}
	switch {
	case errors.Is(lost, errMoved):
		drop.drain = "the partition moves to another node"
	case errors.Is(lost, context.Canceled):
		drop.drain = "the node is stopping"
	}
	o.system.Root.Send(o.pid, drop)
	select {
	case <-drop.done:
	case <-time.After(o.DrainTimeout):
		o.Log.Warn("partition did not drain in time", "partition", o.partition)
		if ctx.Err() == nil { // to be claimed again only when it is empty
			select {
			case <-drop.done:
			case <-ctx.Done():
			}
		}
	}
	if drop.drain != "" {
		o.release(lease)
	} else {
		o.Log.Warn("partition lost", "partition", o.partition, "error", lost)
	}
}

// receive passes deliveries on until the session ends.
func (o *owner) receive(session context.Context, r eventstore.Receiver, end func(error)) {
	o.steps.Go(func() { o.warm(session) })
	ticker := time.NewTicker(holdEvery)
	defer ticker.Stop()
	stop := context.AfterFunc(session, r.Close)
	defer stop()
	ticking := make(chan struct{})
	go func() {
		defer close(ticking)
		for {
			select {
			case <-session.Done():
				return
			case <-ticker.C:
				o.system.Root.Send(o.pid, &tick{})
			}
		}
	}()
	defer func() { <-ticking }()
	for {
		d, err := r.Next(session)
		switch {
		case session.Err() != nil:
			return
		case errors.Is(err, eventstore.ErrPartitionLost):
			end(err)
			return
		case err != nil:
			o.Log.Warn("receive", "partition", o.partition, "error", err)
			pause(session, 100*time.Millisecond)
		default:
			o.arrive(session, d)
		}
	}
}

// warm rebuilds the partition's conversations in the background: the roll is
// called from actors. Where the log is too long to be read whole, and where it
// is broken, they are loaded one by one.
func (o *owner) warm(session context.Context) {
	o.replays.of(session, o.partition, func(got rebuilt) {
		if got.err == nil {
			o.system.Root.Send(o.pid, &warm{keys: got.broken, states: got.states})
			return
		}
		if session.Err() == nil && !errors.Is(got.err, errTooLong) {
			o.Log.Warn("read the log to rebuild conversations", "partition", o.partition, "error", got.err)
		}
		o.warmOneByOne(session)
	})
}

func (o *owner) warmOneByOne(session context.Context) {
	keys, err := o.Store.Conversations(session, []int{o.partition})
	if err != nil {
		if session.Err() == nil {
			o.Log.Warn("list conversations", "partition", o.partition, "error", err)
		}
		return
	}
	o.system.Root.Send(o.pid, &warm{keys: keys})
}

// arrive decodes a delivery. What can never be a command is answered or goes
// to the dead letters here, before any conversation hears of it.
func (o *owner) arrive(ctx context.Context, d eventstore.Delivery) {
	o.busy()
	e := d.Envelope()
	it := &item{delivery: d, reply: ingress.ReplyTo(e)}
	cmd, err := ingress.Decode(e, d.Seq(), d.Time())
	if err == nil {
		it.command = cmd
		err = o.bodies(ctx, e.Key, cmd)
	}
	if err == nil {
		o.system.Root.Send(o.pid, &arrived{key: e.Key, item: it})
		return
	}
	if refused, ok := asRefusal(err); ok {
		o.refuse(ctx, e.Key, it, refused)
		return
	}
	if ctx.Err() == nil {
		o.Log.Error("inbox message left for redelivery", "seq", d.Seq(), "error", err)
	}
}

// bodyPatience is how long an arriving message waits for its body to be
// stored. Meanwhile those behind it wait too: they come in order.
const bodyPatience = 30 * time.Second

// bodies waits out short faults: a message left for redelivery comes only
// after minutes.
func (o *owner) bodies(ctx context.Context, key domain.Key, cmd *rollcallv1.Command) error {
	ctx, cancel := context.WithTimeout(ctx, bodyPatience)
	defer cancel()
	retry := delays(50*time.Millisecond, 2*time.Second)
	for {
		err := o.checkBodies(ctx, key, cmd)
		if err == nil {
			err = o.storeBodies(ctx, key, cmd)
		}
		if _, refused := asRefusal(err); err == nil || refused || ctx.Err() != nil {
			return err
		}
		pause(ctx, retry())
	}
}

// renew keeps the lease, claimed at the given time, until ctx ends; it ends the
// session when it cannot.
func (o *owner) renew(ctx context.Context, lease eventstore.Lease, last time.Time, end func(error)) {
	// A lease that could not be renewed is given up before it lapses, so that
	// runs end while they are still ours. A renewal that is merely slow has as
	// long as it can.
	giveUpAfter := lease.TTL * 17 / 20
	ticker := time.NewTicker(lease.TTL / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		// The lease runs from before it was asked for, and an attempt that
		// hangs must not outlast the time left.
		asked := time.Now()
		attempt, cancel := context.WithDeadline(ctx, last.Add(giveUpAfter))
		err := o.Store.Renew(attempt, lease)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			last = asked
		case errors.Is(err, eventstore.ErrPartitionLost) || time.Since(last) >= giveUpAfter:
			end(eventstore.ErrPartitionLost)
			return
		}
	}
}

func (o *owner) release(lease eventstore.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := o.Store.Release(ctx, lease); err != nil && !errors.Is(err, eventstore.ErrPartitionLost) {
		o.Log.Warn("release partition", "partition", o.partition, "error", err)
	}
}

// refuse tells whoever asked; a message that nobody waits for goes to the dead
// letters, so that it is not lost without a trace. The message is gone before
// the answer is given: what was refused must not come again and be done.
func (rt *runtime) refuse(ctx context.Context, key domain.Key, it *item, r *rollcallv1.Refusal) {
	var err error
	if it.reply != "" {
		err = it.delivery.Ack(ctx)
	} else {
		err = it.delivery.Dead(ctx, r.GetCode()+": "+r.GetWhat()+": "+r.GetWhy())
	}
	if err != nil && ctx.Err() == nil {
		rt.Log.Warn("inbox message not settled; it will come again", "seq", it.delivery.Seq(), "error", err)
	}
	if err == nil && it.reply != "" {
		rt.Answer(it.reply, &rollcallv1.Answer{Conversation: key.Conversation, Command: it.command.GetId(), Refusal: r})
	}
}

// pause waits, or less when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
