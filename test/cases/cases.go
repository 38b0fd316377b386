// Package cases finds the tests that prove the acceptance cases of
// test/cases.txt. A test proves a case by carrying its name: as a string in
// the test's body (the name of a subtest or a row of a table), as the name of
// a testscript, or in camel case as the end of a test function's name.
//
// Whether the test proves it well is a reader's judgement; that it exists and
// passes is checked by test/policy and by `make cases`.
package cases

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// List is where the names are, relative to the module's root.
const List = "test/cases.txt"

// Place is a test function that carries a case's name.
type Place struct {
	// Package as a path relative to the module's root, such as "./domain".
	Package string
	// Test is the top-level test function.
	Test string
}

// Names reads the list under root.
func Names(root string) ([]string, error) {
	f, err := os.Open(filepath.Join(root, List))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var names []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name := strings.TrimSpace(lines.Text())
		if name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		if slices.Contains(names, name) {
			return nil, fmt.Errorf("%s names %s twice", List, name)
		}
		names = append(names, name)
	}
	return names, lines.Err()
}

// Find maps each of the names to the tests that carry it, in order of place.
func Find(root string, names []string) (map[string][]Place, error) {
	found := map[string]map[Place]bool{}
	add := func(name string, p Place) {
		if found[name] == nil {
			found[name] = map[Place]bool{}
		}
		found[name][p] = true
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch {
		case strings.HasPrefix(filepath.ToSlash(rel), "test/cases/"):
			return nil // the finder's own tests prove nothing
		case strings.HasSuffix(rel, ".txtar"):
			base := strings.TrimSuffix(filepath.Base(rel), ".txtar")
			if slices.Contains(names, base) {
				add(base, Place{Package: scriptsPackage(rel)})
			}
			return nil
		case strings.HasSuffix(rel, "_test.go"):
			return inFile(path, names, func(name, test string) {
				add(name, Place{Package: "./" + filepath.ToSlash(filepath.Dir(rel)), Test: test})
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	places := make(map[string][]Place, len(found))
	for name, set := range found {
		places[name] = slices.SortedFunc(maps.Keys(set), func(a, b Place) int {
			return strings.Compare(a.Package+a.Test, b.Package+b.Test)
		})
	}
	return places, nil
}

// scriptsPackage is the package whose testdata holds a script.
func scriptsPackage(rel string) string {
	before, _, _ := strings.Cut(filepath.ToSlash(rel), "/testdata/")
	return "./" + before
}

// inFile reports the names that the tests of one file carry. A string outside
// any test function (a table, a helper) counts for every test of the file.
func inFile(path string, names []string, report func(name, test string)) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	var all []string
	for _, decl := range file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && isTest(fn) {
			all = append(all, fn.Name.Name)
		}
	}
	for _, decl := range file.Decls {
		tests := all
		if fn, ok := decl.(*ast.FuncDecl); ok && isTest(fn) {
			tests = []string{fn.Name.Name}
		}
		for _, name := range carried(decl, names) {
			for _, test := range tests {
				report(name, test)
			}
		}
	}
	return nil
}

// carried lists the names that a declaration carries.
func carried(decl ast.Decl, names []string) []string {
	var found []string
	if fn, ok := decl.(*ast.FuncDecl); ok && isTest(fn) {
		for _, name := range names {
			if strings.TrimPrefix(fn.Name.Name, "Test") == camel(name) {
				found = append(found, name)
			}
		}
	}
	ast.Inspect(decl, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		if text, err := strconv.Unquote(lit.Value); err == nil && slices.Contains(names, text) {
			found = append(found, text)
		}
		return true
	})
	return found
}

func isTest(fn *ast.FuncDecl) bool {
	return fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain"
}

// camel turns mailbox-recheck into MailboxRecheck.
func camel(name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, "-") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}
