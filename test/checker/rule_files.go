package checker

import (
	"slices"
	"strings"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// fileChanges: a file of a workspace changes in the commit that records the
// outcome of the call that changed it, just before it, or by a command; and its
// path does not leave the workspace.
func fileChanges(b *book, say say) watcher {
	var changed []*rollcallv1.FileWritten // or deleted, in this commit, and not yet explained
	return watcher{
		event: func(f fact) {
			w := f.GetFileWritten()
			if d := f.GetFileDeleted(); d != nil {
				w = &rollcallv1.FileWritten{Member: d.GetMember(), Path: d.GetPath()}
			}
			if w != nil {
				if escapes(w.GetPath()) {
					say("the path %q leaves the workspace of %s", w.GetPath(), w.GetMember())
				}
				changed = append(changed, w)
				return
			}
			if r := b.in(f); f.GetToolCallFinished() != nil && r != nil && r.begun != nil {
				changed = slices.DeleteFunc(changed, func(w *rollcallv1.FileWritten) bool { return w.GetMember() == b.host(r.member) })
			}
		},
		end: func(c *rollcallv1.Commit) {
			if len(c.GetCommandIds()) == 0 {
				for _, w := range changed {
					say("%s of %s changed, and neither a call of it nor a command did that", w.GetPath(), w.GetMember())
				}
			}
			changed = nil
		},
	}
}

// escapes reports a path that is none inside a workspace.
func escapes(path string) bool {
	return path == "" || strings.HasPrefix(path, "/") || strings.Contains(path, "\\") || slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool {
		return part == "" || part == "." || part == ".."
	})
}
