package files

import (
	"context"
	"fmt"
	"strings"

	"github.com/rollcall-dev/rollcall/internal/tool"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

type writeArgs struct {
	Path    string `json:"path" jsonschema:"where to write, relative to your workspace, such as api/profile.json"`
	Content string `json:"content" jsonschema:"the whole text of the file"`
}

func writeFile(store Store) action[writeArgs] {
	return func(ctx context.Context, w workspace, args writeArgs) (tool.Outcome, error) {
		path, err := w.own(args.Path)
		if err != nil {
			return tool.Outcome{}, err
		}
		if err := w.mayHold(path); err != nil {
			return tool.Outcome{}, err
		}
		verb := "wrote"
		if w.plan.Files[path] != nil {
			verb = "replaced"
		}
		return w.put(ctx, store, path, args.Content, verb)
	}
}

// mayHold refuses a path that no directory could hold beside the others.
func (w workspace) mayHold(path string) error {
	if w.plan.Files[path] != nil {
		return nil
	}
	if w.isDirectory(path) {
		return mistakef("%s is a directory; choose another name or a file in it.", path)
	}
	for i, r := range path {
		if r == '/' && w.plan.Files[path[:i]] != nil {
			return mistakef("%s is a file and cannot hold %s; choose another directory.", path[:i], path)
		}
	}
	if n := w.ownCount(); n >= MaxFiles {
		return mistakef("your workspace has %d files, the most it can hold. Delete some with file_delete or join several in one.", n)
	}
	return nil
}

// put stores content under the path and says what changed.
func (w workspace) put(ctx context.Context, store Store, path, content, verb string) (tool.Outcome, error) {
	if len(content) > MaxFile {
		return tool.Outcome{}, mistakef("%s would have %d bytes, more than the %d allowed. Split it into several files.", path, len(content), MaxFile)
	}
	blob, err := store.PutBlob(ctx, w.plan.Key, []byte(content))
	if err != nil {
		return tool.Outcome{}, err
	}
	if old := w.plan.Files[path]; old != nil && old.GetSha256() == blob.GetSha256() {
		return tool.Outcome{Output: fmt.Sprintf("%s has this content already (%s).", path, measure(content))}, nil
	}
	return tool.Outcome{
		Output: fmt.Sprintf("%s %s (%s).", verb, path, measure(content)),
		Files:  []*rollcallv1.FileChange{{Path: path, Blob: blob}},
	}, nil
}

func measure(content string) string {
	return fmt.Sprintf("%s, %s", count(len(content), "byte"), count(len(lines(content)), "line"))
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// lines keeps each line's end; an end of the text is no line of its own.
func lines(text string) []string {
	l := strings.SplitAfter(text, "\n")
	if l[len(l)-1] == "" {
		l = l[:len(l)-1]
	}
	return l
}

type deleteArgs struct {
	Path string `json:"path" jsonschema:"the file to delete"`
}

func deleteFile(_ context.Context, w workspace, args deleteArgs) (tool.Outcome, error) {
	path, err := w.own(args.Path)
	if err != nil {
		return tool.Outcome{}, err
	}
	if _, err := w.blob(path, ""); err != nil {
		return tool.Outcome{}, err
	}
	return tool.Outcome{
		Output: fmt.Sprintf("deleted %s.", path),
		Files:  []*rollcallv1.FileChange{{Path: path}},
	}, nil
}
