package policy

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// root is the module's root seen from this package's directory.
const root = "../.."

const module = "github.com/rollcall-dev/rollcall/"

// repo is what the rules look at: every file of the repository, or the few of
// a seeded fault.
type repo struct {
	// text maps names, slash-separated and relative to the root, to contents.
	text map[string][]byte
	// code is the parsed Go files, generated ones left out, by name.
	code []goFile
}

// names lists the repository's files in order.
func (r repo) names() []string {
	names := make([]string, 0, len(r.text))
	for name := range r.text {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func newRepo(text map[string][]byte) (repo, error) {
	r := repo{text: text}
	for _, name := range r.names() {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, ".pb.go") {
			continue
		}
		f := goFile{name: name, fset: token.NewFileSet(), src: text[name]}
		var err error
		if f.ast, err = parser.ParseFile(f.fset, name, f.src, parser.ParseComments|parser.SkipObjectResolution); err != nil {
			return repo{}, err
		}
		r.code = append(r.code, f)
	}
	return r, nil
}

// checkout reads this repository as git sees it. What is not yet added counts
// too, so that a rule speaks before a commit.
func checkout() (repo, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return repo{}, fmt.Errorf("list the repository's files: %w", err)
	}
	text := map[string][]byte{}
	dirs := map[string]bool{}
	for name := range strings.SplitSeq(string(out), "\x00") {
		if name == "" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) { // deleted, not yet committed
			continue
		}
		if err != nil {
			return repo{}, err
		}
		text[name] = data
		dirs[path.Dir(name)] = true
	}
	// go test caches a result by what the test itself opened; what git opened it
	// does not see. Reading the directories makes a new file a new result.
	for dir := range dirs {
		if _, err := os.ReadDir(filepath.Join(root, dir)); err != nil {
			return repo{}, err
		}
	}
	return newRepo(text)
}

// goFile is one parsed Go file of ours.
type goFile struct {
	name string
	fset *token.FileSet
	ast  *ast.File
	src  []byte
}

func (f goFile) isTest() bool { return strings.HasSuffix(f.name, "_test.go") }

// dir is the package's directory, "." for the root.
func (f goFile) dir() string { return path.Dir(f.name) }

func (f goFile) lines() int { return bytes.Count(f.src, []byte("\n")) }

func (f goFile) line(n ast.Node) int { return f.fset.Position(n.Pos()).Line }

func (f goFile) at(n ast.Node) string { return fmt.Sprintf("%s:%d", f.name, f.line(n)) }

// imports maps import paths to the name they go by in the file.
func (f goFile) imports() map[string]string {
	names := map[string]string{}
	for _, spec := range f.ast.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[p] = name
	}
	return names
}

// uses reports every use of pkg.name, whatever the import is called.
func (f goFile) uses(pkg string, names ...string) []ast.Node {
	local, ok := f.imports()[pkg]
	if !ok {
		return nil
	}
	var found []ast.Node
	ast.Inspect(f.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == local && slices.Contains(names, sel.Sel.Name) {
			found = append(found, n)
		}
		return true
	})
	return found
}

// within reports whether p is dir or lies below it.
func within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, dir+"/")
}

// covers reports whether an import path matches a pattern: itself, or, for a
// pattern that ends in a slash, everything below it too.
func covers(pattern, p string) bool {
	if dir, ok := strings.CutSuffix(pattern, "/"); ok {
		return within(p, dir)
	}
	return p == pattern
}
