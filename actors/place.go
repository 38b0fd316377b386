package actors

import (
	"hash/fnv"
	"slices"
	"strconv"
)

// place suggests, for each partition, the node that should work on it. Every
// node works it out for itself from the nodes that are there; only a claim
// decides.
//
// It is rendezvous hashing with room: each node has as many partitions as any
// other, or one more, and a node that comes or goes moves few of the others'.
func place(nodes []string, partitions []int) map[int]string {
	wanted := make(map[int]string, len(partitions))
	if len(nodes) == 0 {
		return wanted
	}
	nodes, partitions = slices.Clone(nodes), slices.Clone(partitions)
	slices.Sort(nodes)
	slices.Sort(partitions)
	even, more := len(partitions)/len(nodes), len(partitions)%len(nodes)
	has := make(map[string]int, len(nodes))
	for _, p := range partitions {
		best, highest := "", uint64(0)
		for _, n := range nodes {
			if has[n] > even || has[n] == even && more == 0 {
				continue
			}
			if s := score(n, p); best == "" || s > highest {
				best, highest = n, s
			}
		}
		if has[best] == even {
			more--
		}
		has[best]++
		wanted[p] = best
	}
	return wanted
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
