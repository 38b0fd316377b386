package eventstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Receive implements Inbox.
//
// Every lease has a consumer of its own name. The one before it is deleted
// first: what it had delivered and not acknowledged comes at once and in order,
// and what its owner acknowledges late reaches nobody.
func (j *JetStream) Receive(ctx context.Context, l Lease) (Receiver, error) {
	for wait := newBackoff(); ; {
		err := j.replaceConsumers(ctx, l)
		if err == nil {
			break
		}
		// Another owner's consumer came in between: look again who is newer.
		between := hasCode(err, codeConsumerOverlap, codeConsumerExists, codeConsumerInUse)
		if !between && !passing(err) || wait.sleep(ctx) != nil {
			return nil, fmt.Errorf("receive partition %d at epoch %d: %w", l.Partition, l.Epoch, err)
		}
	}
	r, err := newReceiver(j, l)
	if err != nil {
		return nil, fmt.Errorf("receive partition %d at epoch %d: %w", l.Partition, l.Epoch, err)
	}
	return r, nil
}

func (j *JetStream) replaceConsumers(ctx context.Context, l Lease) error {
	s, err := j.js.Stream(ctx, StreamInbox)
	if err != nil {
		return err
	}
	names := s.ConsumerNames(ctx)
	var old []string
	for name := range names.Name() {
		partition, epoch, ok := parseConsumer(name)
		switch {
		case !ok || partition != l.Partition:
		case epoch > l.Epoch:
			return fmt.Errorf("%w: epoch %d receives it", ErrPartitionLost, epoch)
		default:
			old = append(old, name)
		}
	}
	if err := names.Err(); err != nil {
		return err
	}
	for _, name := range old {
		err := s.DeleteConsumer(ctx, name)
		if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return err
		}
	}
	_, err = s.CreateConsumer(ctx, consumer(l))
	return err
}

// delivered asks how many messages the consumer has delivered and not yet seen
// acknowledged. A consumer that is gone is ErrPartitionLost.
func (j *JetStream) delivered(ctx context.Context, l Lease) (int, error) {
	c, err := j.js.Consumer(ctx, StreamInbox, consumerName(l))
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return 0, fmt.Errorf("partition %d at epoch %d: %w", l.Partition, l.Epoch, ErrPartitionLost)
	}
	if err != nil {
		return 0, err
	}
	return c.CachedInfo().NumAckPending, nil
}
