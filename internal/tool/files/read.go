package files

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rollcall-dev/rollcall/internal/tool"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

type readArgs struct {
	Path   string `json:"path" jsonschema:"your own file, or another member's as <Member>/<path>"`
	Offset int    `json:"offset,omitempty" jsonschema:"the first line to show, from 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many lines to show"`
}

func readFile(store Store) action[readArgs] {
	return func(ctx context.Context, w workspace, args readArgs) (tool.Outcome, error) {
		path, owner, err := w.locate(args.Path)
		if err != nil {
			return tool.Outcome{}, err
		}
		blob, err := w.blob(path, owner)
		if err != nil {
			return tool.Outcome{}, err
		}
		if args.Offset < 0 || args.Limit < 0 {
			return tool.Outcome{}, mistakef("offset and limit count lines from 1; leave them out to read from the beginning.")
		}
		data, err := store.GetBlob(ctx, w.plan.Key, blob)
		if err != nil {
			return tool.Outcome{}, err
		}
		if binary(data) {
			return tool.Outcome{Output: fmt.Sprintf("%s is a binary file, not shown: %s, %s, sha256 %s.", path, count(len(data), "byte"), http.DetectContentType(data), blob.GetSha256())}, nil
		}
		out, err := part(path, string(data), args)
		return tool.Outcome{Output: out}, err
	}
}

// binary reports contents that are no text.
func binary(data []byte) bool {
	return bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data)
}

// part is the asked lines of a text: a whole file as it is, anything less with
// a line that says how to go on.
func part(path, text string, args readArgs) (string, error) {
	all := lines(text)
	first := max(args.Offset, 1)
	switch {
	case len(all) == 0:
		return fmt.Sprintf("[%s is empty]", path), nil
	case first > len(all):
		return "", mistakef("%s has %s; offset %d is after its end.", path, count(len(all), "line"), first)
	}
	limit := maxLines
	if args.Limit > 0 {
		limit = min(args.Limit, maxLines)
	}
	var b strings.Builder
	last := first - 1
	for last < len(all) && last-first+1 < limit && b.Len()+len(all[last]) <= maxShown {
		b.WriteString(all[last])
		last++
	}
	if last < first {
		shown := all[first-1][:maxShown]
		for !utf8.ValidString(shown) {
			shown = shown[:len(shown)-1]
		}
		return fmt.Sprintf("%s\n[line %d of %s is long: the first %d of %d bytes are shown%s]", shown, first, path, len(shown), len(all[first-1]), goOn(first, len(all))), nil
	}
	if first == 1 && last == len(all) {
		return text, nil
	}
	body := b.String()
	if !strings.HasSuffix(body, "\n") {
		body += "\n"
	}
	return fmt.Sprintf("%s[lines %d to %d of %d of %s are shown%s]", body, first, last, len(all), path, goOn(last, len(all))), nil
}

func goOn(last, all int) string {
	if last >= all {
		return ""
	}
	return fmt.Sprintf("; go on with offset %d", last+1)
}

type listArgs struct {
	Path string `json:"path,omitempty" jsonschema:"a directory, or the name of another member; leave it out for everything"`
}

func listFiles(_ context.Context, w workspace, args listArgs) (tool.Outcome, error) {
	prefix, mine := "", false
	switch p := strings.TrimSpace(args.Path); p {
	case "", ".", "./", "/":
	case w.home(), w.home() + "/":
		mine = true
	default:
		cleaned, owner, err := w.locate(p)
		if err != nil {
			return tool.Outcome{}, err
		}
		if b := w.plan.Files[cleaned]; b != nil {
			return tool.Outcome{Output: listed(cleaned, b)}, nil
		}
		if !w.isDirectory(cleaned) {
			_, err := w.blob(cleaned, owner)
			return tool.Outcome{}, err
		}
		prefix = cleaned + "/"
	}
	var own, others []string
	for name := range w.plan.Files {
		first, _, _ := strings.Cut(name, "/")
		switch {
		case !strings.HasPrefix(name, prefix):
		case !slices.Contains(w.plan.Others, first):
			own = append(own, name)
		case !mine:
			others = append(others, name)
		}
	}
	slices.Sort(own)
	slices.Sort(others)
	names := append(own, others...)
	switch {
	case len(names) == 0 && prefix != "":
		return tool.Outcome{Output: strings.TrimSuffix(prefix, "/") + " has no files that you can read yet."}, nil
	case len(names) == 0:
		return tool.Outcome{Output: "There are no files yet."}, nil
	}
	var b strings.Builder
	for i, name := range names {
		if i == maxListed || b.Len() > maxShown {
			fmt.Fprintf(&b, "[%d more; list one directory to see them]", len(names)-i)
			break
		}
		b.WriteString(listed(name, w.plan.Files[name]) + "\n")
	}
	return tool.Outcome{Output: strings.TrimSuffix(b.String(), "\n")}, nil
}

func listed(name string, b *rollcallv1.Blob) string {
	return fmt.Sprintf("%s  %s", name, count(int(b.GetSize()), "byte"))
}
