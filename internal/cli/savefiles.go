package cli

import (
	"context"
	"fmt"
	"os"
	"path"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/projections"
)

// output is a directory that gets a team's files. Nothing is written outside
// it, whatever members call their files.
type output struct {
	dir  string
	root *os.Root
}

// openOutput makes the directory before anything is spent; an empty name is a
// nil output, which saves nothing.
func openOutput(dir string) (*output, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the user's own files
		return nil, outputRefused(dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, outputRefused(dir, err)
	}
	return &output{dir: dir, root: root}, nil
}

func outputRefused(dir string, err error) error {
	return domain.Refuse("output-unwritable", "files cannot be saved to "+printable(dir), err.Error(), "name a directory that can be written")
}

func (o *output) close() {
	if o != nil {
		_ = o.root.Close() // files are written by then
	}
}

// save downloads the files of all members of a followed conversation.
func (o *output) save(ctx context.Context, f *following) ([]string, error) {
	if o == nil || f.state == nil {
		return nil, nil
	}
	list, err := f.client.Files(ctx, api.ReadRequest{Conversation: f.key.Conversation})
	if err != nil {
		return nil, err
	}
	return o.saveAll(ctx, f.client, list.Conversation, list.Files)
}

func (o *output) saveAll(ctx context.Context, c *api.Client, conversation string, files []projections.File) ([]string, error) {
	var saved []string
	for _, file := range files {
		data, err := c.Blob(ctx, conversation, api.BlobRef(file.BlobRef))
		if err != nil {
			return saved, err
		}
		name := path.Join(file.Member, file.Path)
		if err := o.write(name, data); err != nil {
			return saved, err
		}
		saved = append(saved, name)
	}
	return saved, nil
}

func (o *output) write(name string, data []byte) error {
	if err := o.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return outputRefused(path.Join(o.dir, name), err)
	}
	if err := o.root.WriteFile(name, data, 0o644); err != nil {
		return outputRefused(path.Join(o.dir, name), fmt.Errorf("write file: %w", err))
	}
	return nil
}
