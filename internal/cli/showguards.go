package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// showGuards says which guards had something to do, and how often.
func showGuards(w io.Writer, hits map[string]uint64) {
	if len(hits) == 0 {
		return
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(hits)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, hits[name]))
	}
	fmt.Fprintf(w, "\nguards   %s\n", strings.Join(parts, ", "))
}
