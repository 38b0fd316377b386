package actors

import (
	"maps"

	"github.com/rollcall-dev/rollcall/domain"
)

// understood refuses a state that a newer program wrote to. Then the
// conversation is set aside: its messages are held, unacknowledged, until a node
// that understands it has the partition. The other nodes are told, and give the
// partition to such a one.
func (c *conversation) understood(s *domain.State) error {
	err := s.Understood()
	if err != nil {
		c.peers.metNewer(c.lease.Partition, s.Newer)
	}
	return err
}

// metNewer notes that a partition holds commits of a newer version than this
// node knows. It is never forgotten: the log keeps them.
func (p *peers) metNewer(partition int, version uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.self.Newer[partition] >= version {
		return
	}
	// Who reads the one before may keep it.
	newer := maps.Clone(p.self.Newer)
	if newer == nil {
		newer = map[int]uint32{}
	}
	newer[partition] = version
	p.self.Newer, p.news = newer, true
}

// forgetAside forgets what was set aside of a partition that is let go: whoever
// has it next finds out for itself.
func (rt *runtime) forgetAside(partition int) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	maps.DeleteFunc(rt.quarantined, func(k domain.Key, _ error) bool { return k.Partition() == partition })
}
