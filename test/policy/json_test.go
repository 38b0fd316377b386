package policy

import (
	"flag"
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/json.md again from the code")

// jsonPage holds, between two marks, a table for each document that --json
// prints: the mark names the Go type, the table is made of its fields and
// their comments.
const jsonPage = "docs/json.md"

var fieldTable = regexp.MustCompile(`(?s)(<!-- fields of ([\w.]+) -->\n).*?(<!-- end -->)`)

// TestJSONDocuments holds the documented fields of every document to the code,
// both ways: they are one table, made from the code.
func TestJSONDocuments(t *testing.T) {
	here, err := checkout()
	if err != nil {
		t.Fatal(err)
	}
	page := string(here.text[jsonPage])
	types := structs(here)
	tables := 0
	made := fieldTable.ReplaceAllStringFunc(page, func(old string) string {
		m := fieldTable.FindStringSubmatch(old)
		rows := types.fields(m[2], "", 0)
		if len(rows) == 0 {
			t.Errorf("%s speaks of %s, which is no struct with JSON fields", jsonPage, m[2])
		}
		tables++
		return m[1] + "| field | type | meaning |\n|---|---|---|\n" + strings.Join(rows, "") + m[3]
	})
	if tables == 0 {
		t.Fatalf("%s has no tables", jsonPage)
	}
	if made == page {
		return
	}
	if *update {
		if err := os.WriteFile(filepath.Join(root, jsonPage), []byte(made), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s is not what the code says: go test ./test/policy -run TestJSONDocuments -update, then read the change", jsonPage)
}

// jsonTypes maps "package.Type" to what is known of the type.
type jsonTypes map[string]jsonType

type jsonType struct {
	pkg  string
	node *ast.StructType
	// alias is the type this one stands for.
	alias ast.Expr
	doc   *ast.CommentGroup
}

// structs collects the types that documents are made of.
func structs(r repo) jsonTypes {
	types := jsonTypes{}
	for _, f := range r.code {
		if f.isTest() || !within(f.dir(), "projections") && !within(f.dir(), "internal") {
			continue
		}
		pkg := path.Base(f.dir())
		for _, decl := range f.ast.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range gen.Specs {
				if ts, ok := spec.(*ast.TypeSpec); ok {
					node, _ := ts.Type.(*ast.StructType)
					types[pkg+"."+ts.Name.Name] = jsonType{pkg: pkg, node: node, alias: ts.Type, doc: gen.Doc}
				}
			}
		}
	}
	return types
}

// fields lists a type's JSON fields as rows of a table, nested ones by path.
func (types jsonTypes) fields(name, prefix string, depth int) []string {
	ty, ok := types[name]
	if !ok || depth > 8 {
		return nil
	}
	if ty.node == nil {
		return types.fields(qualified(ty.pkg, ty.alias), prefix, depth+1)
	}
	shadowed := map[string]bool{}
	for _, field := range ty.node.Fields.List {
		if len(field.Names) > 0 {
			shadowed[jsonName(field)] = true
		}
	}
	var rows []string
	for _, field := range ty.node.Fields.List {
		inner := qualified(ty.pkg, field.Type)
		if len(field.Names) == 0 && field.Tag == nil { // embedded: its fields are ours
			for _, row := range types.fields(inner, prefix, depth+1) {
				if !shadowed[strings.TrimRight(firstOf(row, prefix), "[]")] {
					rows = append(rows, row)
				}
			}
			continue
		}
		name := jsonName(field)
		if name == "" {
			continue
		}
		where := prefix + name + brackets(field.Type)
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", where, jsonKind(inner, types), meaning(field, types[inner].doc)))
		rows = append(rows, types.fields(inner, where+".", depth+1)...)
	}
	return rows
}

// firstOf is the top field that a row is about, seen from prefix.
func firstOf(row, prefix string) string {
	rest := strings.TrimPrefix(row, "| `"+prefix)
	if i := strings.IndexAny(rest, ".`"); i >= 0 {
		return rest[:i]
	}
	return rest
}

func jsonName(field *ast.Field) string {
	if field.Tag == nil {
		return ""
	}
	name, options, _ := strings.Cut(reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json"), ",")
	if name == "-" && options == "" {
		return ""
	}
	return name
}

func brackets(e ast.Expr) string {
	if _, ok := e.(*ast.ArrayType); ok {
		return "[]"
	}
	return ""
}

// qualified names a field's type, lists and pointers looked through.
func qualified(pkg string, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return pkg + "." + e.Name
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return x.Name + "." + e.Sel.Name
		}
	case *ast.StarExpr:
		return qualified(pkg, e.X)
	case *ast.ArrayType:
		return qualified(pkg, e.Elt)
	case *ast.MapType:
		return "object"
	}
	return ""
}

// jsonKind is what a reader of JSON meets.
func jsonKind(name string, types jsonTypes) string {
	_, base, _ := strings.Cut(name, ".")
	switch base {
	case "string":
		return "text"
	case "bool":
		return "true or false"
	case "Time":
		return "time"
	case "Money", "float64":
		return "amount"
	case "byte":
		return "base64"
	case "int", "int64", "uint", "uint32", "uint64":
		return "number"
	}
	if ty, ok := types[name]; ok && ty.node == nil {
		return jsonKind(qualified(ty.pkg, ty.alias), types)
	}
	return "object"
}

// meaning is a field's comment on one line, or what its type says of itself. A
// comment that begins with the Go name, as Go likes it, reads as well under
// the JSON name.
func meaning(field *ast.Field, ofType *ast.CommentGroup) string {
	text := field.Doc.Text()
	if text == "" {
		text = field.Comment.Text()
	}
	if text == "" {
		text = ofType.Text()
	}
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
}
