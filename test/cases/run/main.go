// Command run runs the acceptance cases of test/cases.txt and prints where
// each is proved and whether it holds. It exits 1 when one does not, or when
// one has no test.
package main

import (
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
	failed := map[string]bool{}
	for _, pkg := range packages(places) {
		if err := test(pkg, places); err != nil {
			fmt.Fprintf(os.Stderr, "cases: %s: %v\n", pkg, err)
			failed[pkg] = true
		}
	}
	all := true
	fmt.Println()
	for _, name := range names {
		mark, where := "ok  ", []string{}
		for _, p := range places[name] {
			where = append(where, strings.TrimSuffix(p.Package+" "+p.Test, " "))
			if failed[p.Package] {
				mark = "FAIL"
			}
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

// test runs the tests of one package that carry a case, or all of them when a
// script does.
func test(pkg string, places map[string][]cases.Place) error {
	tests := map[string]bool{}
	for _, ps := range places {
		for _, p := range ps {
			if p.Package == pkg {
				tests[p.Test] = true
			}
		}
	}
	args := []string{"test", "-count=1"}
	if !tests[""] {
		args = append(args, "-run", "^("+strings.Join(slices.Sorted(maps.Keys(tests)), "|")+")$")
	}
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}
