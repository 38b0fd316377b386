package config

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/rollcall-dev/rollcall/internal/nearest"
)

// maxFile is the largest file that is read, in bytes.
const maxFile = 512 << 10

// readFile reads a file as far as it may be long, whatever the file is.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// A document reads one YAML document from its syntax tree, because only the
// tree knows where each value stands.
type document struct {
	problems
	root    ast.Node
	anchors map[string]ast.Node
}

// open parses a file's text. A file that is no YAML has its one problem already.
func open(file string, data []byte) *document {
	d := &document{problems: problems{file: file}, anchors: map[string]ast.Node{}}
	switch {
	case len(data) > maxFile:
		d.at(nil, fmt.Sprintf("it has more than the %d bytes that are read", maxFile), "put long texts into files of their own and give them with --input")
		return d
	case !utf8.Valid(data):
		d.at(nil, "it is not valid UTF-8", "save it as UTF-8")
		return d
	}
	parsed, err := parser.ParseBytes(data, 0)
	if err != nil {
		var at *token.Token
		why := err.Error()
		if e, ok := errors.AsType[yaml.Error](err); ok {
			at, why = e.GetToken(), e.GetMessage()
		}
		d.at(at, why, "check quotes, brackets and indentation there and on the line before")
		return d
	}
	bodies := slices.DeleteFunc(parsed.Docs, func(doc *ast.DocumentNode) bool { return doc.Body == nil })
	if len(bodies) > 1 {
		d.at(where(bodies[1].Body), "a second document begins here", "write one document a file")
	} else if len(bodies) == 1 {
		d.root = bodies[0].Body
		for _, n := range ast.Filter(ast.AnchorType, d.root) {
			if a, ok := n.(*ast.AnchorNode); ok && a.Name != nil {
				d.anchors[a.Name.GetToken().Value] = a.Value
			}
		}
	}
	return d
}

// plain is the node behind anchors and aliases; nil when there is no value.
func (d *document) plain(n ast.Node) ast.Node {
	for range 8 {
		switch x := n.(type) {
		case nil, *ast.NullNode:
			return nil
		case *ast.AnchorNode:
			n = x.Value
		case *ast.AliasNode:
			target, ok := d.anchors[x.Value.GetToken().Value]
			if !ok {
				d.at(x.GetToken(), fmt.Sprintf("nothing is named %q by an anchor (&)", x.Value.GetToken().Value), "")
				return nil
			}
			n = target
		default:
			return n
		}
	}
	d.at(where(n), "this alias leads in a circle", "write the value itself")
	return nil
}

// A field reads the value of a key.
type field func(key *token.Token, value ast.Node)

// mapping reads the keys of a mapping by their fields, in the order of names.
func (d *document) mapping(n ast.Node, what string, names []string, fields map[string]field) {
	d.entries(n, what, func(key *token.Token, value ast.Node) {
		read, known := fields[key.Value]
		if known {
			read(key, value)
			return
		}
		why := fmt.Sprintf("%s has no field %q", what, key.Value)
		if near := nearest.To(key.Value, names, 1); len(near) > 0 {
			why += fmt.Sprintf("; did you mean %q?", near[0])
		}
		d.at(key, why, fmt.Sprintf("fields of %s: %s", what, strings.Join(names, ", ")))
	})
}

// entries calls fn with each key and value of a mapping.
func (d *document) entries(n ast.Node, what string, fn func(key *token.Token, value ast.Node)) {
	var pairs []*ast.MappingValueNode
	switch x := d.plain(n).(type) {
	case nil:
		return
	case *ast.MappingNode:
		pairs = x.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{x}
	default:
		d.at(where(x), fmt.Sprintf("%s is %s, not fields with values", what, kindOf(x)), "write it as name: value")
		return
	}
	for _, pair := range pairs {
		key, ok := pair.Key.(*ast.StringNode)
		if !ok {
			d.at(pair.Key.GetToken(), fmt.Sprintf("a field name of %s is no plain text", what), "put it in quotes")
			continue
		}
		fn(key.GetToken(), pair.Value)
	}
}

// list calls fn with each value of a list.
func (d *document) list(n ast.Node, what string, fn func(n ast.Node)) {
	switch x := d.plain(n).(type) {
	case nil:
	case *ast.SequenceNode:
		for _, v := range x.Values {
			fn(v)
		}
	default:
		d.at(where(x), fmt.Sprintf("%s is %s, not a list", what, kindOf(x)), "write it as [a, b]")
	}
}

// text reads a string. Numbers and truth values are refused: YAML changes
// them (no, 1.10), and quotes say what is meant.
func (d *document) text(n ast.Node, what string) string {
	var s string
	switch x := d.plain(n).(type) {
	case nil:
		return ""
	case *ast.StringNode:
		s = x.Value
	case *ast.LiteralNode:
		s = x.Value.Value
	default:
		try := ""
		if _, scalar := x.(ast.ScalarNode); scalar {
			try = fmt.Sprintf("put it in quotes: %q", x.GetToken().Value)
		}
		d.at(where(x), fmt.Sprintf("%s is %s, not text", what, kindOf(x)), try)
		return ""
	}
	if strings.ContainsRune(s, 0) {
		d.at(where(n), what+" contains a NUL character", "leave it out")
		return ""
	}
	return s
}

// whole reads a whole number of at most limit.
func (d *document) whole(n ast.Node, what string, limit uint64) uint64 {
	switch x := d.plain(n).(type) {
	case nil:
		return 0
	case *ast.IntegerNode:
		var v uint64
		switch i := x.Value.(type) {
		case uint64:
			v = i
		case int64:
			v = uint64(max(i, -1))
		}
		if v <= limit {
			return v
		}
		d.at(where(x), fmt.Sprintf("%s is %s, not a whole number from 0 to %d", what, x.GetToken().Value, limit), "")
	default:
		d.at(where(x), fmt.Sprintf("%s is %s, not a whole number from 0 to %d", what, kindOf(x), limit), "")
	}
	return 0
}

// money reads an amount of the currency, exactly, as millionths.
func (d *document) money(n ast.Node, what string) uint64 {
	switch x := d.plain(n).(type) {
	case nil:
		return 0
	case *ast.IntegerNode, *ast.FloatNode:
		v, err := micros(x.GetToken().Value)
		if err != nil {
			d.at(x.GetToken(), fmt.Sprintf("%s %v", what, err), "")
		}
		return v
	default:
		d.at(where(x), fmt.Sprintf("%s is %s, not an amount such as 1.50", what, kindOf(x)), "")
	}
	return 0
}

// maxMoney is the largest amount, in the currency.
const maxMoney = 1_000_000_000

// micros are the millionths of a decimal number.
func micros(s string) (uint64, error) {
	if strings.Trim(s, "0123456789.") != "" || len(s) > 32 {
		return 0, fmt.Errorf("is %q, not an amount such as 1.50", s)
	}
	amount, ok := new(big.Rat).SetString(s)
	if !ok {
		return 0, fmt.Errorf("is %q, not an amount such as 1.50", s)
	}
	if amount.Cmp(new(big.Rat).SetInt64(maxMoney)) > 0 {
		return 0, fmt.Errorf("is more than %d", maxMoney)
	}
	amount.Mul(amount, new(big.Rat).SetInt64(1_000_000))
	if !amount.IsInt() {
		return 0, fmt.Errorf("is %s, which has more than six decimals", s)
	}
	return amount.Num().Uint64(), nil
}

// where a value begins: for a block of fields, at its first.
func where(n ast.Node) *token.Token {
	switch x := n.(type) {
	case *ast.MappingNode:
		if !x.IsFlowStyle && len(x.Values) > 0 {
			return x.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		return x.Key.GetToken()
	}
	return n.GetToken()
}

func kindOf(n ast.Node) string {
	switch n.(type) {
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	}
	return "something else"
}
