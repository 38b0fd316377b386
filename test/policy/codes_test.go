package policy

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// catalogue is where every error code is explained.
const catalogue = "docs/errors.md"

var (
	row  = regexp.MustCompile("(?m)^\\| `([a-z][a-z0-9-]*)` \\|")
	code = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
)

// undocumentedCodes compares the codes that the code can answer with the rows
// of the catalogue, both ways.
func undocumentedCodes(r repo) []string {
	var broken []string
	rows := map[string]bool{}
	for _, m := range row.FindAllSubmatch(r.text[catalogue], -1) {
		name := string(m[1])
		if rows[name] {
			broken = append(broken, fmt.Sprintf("%s explains %s twice", catalogue, name))
		}
		rows[name] = true
	}
	codes, unreadable := givenCodes(r)
	broken = append(broken, unreadable...)
	for _, c := range slices.Sorted(maps.Keys(codes)) {
		if !code.MatchString(c) {
			broken = append(broken, fmt.Sprintf("%s: code %q is not in kebab-case", codes[c], c))
		}
		if !rows[c] {
			broken = append(broken, fmt.Sprintf("%s: code %s has no row in %s", codes[c], c, catalogue))
		}
	}
	for _, c := range slices.Sorted(maps.Keys(rows)) {
		if codes[c] == "" {
			broken = append(broken, fmt.Sprintf("%s explains %s, which nothing answers", catalogue, c))
		}
	}
	return broken
}

// givenCodes maps every code that the code can answer to a place that gives
// it, and lists the places where no reader could tell which code is given.
func givenCodes(r repo) (codes map[string]string, unreadable []string) {
	codes = map[string]string{}
	consts := stringConstants(r)
	takers := codeTakers(r)
	for _, f := range r.code {
		if f.isTest() || within(f.dir(), "test") {
			continue
		}
		for _, given := range codesIn(f, takers[f.dir()]) {
			value, ok := literal(f, given, consts)
			switch {
			case !ok:
				unreadable = append(unreadable, f.at(given)+": the code is neither a literal nor a constant: it cannot be looked up")
			case value != "":
				codes[value] = f.at(given)
			}
		}
	}
	return codes, unreadable
}

// taker is a function that is given a code: its name and which argument.
type taker struct {
	name string
	arg  int
}

var refuse = taker{name: "Refuse"}

// codeTakers finds, for each package, the functions that pass a parameter of
// theirs on as a code.
func codeTakers(r repo) map[string][]taker {
	takers := map[string][]taker{}
	for grown := true; grown; {
		grown = false
		for _, f := range r.code {
			for _, decl := range f.ast.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if !ok || f.isTest() {
					continue
				}
				if t, ok := takesCode(fn, takers[f.dir()]); ok && !slices.Contains(takers[f.dir()], t) {
					takers[f.dir()] = append(takers[f.dir()], t)
					grown = true
				}
			}
		}
	}
	return takers
}

func takesCode(fn *ast.FuncDecl, known []taker) (taker, bool) {
	var params []string
	for _, field := range fn.Type.Params.List {
		for _, name := range field.Names {
			params = append(params, name.Name)
		}
	}
	for _, given := range codesWithin(fn, known) {
		if id, ok := given.(*ast.Ident); ok {
			if i := slices.Index(params, id.Name); i >= 0 {
				return taker{name: fn.Name.Name, arg: i}, true
			}
		}
	}
	return taker{}, false
}

// codesIn finds where a code is given: the first argument of Refuse, that of
// any function that passes it on, and the field Code (or code), in a composite literal or assigned.
func codesIn(f goFile, takers []taker) []ast.Expr { return codesWithin(f.ast, takers) }

func codesWithin(node ast.Node, takers []taker) []ast.Expr {
	var found []ast.Expr
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			for _, t := range append([]taker{refuse}, takers...) {
				if called(n) == t.name && len(n.Args) > t.arg {
					found = append(found, n.Args[t.arg])
				}
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && isCode(key) {
				found = append(found, n.Value)
			}
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if sel, ok := left.(*ast.SelectorExpr); ok && isCode(sel.Sel) && len(n.Lhs) == len(n.Rhs) {
					found = append(found, n.Rhs[i])
				}
			}
		}
		return true
	})
	return found
}

// isCode reports whether a field holds a code.
func isCode(field *ast.Ident) bool { return field.Name == "Code" || field.Name == "code" }

// called is the name of the function or method that is called.
func called(call *ast.CallExpr) string {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		return fun.Sel.Name
	}
	return ""
}

// literal is the text of a string literal or of one of our constants. A code
// that only travels (a field, a parameter passed on as it is) counts as empty:
// it was given somewhere else.
func literal(f goFile, e ast.Expr, consts map[string]map[string]string) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		return consts[f.dir()][e.Name], true
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			for p, local := range f.imports() {
				if local == x.Name {
					return consts[strings.TrimPrefix(p, module)][e.Sel.Name], true
				}
			}
		}
		return "", true
	case *ast.CallExpr, *ast.IndexExpr:
		return "", true
	}
	return "", false
}

// stringConstants maps package directories to their string constants.
func stringConstants(r repo) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, f := range r.code {
		if all[f.dir()] == nil {
			all[f.dir()] = map[string]string{}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Names) != len(spec.Values) {
				return true
			}
			for i, value := range spec.Values {
				if lit, ok := value.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if s, err := strconv.Unquote(lit.Value); err == nil {
						all[f.dir()][spec.Names[i].Name] = s
					}
				}
			}
			return true
		})
	}
	return all
}
