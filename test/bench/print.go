package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// print shows a workload's figures, a line each, a column for each system, and
// how many times the first system's is the last one's.
func (b *bench) print(workload, policy string, systems []string, results map[string]figures) {
	fmt.Fprintf(b.out, "\n%s, sync: %s\n", workload, policy)
	names := map[string]bool{}
	for _, f := range results {
		for name := range f {
			names[name] = true
		}
	}
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\t%s\tratio\t\n", strings.Join(systems, "\t"))
	first, last := systems[0], systems[len(systems)-1]
	for _, name := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(w, "%s\t", name)
		for _, s := range systems {
			fmt.Fprintf(w, "%s\t", shown(results[s], name))
		}
		ratio := ""
		x, y := results[first][name], results[last][name]
		if first != last && x != 0 && y != 0 && !isFault(name) && !strings.HasPrefix(name, "machine") {
			ratio = fmt.Sprintf("%.2f", x/y)
		}
		fmt.Fprintf(w, "%s\t\n", ratio)
	}
	_ = w.Flush() // what cannot be printed, nobody reads
}

func shown(f figures, name string) string {
	v, ok := f[name]
	switch {
	case !ok:
		return "-"
	case v == float64(int64(v)) || v >= 1000:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
