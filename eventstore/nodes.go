package eventstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/domain"
)

// NodeInfo is what a node says of itself.
type NodeInfo struct {
	Name string `json:"name"`
	// Life tells this process from an earlier one, and from another that was
	// given the same name.
	Life string `json:"life"`
	// Place is the machine and data directory: a lock there keeps every other
	// process with this name out.
	Place   string    `json:"place,omitempty"`
	Version string    `json:"version,omitempty"`
	Started time.Time `json:"started"`
	// Schema is the newest version of commits that the node understands, and Newer
	// what it met beyond that, by partition.
	Schema uint32         `json:"schema,omitempty"`
	Newer  map[int]uint32 `json:"newer,omitempty"`
	// ReadsOnly: it takes no partition, for it has no model to ask.
	ReadsOnly bool `json:"reads_only,omitempty"`
	// Leaving: it lets go of its partitions and takes none.
	Leaving bool `json:"leaving,omitempty"`
	// Quarantined conversations, the first of them, by key with the reason.
	Quarantined map[string]string `json:"quarantined,omitempty"`
}

// Owner is who holds a partition.
type Owner struct {
	Node  string
	Epoch uint64
}

// Cluster is who is there and who works on what. It is a hint, perhaps a
// moment old: only a claim decides.
type Cluster struct {
	// Nodes that announced themselves within the time of a lease, by name.
	Nodes map[string]NodeInfo
	// Owners of the partitions; those of nobody are not in it.
	Owners map[int]Owner
	// Drained are the nodes that an operator wants to have nothing.
	Drained map[string]bool
}

// Nodes lets the nodes of a cluster know of each other.
type Nodes interface {
	// Announce says that the node is there, for the time returned: that of a lease.
	Announce(ctx context.Context, n NodeInfo) (time.Duration, error)
	// Withdraw takes the announcement back.
	Withdraw(ctx context.Context, node string) error
	// Cluster reads what there is to know.
	Cluster(ctx context.Context) (Cluster, error)
	// Drain asks a node, until it is taken back, to have no partition. It
	// outlives the node's restart.
	Drain(ctx context.Context, node string, on bool) error
}

const (
	keyOwner = "owner."
	keyNode  = "node."
	keyDrain = "drain."
)

func nodesSubject(key string) string { return "$KV." + BucketNodes + "." + key }

// Announce implements Nodes.
func (j *JetStream) Announce(ctx context.Context, n NodeInfo) (time.Duration, error) {
	data, err := json.Marshal(n)
	if err != nil {
		return 0, fmt.Errorf("announce node %s: %w", n.Name, err)
	}
	m := &nats.Msg{Subject: nodesSubject(keyNode + n.Name), Header: nats.Header{}, Data: data}
	m.Header.Set("Nats-TTL", j.leaseTTL.String())
	return j.leaseTTL, j.put(ctx, m, "announce node "+n.Name)
}

// Withdraw implements Nodes.
func (j *JetStream) Withdraw(ctx context.Context, node string) error {
	m := &nats.Msg{Subject: nodesSubject(keyNode + node), Header: nats.Header{}}
	m.Header.Set("Nats-TTL", j.leaseTTL.String())
	m.Header.Set("KV-Operation", "DEL")
	return j.put(ctx, m, "withdraw node "+node)
}

// Drain implements Nodes.
func (j *JetStream) Drain(ctx context.Context, node string, on bool) error {
	m := &nats.Msg{Subject: nodesSubject(keyDrain + node), Header: nats.Header{}}
	if !on {
		m.Header.Set("Nats-TTL", time.Minute.String())
		m.Header.Set("KV-Operation", "DEL")
	}
	return j.put(ctx, m, "drain node "+node)
}

func (j *JetStream) put(ctx context.Context, m *nats.Msg, what string) error {
	err := persist(ctx, func() error { _, err := j.publish(ctx, m); return err })
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Cluster implements Nodes.
func (j *JetStream) Cluster(ctx context.Context) (Cluster, error) {
	c := Cluster{Nodes: map[string]NodeInfo{}, Owners: map[int]Owner{}, Drained: map[string]bool{}}
	q := getRequest{LastForAll: []string{nodesSubject(">")}, Batch: batchMessages}
	for {
		last := q.Seq
		_, more, err := j.directBatch(ctx, streamNodes, q, func(s stored) error {
			last = max(last, s.seq)
			c.add(s)
			return nil
		})
		if err != nil {
			return Cluster{}, fmt.Errorf("read the bucket of nodes: %w", err)
		}
		if more == 0 {
			return c, nil
		}
		q.Seq = last + 1
	}
}

// add takes one key in. What is no key of ours is left out: the bucket is only
// a hint here.
func (c *Cluster) add(s stored) {
	if s.header.Get("KV-Operation") != "" {
		return
	}
	key := strings.TrimPrefix(s.subject, nodesSubject(""))
	switch kind, name, _ := strings.Cut(key, "."); kind + "." {
	case keyOwner:
		p, err := strconv.Atoi(name)
		var o claimed
		if err == nil && json.Unmarshal(s.data, &o) == nil && p >= 0 && p < domain.Partitions {
			if o.Epoch == 0 {
				o.Epoch = s.seq
			}
			c.Owners[p] = Owner{Node: o.Node, Epoch: o.Epoch}
		}
	case keyNode:
		var n NodeInfo
		if json.Unmarshal(s.data, &n) == nil && n.Name == name {
			c.Nodes[name] = n
		}
	case keyDrain:
		c.Drained[name] = true
	}
}
