package natsd

import (
	"context"
	"fmt"
	"time"
)

// WaitCluster waits until one of the servers leads the cluster and all of them
// are current: streams can be made then.
func WaitCluster(ctx context.Context, servers ...*Server) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !agreed(servers) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for a cluster of %d servers: %w", len(servers), ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

func agreed(servers []*Server) bool {
	leaders := 0
	for _, s := range servers {
		if !s.inner.JetStreamIsCurrent() {
			return false
		}
		if s.inner.JetStreamIsLeader() {
			leaders++
			if len(s.inner.JetStreamClusterPeers()) != len(servers) {
				return false
			}
		}
	}
	return leaders == 1
}
