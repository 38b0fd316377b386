package eventstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// check looks at the consumer. What it delivered into a connection that broke
// would come again only after AckWait, and what it does not deliver at all, as
// consumers of restarted servers have been seen to do, never. Then the partition
// is given up, so that its next consumer brings it at once.
func (r *receiver) check(ctx context.Context) error {
	var missing int
	var now standing
	for wait := newBackoff(); ; {
		var err error
		now, err = r.j.standing(ctx, r.lease)
		if errors.Is(err, ErrPartitionLost) {
			r.lost = err
			return nil
		}
		if err != nil {
			return err
		}
		r.count.Lock()
		missing = now.unacknowledged - len(r.unsettled) - len(r.msgs)
		r.count.Unlock()
		if missing <= 0 {
			return r.stands(ctx, now)
		}
		// They may be on their way: look a few times before giving up.
		if wait.next > 500*time.Millisecond {
			break
		}
		if err := wait.sleep(ctx); err != nil {
			return err
		}
	}
	r.lose(fmt.Sprintf("%d deliveries were lost with a connection", missing))
	return nil
}

// standing is how a consumer stands.
type standing struct {
	// delivered and acknowledged count what it did so far.
	delivered, acknowledged uint64
	// waiting are the messages that it has still to deliver; unacknowledged those
	// that it has delivered.
	waiting, unacknowledged int
}

// standing asks the consumer. One that is gone is ErrPartitionLost.
func (j *JetStream) standing(ctx context.Context, l Lease) (standing, error) {
	var s standing
	err := within(ctx, tryTimeout, func(ctx context.Context) error {
		c, err := j.js.Consumer(ctx, StreamInbox, consumerName(l))
		if err != nil {
			return err
		}
		info := c.CachedInfo()
		s = standing{
			delivered: info.Delivered.Consumer, acknowledged: info.AckFloor.Consumer,
			waiting: int(min(info.NumPending, 1<<30)), unacknowledged: info.NumAckPending, //nolint:gosec // bounded
		}
		return nil
	})
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound):
		return s, fmt.Errorf("partition %d at epoch %d: %w", l.Partition, l.Epoch, ErrPartitionLost)
	case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return s, nats.ErrTimeout
	}
	return s, err
}

// stands compares what the stream holds of the partition with what the consumer
// knows and does. Messages that it does not bring at two looks, between which a
// pull waited for them and nothing moved, it never will.
func (r *receiver) stands(ctx context.Context, now standing) error {
	held, err := r.j.holding(ctx, commandsOf(r.lease.Partition))
	if err != nil {
		return err
	}
	if now.waiting == 0 && held <= now.unacknowledged {
		r.odd = nil
		return nil
	}
	if r.odd == nil || r.odd.delivered != now.delivered || r.odd.acknowledged != now.acknowledged || len(r.msgs) > 0 {
		r.odd, r.oddAt = &now, time.Now()
		return nil
	}
	if time.Since(r.oddAt) >= r.stalled {
		r.lose(fmt.Sprintf("its consumer does not bring %d messages that are there", max(held-now.unacknowledged, now.waiting)))
	}
	return nil
}

// holding counts the messages that the inbox holds under a subject; of very many
// subjects not all.
func (j *JetStream) holding(ctx context.Context, subject string) (int, error) {
	body, err := json.Marshal(map[string]string{"subjects_filter": subject})
	if err != nil {
		return 0, err
	}
	answer, err := j.request(ctx, &nats.Msg{Subject: "$JS.API.STREAM.INFO." + StreamInbox, Data: body})
	if err != nil {
		return 0, err
	}
	var got struct {
		State struct {
			Subjects map[string]int `json:"subjects"`
		} `json:"state"`
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &got); err != nil {
		return 0, err
	}
	if got.Error != nil {
		return 0, got.Error
	}
	n := 0
	for _, held := range got.State.Subjects {
		n += held
	}
	return n, nil
}
