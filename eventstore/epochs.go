package eventstore

import (
	"context"
	"errors"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// epochs tells the epoch that the next claim gets, and the one it must get so
// that it is higher than any in the log. They differ where the log and the
// bucket of nodes come from different backups.
func (f found) epochs(ctx context.Context, js jetstream.JetStream, cfg Config) (next, must uint64, err error) {
	nodes, events := f.have[streamNodes], f.have[StreamEvents]
	if nodes == nil || events == nil || events.State.Msgs == 0 {
		return 0, 0, nil
	}
	highest := uint64(0)
	if cfg.EveryEpoch {
		highest, err = highestEpoch(ctx, js)
	} else if highest, err = newestEpoch(ctx, js, events.State.LastSeq); highest > nodes.State.LastSeq {
		// Then others may be higher still.
		highest, err = highestEpoch(ctx, js)
	}
	next = nodes.State.LastSeq + 1
	return next, max(next, highest+1), err
}

// raiseEpochs makes the next claim's epoch higher than any in the log, and
// drops the claims there are if it was not.
func (f found) raiseEpochs(ctx context.Context, js jetstream.JetStream, cfg Config) error {
	next, must, err := f.epochs(ctx, js, cfg)
	if err != nil || must <= next {
		return err
	}
	s, err := stream(ctx, js, streamNodes)
	if err != nil {
		return err
	}
	return within(ctx, makeTimeout, func(ctx context.Context) error { return s.Purge(ctx, jetstream.WithPurgeSequence(must)) })
}

// newestEpoch is that of the newest commit.
func newestEpoch(ctx context.Context, js jetstream.JetStream, last uint64) (uint64, error) {
	s, err := stream(ctx, js, StreamEvents)
	if err != nil {
		return 0, err
	}
	var m *jetstream.RawStreamMsg
	err = within(ctx, tryTimeout, func(ctx context.Context) (err error) { m, err = s.GetMsg(ctx, last); return err })
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return epochOf(m.Header), nil
}

func epochOf(h nats.Header) uint64 {
	epoch, _ := strconv.ParseUint(h.Get(headerEpoch), 10, 64)
	return epoch
}

// highestEpoch reads the epoch of every conversation's last commit.
func highestEpoch(ctx context.Context, js jetstream.JetStream) (uint64, error) {
	s, err := stream(ctx, js, StreamEvents)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, nil
	}
	if err != nil || s.CachedInfo().State.Msgs == 0 {
		return 0, err
	}
	c, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, HeadersOnly: true, InactiveThreshold: followIdle,
	})
	if err != nil {
		return 0, err
	}
	it, err := c.Messages()
	if err != nil {
		return 0, err
	}
	defer it.Stop()
	for highest := uint64(0); ; {
		m, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return 0, err
		}
		highest = max(highest, epochOf(m.Headers()))
		if meta, err := m.Metadata(); err != nil || meta.NumPending == 0 {
			return highest, err
		}
	}
}
