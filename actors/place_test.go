package actors

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/rollcall-dev/rollcall/domain"
)

func all(string, int) bool { return true }

func allPartitions() (all []int) {
	for p := range domain.Partitions {
		all = append(all, p)
	}
	return all
}

func TestPlaceIsEvenAndTheSameForAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9-]{1,20}`), 1, 40, rapid.ID[string]).Draw(t, "nodes")
		wanted := place(nodes, allPartitions(), all)
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
		if !maps.Equal(wanted, place(shuffled, allPartitions(), all)) {
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
			before, after := place(nodes[:n], allPartitions(), all), place(nodes, allPartitions(), all)
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
	if got := place(nil, allPartitions(), all); len(got) != 0 {
		t.Errorf("no nodes, yet %v", got)
	}
}

// Who understands what stands in a partition has it, whatever room there is.
func TestPlaceGoesToTheAble(t *testing.T) {
	nodes := []string{"old-1", "old-2", "new"}
	wanted := place(nodes, allPartitions(), func(node string, p int) bool { return p >= 20 || node == "new" })
	for p := range 20 {
		if wanted[p] != "new" {
			t.Errorf("partition %d is placed on %s", p, wanted[p])
		}
	}
	has := map[string]int{}
	for _, n := range wanted {
		has[n]++
	}
	if has["new"] != 20 || has["old-1"]+has["old-2"] != 12 {
		t.Errorf("placed %v", has)
	}
	if wanted = place(nodes, allPartitions(), func(string, int) bool { return false }); len(wanted) != domain.Partitions {
		t.Errorf("without an able node %d partitions are placed", len(wanted))
	}
}
