package domain

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// maxPath is the longest path of a workspace, in bytes.
const maxPath = 500

// CleanPath normalises a path in a workspace: slash-separated, relative,
// staying inside. It refuses any other.
func CleanPath(p string) (string, *Refusal) {
	no := func(why string) (string, *Refusal) {
		return "", Refuse("path-invalid", fmt.Sprintf("the path %q is refused", cut(p, 200)), why, "name a file inside the workspace, such as notes/plan.md")
	}
	if refusal := checkText("the path", p, maxPath); refusal != nil {
		return "", refusal
	}
	if strings.Contains(p, `\`) {
		return no("it contains a backslash")
	}
	if path.IsAbs(p) {
		return no("it is absolute")
	}
	clean := path.Clean(norm.NFC.String(p))
	switch {
	case p == "" || clean == ".":
		return no("it names no file")
	case clean == ".." || strings.HasPrefix(clean, "../"):
		return no("it leaves the workspace")
	case strings.HasSuffix(p, "/"):
		return no("it names a folder")
	}
	return clean, nil
}

func checkFiles(files []*rollcallv1.FileChange) *Refusal {
	for _, f := range files {
		if _, refusal := CleanPath(f.GetPath()); refusal != nil {
			return refusal
		}
		if f.GetBlob() != nil && f.GetBlob().GetSha256() == "" {
			return Refuse("path-invalid", fmt.Sprintf("the file %q is refused", f.GetPath()), "its contents have no address", "put them into the object store first")
		}
	}
	return nil
}

// emitFiles records changes to a workspace; they are checked before.
func (d *Decision) emitFiles(member string, files []*rollcallv1.FileChange) {
	for _, f := range files {
		p, refusal := CleanPath(f.GetPath())
		if refusal != nil {
			continue
		}
		if f.GetBlob() == nil {
			d.emit(&rollcallv1.FileDeleted{Member: member, Path: p})
		} else {
			d.emit(&rollcallv1.FileWritten{Member: member, Path: p, Blob: f.GetBlob()})
		}
	}
}

// writeFiles puts files into a workspace from outside.
func (d *Decision) writeFiles(c *rollcallv1.WriteFiles) *Refusal {
	m, refusal := d.member(c.GetMember())
	if refusal != nil {
		return refusal
	}
	if refusal := checkFiles(c.GetFiles()); refusal != nil {
		return refusal
	}
	d.emitFiles(m.ID, c.GetFiles())
	return nil
}

// Readable are the files that a member may read: its own by path, others' as
// "<Name>/<path>": any for the Lead, else the Lead's, where the operator's input
// is, and what was delivered with a completed task.
func (s *State) Readable(m *Member) map[string]Blob {
	files := map[string]Blob{}
	var delivered map[string]bool
	if !m.IsLead() {
		delivered = s.delivered()
	}
	for _, other := range s.Members {
		if other == m {
			continue
		}
		for p, blob := range other.Files {
			if name := other.Name + "/" + p; m.IsLead() || other.IsLead() || delivered[name] {
				files[name] = blob
			}
		}
	}
	maps.Copy(files, m.Files)
	return files
}

// delivered are the files that completed tasks named, as "<Name>/<path>".
func (s *State) delivered() map[string]bool {
	paths := map[string]bool{}
	for _, t := range s.Tasks {
		if t.Status == completed {
			for _, p := range s.DeliveredPaths(t) {
				paths[p] = true
			}
		}
	}
	return paths
}

// checkPaths refuses a delivery that names files nobody could read.
func (d *Decision) checkPaths(m *Member, paths []string) ([]string, *Refusal) {
	if len(paths) > 100 {
		return nil, Refuse("limit-reached", "the task is not completed", "it names more than 100 paths", "name the folder's index file instead")
	}
	readable := d.State().Readable(m)
	var cleaned []string
	for _, p := range paths {
		c, refusal := CleanPath(p)
		if refusal != nil {
			return nil, refusal
		}
		if _, ok := readable[c]; !ok {
			return nil, Refuse("file-not-found", "the task is not completed", fmt.Sprintf("there is no file %q in your workspace", cut(p, 200)),
				"write it first, or name one of: "+cut(quoteAll(slices.Sorted(maps.Keys(m.Files))), 2000))
		}
		if !slices.Contains(cleaned, c) {
			cleaned = append(cleaned, c)
		}
	}
	return cleaned, nil
}
