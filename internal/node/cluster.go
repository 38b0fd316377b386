package node

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rollcall-dev/rollcall/actors"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
)

// cluster tells the service of the other nodes.
type cluster struct {
	store eventstore.Nodes
	node  *actors.Node
	name  string
}

// Peers implements api.Cluster.
func (c *cluster) Peers() (names []string) {
	for name := range c.node.Cluster().Nodes {
		if name != c.name {
			names = append(names, name)
		}
	}
	return names
}

// Nodes implements api.Cluster.
func (c *cluster) Nodes(ctx context.Context) ([]api.NodeLine, error) {
	found, err := c.store.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	lines := map[string]*api.NodeLine{}
	for name, n := range found.Nodes {
		l := &api.NodeLine{Name: name, Status: "up", Place: n.Place, Version: n.Version, Started: &n.Started}
		switch {
		case n.Leaving:
			l.Status = "leaving"
		case n.ReadsOnly:
			l.Status = "no model"
		}
		lines[name] = l
	}
	line := func(name string) *api.NodeLine {
		if lines[name] == nil { // killed, and its claims have not lapsed yet; or drained and stopped
			lines[name] = &api.NodeLine{Name: name, Status: "gone"}
		}
		return lines[name]
	}
	for p, owner := range found.Owners {
		l := line(owner.Node)
		l.Partitions = append(l.Partitions, p)
	}
	for name := range found.Drained {
		line(name).Drained = true
	}
	out := make([]api.NodeLine, 0, len(lines))
	for _, l := range lines {
		slices.Sort(l.Partitions)
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b api.NodeLine) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Drain implements api.Cluster.
func (c *cluster) Drain(ctx context.Context, name string, on bool) error {
	return c.store.Drain(ctx, name, on)
}

// roller lets the service ask the actors.
type roller struct{ node *actors.Node }

// Roll implements api.Roller.
func (r roller) Roll(ctx context.Context, key domain.Key, partitions []int) (members []api.MemberRoll, covered []int, err error) {
	for _, p := range partitions {
		if !r.node.Elsewhere(p) {
			covered = append(covered, p)
		}
	}
	present, err := r.node.Roll(ctx, key, covered...)
	covered = slices.DeleteFunc(covered, r.node.Elsewhere)
	for _, p := range present {
		members = append(members, api.MemberRoll{
			Conversation: p.Conversation, ID: p.Member, Name: p.Name, Status: p.Status, Unread: p.Unread,
			Node: p.Node, Version: p.Version, StateHash: p.StateHash,
		})
	}
	return members, covered, err
}

// nameIsFree waits out what an earlier life elsewhere said of itself, and
// refuses a name that another process goes on using: its data directory was
// copied, perhaps with its machine.
func (n *Node) nameIsFree(ctx context.Context, store eventstore.Nodes, here string) error {
	var other eventstore.NodeInfo
	for end := time.Now().Add(2 * eventstore.LeaseTTL); time.Now().Before(end); wait(ctx, 100*time.Millisecond) {
		found, err := store.Cluster(ctx)
		if err != nil {
			return err
		}
		held := false
		if other, held = found.Nodes[n.name]; !held || other.Place == here {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return domain.Refuse("node-name-taken", "another node has the name of this one", n.name+" runs at "+other.Place,
		"stop that one, or delete node.name in the copied data directory")
}
