package actors

import (
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/rollcall-dev/rollcall/eventstore"
)

// place suggests, for each partition, the node that should work on it. Every
// node works it out for itself from the nodes that are there; only a claim
// decides.
//
// It is rendezvous hashing with room: each node has as many partitions as any
// other, or one more, and a node that comes or goes moves few of the others'.
// A partition goes to the nodes that are able to work on it, whatever room they
// have, as long as there is one.
func place(nodes []string, partitions []int, able func(node string, partition int) bool) map[int]string {
	wanted := make(map[int]string, len(partitions))
	if len(nodes) == 0 {
		return wanted
	}
	nodes, partitions = slices.Clone(nodes), slices.Clone(partitions)
	slices.Sort(nodes)
	slices.Sort(partitions)
	even, more := len(partitions)/len(nodes), len(partitions)%len(nodes)
	has := make(map[string]int, len(nodes))
	room := func(n string) bool { return has[n] < even || has[n] == even && more > 0 }
	for _, p := range partitions {
		can := slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return !able(n, p) })
		if len(can) == 0 {
			can = nodes
		}
		best := highest(p, can, room)
		if best == "" {
			best = highest(p, can, func(string) bool { return true })
		}
		if has[best] == even {
			more--
		}
		has[best]++
		wanted[p] = best
	}
	return wanted
}

// highest is the node that suits the partition best; empty when none may.
func highest(partition int, nodes []string, may func(string) bool) (best string) {
	for _, n := range nodes {
		if may(n) && (best == "" || score(n, partition) > score(best, partition)) {
			best = n
		}
	}
	return best
}

// score is how well a node suits a partition: the same number everywhere.
func score(node string, partition int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(node + "/" + strconv.Itoa(partition)))
	// Names differ in few letters, and FNV's high bits hardly: mix them.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// takers are the nodes that take partitions.
func takers(c eventstore.Cluster) (names []string) {
	for name := range c.Nodes {
		if takes(c, name) {
			names = append(names, name)
		}
	}
	return names
}

// understands tells which nodes are able to work on a partition: those that
// know the newest schema that any node met there.
func understands(c eventstore.Cluster) func(node string, partition int) bool {
	needed := map[int]uint32{}
	for _, n := range c.Nodes {
		for p, schema := range n.Newer {
			needed[p] = max(needed[p], schema)
		}
	}
	return func(node string, partition int) bool { return c.Nodes[node].Schema >= needed[partition] }
}

func takes(c eventstore.Cluster, node string) bool {
	n, there := c.Nodes[node]
	return there && !n.Leaving && !n.ReadsOnly && !c.Drained[node]
}
