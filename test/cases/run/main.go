// Command run runs the acceptance cases of test/cases.txt and prints where
// each is proved and whether it holds. It exits 1 when one does not, or when
// one has no test.
package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/rollcall-dev/rollcall/test/cases"
)

func main() {
	ok, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cases:", err)
		os.Exit(1)
	}
	if !ok {
		os.Exit(1)
	}
}

func run() (bool, error) {
	names, err := cases.Names(".")
	if err != nil {
		return false, err
	}
	places, err := cases.Find(".", names)
	if err != nil {
		return false, err
	}
	failed := map[cases.Place]bool{}
	for _, pkg := range packages(places) {
		if err := test(pkg, places, failed); err != nil {
			return false, fmt.Errorf("%s: %w", pkg, err)
		}
	}
	all := true
	fmt.Println()
	for _, name := range names {
		mark, where := "ok  ", []string{}
		for _, p := range places[name] {
			word := strings.TrimSuffix(p.Package+" "+p.Test, " ")
			if failed[p] {
				mark, word = "FAIL", word+" (fails)"
			}
			where = append(where, word)
		}
		if len(where) == 0 {
			mark, where = "NONE", []string{"no test carries this name"}
		}
		all = all && mark == "ok  "
		fmt.Printf("%s  %-42s %s\n", mark, name, strings.Join(where, ", "))
	}
	return all, nil
}

func packages(places map[string][]cases.Place) []string {
	set := map[string]bool{}
	for _, ps := range places {
		for _, p := range ps {
			set[p.Package] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// event is a line of go test -json.
type event struct {
	Action, Test, Output string
}

// test runs the tests of one package that carry a case, or all of them when a
// script does, and notes those that do not pass. It prints what go test says
// of the package, and of the tests that fail.
func test(pkg string, places map[string][]cases.Place, failed map[cases.Place]bool) error {
	tests := map[string]bool{}
	for _, ps := range places {
		for _, p := range ps {
			if p.Package == pkg {
				tests[p.Test] = true
			}
		}
	}
	args := []string{"test", "-json", "-count=1"}
	if !tests[""] {
		args = append(args, "-run", "^("+strings.Join(slices.Sorted(maps.Keys(tests)), "|")+")$")
	}
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	passed, said := map[string]bool{}, map[string]string{}
	for lines := json.NewDecoder(out); ; {
		var e event
		if err := lines.Decode(&e); err != nil {
			break // the end, or no JSON: then nothing passed
		}
		top, _, _ := strings.Cut(e.Test, "/")
		said[top] += e.Output
		switch {
		case e.Test == top && e.Action == "pass":
			passed[top] = true
		case e.Test == top && e.Action == "fail":
			fmt.Print(said[top])
		}
	}
	if err := cmd.Wait(); err != nil && len(said) == 0 {
		return err
	}
	if passed[""] {
		fmt.Print(said[""])
	}
	for name := range tests {
		failed[cases.Place{Package: pkg, Test: name}] = !passed[name]
	}
	return nil
}
