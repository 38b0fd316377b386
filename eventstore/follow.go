package eventstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/domain"
)

// followIdle is how long a follower's consumer outlives a lost follower.
const followIdle = 30 * time.Second

// followHeartbeat is how often the server says that a follower's consumer is
// still there. It lives on one server: after two beats missed it is made anew on
// another.
const followHeartbeat = time.Second

// Follow implements Log. When the server goes away it goes on from where it was
// as soon as it is back.
func (j *JetStream) Follow(ctx context.Context, seq uint64, fn func(Recorded) error, skipped func(uint64, string, error)) error {
	f := &follower{j: j, seq: seq, fn: fn, skipped: skipped}
	for wait := newBackoff(); ; {
		from := f.seq
		err := f.run(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case f.failed != nil:
			return f.failed
		case errors.Is(err, nats.ErrConnectionClosed):
			return fmt.Errorf("follow the log after sequence %d: %w", f.seq, err)
		}
		j.log.Debug("following the log again", "after", f.seq, "because", err)
		if f.seq > from {
			wait = newBackoff()
		}
		if wait.sleep(ctx) != nil {
			return ctx.Err()
		}
	}
}

type follower struct {
	j       *JetStream
	seq     uint64
	fn      func(Recorded) error
	skipped func(uint64, string, error)
	// failed is the error of fn, which ends everything.
	failed error
}

// run follows by one consumer, until it is no use any more. The client library's
// ordered consumer would make a new one by itself, but goes on trying for as long
// as NATS is away, whoever wants to stop.
func (f *follower) run(ctx context.Context) error {
	var c jetstream.Consumer
	err := within(ctx, tryTimeout, func(ctx context.Context) error {
		s, err := f.j.js.Stream(ctx, StreamEvents)
		if err != nil {
			return err
		}
		c, err = s.CreateConsumer(ctx, jetstream.ConsumerConfig{
			DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: f.seq + 1,
			AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: followIdle,
		})
		return err
	})
	if err != nil {
		return err
	}
	defer f.drop(c)
	it, err := c.Messages(jetstream.PullHeartbeat(followHeartbeat))
	if err != nil {
		return err
	}
	defer it.Stop()
	for delivered := uint64(1); ; delivered++ {
		m, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if meta.Sequence.Consumer != delivered {
			return fmt.Errorf("delivery %d came where %d was due", meta.Sequence.Consumer, delivered)
		}
		if err := f.take(stored{subject: m.Subject(), seq: meta.Sequence.Stream, time: meta.Timestamp, header: m.Headers(), data: m.Data()}); err != nil {
			return err
		}
	}
}

func (f *follower) take(m stored) error {
	if m.seq <= f.seq {
		return nil
	}
	key, err := ParseEventSubject(m.subject)
	rec := Recorded{Key: key, Seq: m.seq, Raw: m.data}
	if err == nil {
		rec.Commit, err = openCommit(m)
	}
	if err != nil {
		f.seq = m.seq
		if f.skipped != nil {
			f.skipped(m.seq, m.subject, err)
		}
		return nil
	}
	if f.failed = f.fn(rec); f.failed != nil {
		return f.failed
	}
	f.seq = m.seq
	return nil
}

// drop deletes the consumer at once: the server allows only so many.
func (f *follower) drop(c jetstream.Consumer) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if info := c.CachedInfo(); info != nil {
		_ = f.j.js.DeleteConsumer(ctx, StreamEvents, info.Name)
	}
}

// Conversations implements Log.
func (j *JetStream) Conversations(ctx context.Context, partitions []int) ([]domain.Key, error) {
	s, err := j.js.Stream(ctx, StreamEvents)
	if err != nil {
		return nil, fmt.Errorf("list conversations: %w", err)
	}
	var keys []domain.Key
	for _, p := range partitions {
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(eventsOf(p)))
		if err != nil {
			return nil, fmt.Errorf("list conversations of partition %d: %w", p, err)
		}
		for subject := range info.State.Subjects {
			if k, err := ParseEventSubject(subject); err == nil {
				keys = append(keys, k)
			}
		}
	}
	return keys, nil
}
