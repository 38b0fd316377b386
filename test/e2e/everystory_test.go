package e2e_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// unsettled tests do not end with settle, for the reason given.
var unsettled = map[string]string{
	"TestANodeAloneIsClosed": "nobody gets in: there is no conversation",
	"TestAnchor":             "3,000 of its runs hang for ever; the checker judges its log",
	"TestInputHuge":          "another server answers than the one with the record",
	"TestInputLongLog":       "its log is written by hand: no server answered",
	"TestScriptWithErrors":   "no node ever runs",
}

// replay-equals holds for every story here: a test that makes an installation
// ends with settle, which holds each log against the model server's record byte
// for byte, and every view and state against what the log alone gives.
func TestEveryStoryIsReplayed(t *testing.T) {
	paths, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(fn.Name.Name, "Test") || !names(fn, "newPlace") && !names(fn, "newFleet") {
				continue
			}
			told++
			settles := names(fn, "settle")
			if why := unsettled[fn.Name.Name]; settles == (why != "") {
				t.Errorf("%s settles: %v; the reason not to: %q", fn.Name.Name, settles, why)
			}
		}
	}
	if told < 20 {
		t.Errorf("only %d stories are found", told)
	}
}

// names reports whether a function names another.
func names(fn *ast.FuncDecl, name string) (found bool) {
	ast.Inspect(fn, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == name
		return true
	})
	return found
}
