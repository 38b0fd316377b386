// Package files holds the tools of a member's workspace: file_write, file_read,
// file_list, file_edit and file_delete.
//
// A workspace is a map from path to content hash in the conversation's log;
// contents lie in the object store. A tool puts contents there first and
// returns the change, which is recorded with the call's outcome in one commit:
// so all five are idempotent. Others' files are read as "<Member>/<path>", as
// far as the domain lets the member see them; only a member writes its own.
package files

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/nearest"
	"github.com/rollcall-dev/rollcall/internal/schema"
	"github.com/rollcall-dev/rollcall/internal/tool"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Limits of a workspace and of what one call shows.
const (
	// MaxFile is a file's largest size in bytes.
	MaxFile = 5 << 20
	// MaxFiles is how many files a member has.
	MaxFiles = 2000
	// maxShown is what one call shows, in bytes; below it a result reaches the
	// model whole.
	maxShown = 24 << 10
	// maxLines is how many lines file_read shows unless it is asked for fewer,
	// maxListed how many files file_list shows.
	maxLines  = 1000
	maxListed = 500
)

// Store keeps contents by hash: the part of eventstore.Blobs that is needed.
type Store interface {
	PutBlob(ctx context.Context, key domain.Key, data []byte) (*rollcallv1.Blob, error)
	GetBlob(ctx context.Context, key domain.Key, b *rollcallv1.Blob) ([]byte, error)
}

// New makes the five tools over a store.
func New(store Store) []tool.Tool {
	return []tool.Tool{
		newTool("file_write", "Write a text file in your own workspace. An existing file is replaced.", writeFile(store)),
		newTool("file_read", "Read a text file: your own by its path, another member's as <Member>/<path>. Long files come in parts: go on with offset.", readFile(store)),
		newTool("file_list", "List files with their sizes: your own and those of other members that you may read. A path lists one directory or one member.", listFiles),
		newTool("file_edit", "Replace a passage of a text file in your own workspace. old_text must occur exactly once, unless replace_all is true.", editFile(store)),
		newTool("file_delete", "Delete a file in your own workspace.", deleteFile),
	}
}

// An action is what a tool does with arguments that were read. A refusal is
// returned as an error of type mistake.
type action[T any] func(ctx context.Context, w workspace, args T) (tool.Outcome, error)

// A mistake is an error that the model can mend.
type mistake string

func (m mistake) Error() string { return string(m) }

func mistakef(format string, args ...any) error { return mistake(fmt.Sprintf(format, args...)) }

type fileTool[T any] struct {
	name, about string
	args        schema.Args[T]
	do          action[T]
}

func newTool[T any](name, about string, do action[T]) tool.Tool {
	return fileTool[T]{name: name, about: about, args: schema.For[T](), do: do}
}

// Definition implements tool.Tool.
func (f fileTool[T]) Definition() *rollcallv1.ToolDefinition {
	return &rollcallv1.ToolDefinition{Name: f.name, Description: f.about, Schema: f.args.JSON(), Idempotent: true}
}

// Call implements tool.Tool.
func (f fileTool[T]) Call(ctx context.Context, plan domain.ToolPlan, raw json.RawMessage) (tool.Outcome, error) {
	args, err := f.args.Read(raw)
	if err != nil {
		return tool.Outcome{Output: err.Error(), Error: true}, nil
	}
	out, err := f.do(ctx, workspace{plan}, args)
	if m, ok := err.(mistake); ok {
		return tool.Outcome{Output: string(m), Error: true}, nil
	}
	if err != nil {
		return tool.Outcome{}, fmt.Errorf("%s of %s: %w", f.name, plan.Member.Name, err)
	}
	return out, nil
}

// A workspace is the files that a member sees.
type workspace struct{ plan domain.ToolPlan }

// home is the name of the member whose workspace it is.
func (w workspace) home() string { return cmp.Or(w.plan.Home, w.plan.Member.Name) }

// locate cleans a path and says whose file it names: owner is empty for the
// member's own. The member's own name before a path changes nothing.
func (w workspace) locate(p string) (cleaned, owner string, err error) {
	cleaned, err = cleanPath(p)
	if err != nil {
		return "", "", mistake(err.Error())
	}
	first, rest, deeper := strings.Cut(cleaned, "/")
	switch {
	case slices.Contains(w.plan.Others, first):
		return cleaned, first, nil
	case first == w.home() && deeper:
		return rest, "", nil
	}
	return cleaned, "", nil
}

// own is locate for a path that is to be changed.
func (w workspace) own(p string) (string, error) {
	cleaned, owner, err := w.locate(p)
	if err != nil {
		return "", err
	}
	if owner != "" {
		return "", mistakef("%s is in the workspace of %s: only %s changes it. Write a file of your own, or ask %s with a message.", cleaned, owner, owner, owner)
	}
	if strings.HasSuffix(strings.TrimSpace(p), "/") {
		return "", mistakef("%q names a directory; name a file in it. Directories come and go with their files.", p)
	}
	return cleaned, nil
}

// blob of an existing file that the member may read.
func (w workspace) blob(cleaned, owner string) (*rollcallv1.Blob, error) {
	if b, ok := w.plan.Files[cleaned]; ok {
		return b, nil
	}
	if w.isDirectory(cleaned) {
		return nil, mistakef("%s is a directory; file_list shows what is in it.", cleaned)
	}
	var names []string
	for name := range w.plan.Files {
		names = append(names, name)
	}
	slices.Sort(names)
	hint := "There are no files that you can read yet."
	switch near := nearest.To(cleaned, names, 3); {
	case len(near) > 0:
		hint = "Near it: " + strings.Join(near, ", ") + "."
	case len(names) > 0 && len(names) <= 10:
		hint = "You can read: " + strings.Join(names, ", ") + "."
	case len(names) > 0:
		hint = "file_list shows what you can read."
	}
	if owner != "" {
		return nil, mistakef("there is no file %s that you can read; of other members you read what they delivered. %s", cleaned, hint)
	}
	return nil, mistakef("there is no file %s. %s", cleaned, hint)
}

func (w workspace) isDirectory(p string) bool {
	for name := range w.plan.Files {
		if strings.HasPrefix(name, p+"/") {
			return true
		}
	}
	return slices.Contains(w.plan.Others, p)
}

// ownCount is the number of the member's own files.
func (w workspace) ownCount() int {
	n := 0
	for name := range w.plan.Files {
		if first, _, _ := strings.Cut(name, "/"); !slices.Contains(w.plan.Others, first) {
			n++
		}
	}
	return n
}
