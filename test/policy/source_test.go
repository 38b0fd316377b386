package policy

import (
	"bytes"
	"fmt"
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A newcomer reads a file in one sitting or not at all. Aim at 200 lines a
// file and 40 a function; `go test -v` names those that are on their way out.
const (
	maxLines     = 600
	maxTestLines = 900
	maxFuncLines = 80
)

func longFiles(r repo) []string {
	var broken []string
	for _, f := range r.code {
		limit := maxLines
		if f.isTest() {
			limit = maxTestLines
		}
		if f.lines() > limit {
			broken = append(broken, fmt.Sprintf("%s has %d lines, more than %d: split it by what a reader would look for", f.name, f.lines(), limit))
		}
	}
	return broken
}

func longFunctions(r repo) []string {
	var broken []string
	for _, f := range r.code {
		if f.isTest() {
			continue
		}
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if lines := f.fset.Position(fn.End()).Line - f.line(fn) + 1; lines > maxFuncLines {
				broken = append(broken, fmt.Sprintf("%s: %s has %d lines, more than %d", f.at(fn), fn.Name.Name, lines, maxFuncLines))
			}
		}
	}
	return broken
}

// undocumented finds packages without a word about what they are, what they
// are not, and where to read next.
func undocumented(r repo) []string {
	documented := map[string]bool{}
	for _, f := range r.code {
		documented[f.dir()] = documented[f.dir()] || f.ast.Doc != nil && strings.TrimSpace(f.ast.Doc.Text()) != ""
	}
	var broken []string
	for _, dir := range slices.Sorted(maps.Keys(documented)) {
		if !documented[dir] {
			broken = append(broken, fmt.Sprintf("package %s has no doc comment", dir))
		}
	}
	return broken
}

// sleeps finds sleeps: a race that was not understood, or a test that is slow
// on a fast machine and flaky on a slow one.
func sleeps(r repo) []string {
	var broken []string
	for _, f := range r.code {
		for _, n := range f.uses("time", "Sleep") {
			broken = append(broken, f.at(n)+": sleeps; wait for a channel, poll with a deadline, or use testing/synctest")
		}
	}
	return broken
}

func silentSkips(r repo) []string {
	var broken []string
	for _, f := range r.code {
		if !f.isTest() {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && silentSkip(sel.Sel.Name, call.Args) {
				broken = append(broken, f.at(n)+": skips without a reason")
			}
			return true
		})
	}
	return broken
}

func silentSkip(method string, args []ast.Expr) bool {
	switch method {
	case "SkipNow":
		return true
	case "Skip", "Skipf":
		if len(args) == 0 {
			return true
		}
		lit, ok := args[0].(*ast.BasicLit)
		return ok && strings.TrimSpace(strings.Trim(lit.Value, "\"`")) == ""
	}
	return false
}

// forbidden is what no file of the repository may hold. The words are cut in
// two here, so that this file passes its own rule.
var forbidden = []struct {
	// words are looked for first, because that is fast: a file without any of
	// them is clean.
	words   []string
	pattern *regexp.Regexp
	reason  string
}{
	{
		[]string{"TO" + "DO", "FIX" + "ME", "XX" + "X"},
		regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`),
		"unfinished work lives in issues, not in files",
	},
	{
		[]string{"/wo" + "rk/", "/ro" + "ot/", "/Us" + "ers/"},
		regexp.MustCompile("(^|[\\s\"'=(:`])/(work|root|Users)/\\w"),
		"a path of one machine means nothing on another",
	},
	{
		[]string{"/ho" + "me/"},
		regexp.MustCompile(`/home/[a-z]\w*/`),
		"a path of one machine means nothing on another",
	},
	{
		[]string{"registry.", "proxy.go" + "lang.org", "sum.go" + "lang.org"},
		regexp.MustCompile(`registry\.npm` + `js\.org|registry\.yarn` + `pkg\.com|proxy\.go` + `lang\.org|sum\.go` + `lang\.org`),
		"which registry to ask is the installation's choice",
	},
	{
		[]string{`"resol` + `ved":`},
		regexp.MustCompile(`"resol` + `ved":`),
		"a lock file names versions and hashes, not hosts",
	},
}

func forbiddenText(r repo) []string {
	var broken []string
	for _, name := range r.names() {
		data := r.text[name]
		if bytes.IndexByte(data, 0) >= 0 { // not a text
			continue
		}
		for _, f := range forbidden {
			if !slices.ContainsFunc(f.words, func(w string) bool { return bytes.Contains(data, []byte(w)) }) {
				continue
			}
			number := 0
			for line := range bytes.Lines(data) {
				number++
				if f.pattern.Match(line) {
					broken = append(broken, fmt.Sprintf("%s:%d: %s\n\t%s", name, number, f.reason, bytes.TrimSpace(line)))
				}
			}
		}
	}
	return broken
}
