package eventstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Receive implements Inbox.
//
// Every lease has a consumer of its own name. The one before it is deleted
// first: what it had delivered and not acknowledged comes at once and in order,
// and what its owner acknowledges late reaches nobody.
func (j *JetStream) Receive(ctx context.Context, l Lease) (Receiver, error) {
	// The consumer of an attempt that timed out may be there in a moment: where a
	// server is gone, a group of three takes seconds to find its leader. To delete
	// it then would be to begin again.
	keep := ""
	for wait := newBackoff(); ; keep = consumerName(l) {
		err := j.replaceConsumers(ctx, l, keep)
		if err == nil {
			break
		}
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			err = nats.ErrTimeout
		}
		// Another owner's consumer came in between: look again who is newer.
		between := hasCode(err, codeConsumerOverlap, codeConsumerExists, codeConsumerInUse, codeConsumerFailed)
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

// replaceConsumers deletes the consumers of the partition's earlier leases, and
// one of this lease that is not to be kept.
func (j *JetStream) replaceConsumers(ctx context.Context, l Lease, keep string) error {
	s, err := j.js.Stream(ctx, StreamInbox)
	if err != nil {
		return err
	}
	names := s.ConsumerNames(ctx)
	var old []string
	for name := range names.Name() {
		partition, epoch, ok := parseConsumer(name)
		switch {
		case !ok || partition != l.Partition || name == keep:
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
	s, err := j.standing(ctx, l)
	return s.unacknowledged, err
}
