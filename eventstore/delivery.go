package eventstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// delivery is one message of a receiver.
type delivery struct {
	r        *receiver
	reply    string
	envelope Envelope
	seq      uint64
	time     time.Time
}

func (d *delivery) Envelope() Envelope { return d.envelope }
func (d *delivery) Seq() uint64        { return d.seq }
func (d *delivery) Time() time.Time    { return d.time }

// Ack implements Delivery. It repeats until the server confirms, ctx ends, or
// the consumer is gone: then nobody heard it and the message comes again, to
// the next owner.
func (d *delivery) Ack(ctx context.Context) error {
	for wait := newBackoff(); ; {
		_, err := d.r.j.request(ctx, &nats.Msg{Subject: d.reply, Data: []byte("+ACK")})
		if err == nil {
			err = d.removed(ctx)
		}
		if err == nil {
			d.r.settled(d.seq)
			return nil
		}
		if errors.Is(err, ErrPartitionLost) {
			return fmt.Errorf("acknowledge message %d: %w", d.seq, err)
		}
		if passing(err) {
			if _, gone := d.r.j.delivered(ctx, d.r.lease); errors.Is(gone, ErrPartitionLost) {
				return fmt.Errorf("acknowledge message %d: %w", d.seq, gone)
			}
		}
		if !passing(err) || wait.sleep(ctx) != nil {
			return fmt.Errorf("acknowledge message %d: %w", d.seq, err)
		}
	}
}

// removed waits until the stream's leader has removed the message. A replicated
// consumer confirms an acknowledgement before the stream has heard of it, and
// when the consumer is deleted in between, it never does.
func (d *delivery) removed(ctx context.Context) error {
	if !d.r.j.replicated {
		return nil
	}
	for wait := newBackoff(); ; {
		_, there, err := d.r.j.leaderGet(ctx, StreamInbox, getRequest{Seq: d.seq})
		if err != nil || !there {
			return err
		}
		if _, err := d.r.j.delivered(ctx, d.r.lease); err != nil {
			return err
		}
		if err := wait.sleep(ctx); err != nil {
			return err
		}
	}
}

// Hold implements Delivery.
func (d *delivery) Hold() error {
	if err := d.r.j.nc.Publish(d.reply, []byte("+WPI")); err != nil {
		return fmt.Errorf("hold message %d: %w", d.seq, err)
	}
	return nil
}

// Dead implements Delivery. Only an owner buries: the consumer is looked at
// first, and the inbox sequence makes a second burial the same one.
func (d *delivery) Dead(ctx context.Context, reason string) error {
	if _, err := d.r.j.delivered(ctx, d.r.lease); err != nil {
		return fmt.Errorf("dead letter %d: %w", d.seq, err)
	}
	if err := d.r.j.bury(ctx, d.envelope, d.seq, reason); err != nil {
		return fmt.Errorf("dead letter %d: %w", d.seq, err)
	}
	return d.Ack(ctx)
}
