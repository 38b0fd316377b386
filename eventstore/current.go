package eventstore

import (
	"context"
	"time"

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

// heard reports whether a leader heard from so many replicas within a time that
// with itself they are most.
func heard(c *jetstream.ClusterInfo, within time.Duration) bool {
	if c == nil {
		return true
	}
	n := 1
	for _, r := range c.Replicas {
		if !r.Offline && r.Active < within {
			n++
		}
	}
	return 2*n > len(c.Replicas)+1
}
