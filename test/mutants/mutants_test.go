package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// root is the module's root seen from this package's directory.
const root = "../.."

// The mutants are run by `make mutants`. Here it is only seen to that none of
// them rots: each still changes the piece of code it was made for, and the test
// that kills it is still there.
func TestMutantsFitTheCode(t *testing.T) {
	if len(All()) < 18 {
		t.Errorf("%d mutants", len(All()))
	}
	tests := map[string]*source{}
	names := map[string]bool{}
	for _, m := range All() {
		t.Run(m.Name, func(t *testing.T) {
			if names[m.Name] {
				t.Error("another mutant has its name")
			}
			names[m.Name] = true
			if !strings.HasSuffix(m.Breaks, ".") || strings.Count(m.Breaks, ". ") > 0 {
				t.Errorf("%q is not one sentence", m.Breaks)
			}
			text, err := m.mutated(root)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parser.ParseFile(token.NewFileSet(), m.File, text, 0); err != nil {
				t.Errorf("the mutant is no Go: %v", err)
			}
			if tests[m.Package] == nil {
				tests[m.Package] = testsOf(t, m.Package)
			}
			if missing := tests[m.Package].missing(m.Test); missing != "" {
				t.Errorf("%s has no test %q", m.Package, missing)
			}
		})
	}
}

// source is what a package's tests are called: its test functions, and the
// words that may name a subtest.
type source struct{ functions, words map[string]bool }

// shared are packages whose cases other packages run as subtests.
var shared = []string{"eventstore/storetest"}

func testsOf(t *testing.T, pkg string) *source {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no tests: %v", pkg, err)
	}
	for _, dir := range shared {
		more, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	s := &source{map[string]bool{}, map[string]bool{}}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				s.functions[n.Name.Name] = true
			case *ast.BasicLit:
				if word, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
					s.words[word] = true
				}
			}
			return true
		})
	}
	return s
}

func (s *source) missing(test string) string {
	function, rest, _ := strings.Cut(test, "/")
	if !s.functions[function] {
		return function
	}
	for part := range strings.SplitSeq(rest, "/") {
		if part != "" && !s.words[part] {
			return part
		}
	}
	return ""
}

// docs/mutants.md tells of each mutant: -list prints the rows.
func TestMutantsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/mutants.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range All() {
		if !strings.Contains(string(page), "\n"+m.row()+"\n") {
			t.Errorf("docs/mutants.md lacks this row:\n%s", m.row())
		}
	}
	if rows := strings.Count(string(page), "\n| `"); rows != len(All()) {
		t.Errorf("%d rows for %d mutants", rows, len(All()))
	}
}
