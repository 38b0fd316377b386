package memory

import (
	"context"
	"maps"
	"time"

	"github.com/rollcall-dev/rollcall/eventstore"
)

type announced struct {
	eventstore.NodeInfo
	until time.Time
}

// Announce implements eventstore.Nodes.
func (s *Store) Announce(_ context.Context, n eventstore.NodeInfo) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.Quarantined = maps.Clone(n.Quarantined)
	s.nodes[n.Name] = announced{n, time.Now().Add(s.LeaseTTL)}
	return s.LeaseTTL, nil
}

// Withdraw implements eventstore.Nodes.
func (s *Store) Withdraw(_ context.Context, node string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, node)
	return nil
}

// Drain implements eventstore.Nodes.
func (s *Store) Drain(_ context.Context, node string, on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on {
		s.drained[node] = true
	} else {
		delete(s.drained, node)
	}
	return nil
}

// Cluster implements eventstore.Nodes.
func (s *Store) Cluster(context.Context) (eventstore.Cluster, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := eventstore.Cluster{Nodes: map[string]eventstore.NodeInfo{}, Owners: map[int]eventstore.Owner{}, Drained: maps.Clone(s.drained)}
	now := time.Now()
	for name, n := range s.nodes {
		if now.Before(n.until) {
			c.Nodes[name] = n.NodeInfo
		}
	}
	for p, l := range s.leases {
		if l.Node != "" && now.Before(l.until) {
			c.Owners[p] = eventstore.Owner{Node: l.Node, Epoch: l.Epoch}
		}
	}
	return c, nil
}
