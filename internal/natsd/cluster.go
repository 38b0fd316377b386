package natsd

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Agree waits until one of the servers leads the cluster and all of them
// are current: streams can be made then.
func Agree(ctx context.Context, servers ...*Server) error {
	return poll(ctx, fmt.Sprintf("wait for a cluster of %d servers", len(servers)), func() bool { return agreed(servers) })
}

// WaitCluster waits until this server is part of a cluster that has a leader
// for its streams, and has caught up with it: with three servers, two are
// enough, and a server alone waits for nobody. others are the names of the
// servers to expect beside this one; progress, if not nil, is told at once, and
// whenever it changes, which of them cannot be reached.
func (s *Server) WaitCluster(ctx context.Context, others []string, progress func(missing []string)) error {
	var told []string
	first := true
	return poll(ctx, "wait for the other servers of the cluster", func() bool {
		if missing := s.Missing(others); progress != nil && (first || !slices.Equal(told, missing)) {
			told, first = missing, false
			progress(missing)
		}
		return s.joined()
	})
}

// Missing are those of the named servers to which there is no route.
func (s *Server) Missing(others []string) []string {
	routes, err := s.inner.Routez(new(server.RoutezOptions))
	missing := slices.Clone(others)
	if err != nil {
		return missing
	}
	return slices.DeleteFunc(missing, func(name string) bool {
		return slices.ContainsFunc(routes.Routes, func(r *server.RouteInfo) bool { return r.RemoteName == name })
	})
}

// joined reports whether the cluster has a leader and this server knows all
// that the leader knows.
func (s *Server) joined() bool {
	if !s.inner.JetStreamIsCurrent() {
		return false
	}
	if !s.inner.JetStreamIsClustered() {
		return true
	}
	js, err := s.inner.Jsz(new(server.JSzOptions))
	return err == nil && js.Meta != nil && js.Meta.Leader != ""
}

func poll(ctx context.Context, what string, done func() bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
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
