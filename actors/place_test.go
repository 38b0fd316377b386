package actors

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/rollcall-dev/rollcall/domain"
)

func allPartitions() (all []int) {
	for p := range domain.Partitions {
		all = append(all, p)
	}
	return all
}

func TestPlaceIsEvenAndTheSameForAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9-]{1,20}`), 1, 40, rapid.ID[string]).Draw(t, "nodes")
		wanted := place(nodes, allPartitions())
		has := map[string]int{}
		for p := range domain.Partitions {
			if !slices.Contains(nodes, wanted[p]) {
				t.Fatalf("partition %d is placed on %q, of %q", p, wanted[p], nodes)
			}
			has[wanted[p]]++
		}
		least := domain.Partitions / len(nodes)
		for _, n := range nodes {
			if has[n] < least || has[n] > least+1 {
				t.Fatalf("%d nodes: %s has %d of %d", len(nodes), n, has[n], domain.Partitions)
			}
		}
		shuffled := rapid.Permutation(nodes).Draw(t, "shuffled")
		if !maps.Equal(wanted, place(shuffled, allPartitions())) {
			t.Fatal("the order in which nodes are listed matters")
		}
	})
}

// A node that joins takes its share, and few partitions move among the others.
func TestPlaceMovesFew(t *testing.T) {
	for n := 1; n < 6; n++ {
		moved, must := 0, 0
		const names = 50
		for i := range names {
			var nodes []string
			for j := range n + 1 {
				nodes = append(nodes, fmt.Sprintf("n-%d-%d", i, j))
			}
			before, after := place(nodes[:n], allPartitions()), place(nodes, allPartitions())
			for p := range domain.Partitions {
				if before[p] != after[p] {
					moved++
				}
			}
			must += domain.Partitions / (n + 1)
		}
		t.Logf("%d nodes and one more: %.1f partitions move, %.1f must", n, float64(moved)/names, float64(must)/names)
		if moved > 2*must {
			t.Errorf("%d nodes and one more: %d partitions move where %d must", n, moved, must)
		}
	}
	if got := place(nil, allPartitions()); len(got) != 0 {
		t.Errorf("no nodes, yet %v", got)
	}
}
