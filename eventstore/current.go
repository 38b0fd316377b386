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

// Led fails when nobody leads the log, or who does has not heard from most
// replicas for long: what is read then may be old. A replica without a leader
// tells of the stream in its place.
func (j *JetStream) Led(ctx context.Context) error {
	if !j.replicated {
		return nil
	}
	s, err := j.js.Stream(ctx, StreamEvents)
	if err == nil && !heard(s.CachedInfo().Cluster, silentFor) {
		err = errLeaderless
	}
	if err != nil {
		return fmt.Errorf("who leads the log: %w", err)
	}
	return nil
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

// Led asks the store that is guarded, if it knows.
func (g *guarded) Led(ctx context.Context) error {
	if l, ok := g.Store.(interface{ Led(context.Context) error }); ok {
		return l.Led(ctx)
	}
	return nil
}
