package eventstore

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Current implements Log.
func (j *JetStream) Current(ctx context.Context) error {
	if !j.replicated {
		return nil
	}
	for begun, wait := time.Now(), newBackoff(); ; {
		asked := time.Since(begun)
		try, cancel := context.WithTimeout(ctx, tryTimeout)
		s, err := j.js.Stream(try, StreamEvents) // only a leader answers
		cancel()
		if err == nil && heard(s.CachedInfo().Cluster, asked) {
			return nil
		}
		if err := wait.sleep(ctx); err != nil {
			return err
		}
	}
}

// LastSeq implements Log. A replica without a leader tells of the stream in its
// place, and a leader that was cut off tells of the past: neither is believed.
//
// After damage the stream may remember a higher sequence than that of the last
// message that it has; nobody can read on to that one.
func (j *JetStream) LastSeq(ctx context.Context) (uint64, error) {
	var state jetstream.StreamState
	err := persist(ctx, func() error {
		s, err := j.js.Stream(ctx, StreamEvents)
		if err != nil {
			return err
		}
		if state = s.CachedInfo().State; j.replicated && !heard(s.CachedInfo().Cluster, silentFor) {
			return errLeaderless
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("last sequence of the log: %w", err)
	}
	if state.Msgs == 0 {
		return 0, nil
	}
	if state.NumDeleted == 0 {
		return state.LastSeq, nil
	}
	m, ok, err := j.leaderGet(ctx, StreamEvents, getRequest{LastFor: prefixEvents + ">"})
	if err != nil || !ok {
		return 0, err
	}
	return m.seq, nil
}

// silentFor is several of the heartbeats that replicas answer once a second.
const silentFor = 5 * time.Second

// errLeaderless is what a publish would come to.
var errLeaderless = fmt.Errorf("the log has no leader that most replicas know: %w", nats.ErrNoResponders)

// heard reports whether a leader heard from so many replicas within a time that
// with itself they are most. A replica without a leader answers too, and neither
// knows when it last heard from others: they are active at 0.
func heard(c *jetstream.ClusterInfo, within time.Duration) bool {
	if c == nil {
		return true
	}
	n := 1
	for _, r := range c.Replicas {
		if !r.Offline && r.Active > 0 && r.Active < within {
			n++
		}
	}
	return c.Leader != "" && 2*n > len(c.Replicas)+1
}
