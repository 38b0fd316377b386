package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checkerMay is all that the independent checker and its own tests may import
// beside the standard library.
var checkerMay = []string{
	module + "proto/", "google.golang.org/protobuf/", "github.com/nats-io/nats.go/",
	module + "test/checker/", "pgregory.net/rapid", "go.uber.org/goleak",
}

// dependentChecker finds what would make the checker repeat the mistakes of what
// it checks.
func dependentChecker(r repo) []string {
	var broken []string
	for _, f := range r.code {
		if !within(f.dir(), "test/checker") {
			continue
		}
		for _, p := range slices.Sorted(maps.Keys(f.imports())) {
			ours := foreign(p) || strings.HasPrefix(p, module)
			if ours && !slices.ContainsFunc(checkerMay, func(pattern string) bool { return covers(pattern, p) }) {
				broken = append(broken, fmt.Sprintf("%s imports %s: the checker reads the log by itself, and shares the generated protobuf and nothing else", f.name, p))
			}
		}
	}
	return broken
}
