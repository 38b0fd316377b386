package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/config"
)

// examplesDocument is what `init --json` prints.
type examplesDocument struct {
	// Files that were written, with absolute paths.
	Files []string `json:"files"`
}

// examples are the files of init. A key may come to stand in the settings.
var examples = []struct {
	name, text string
	mode       fs.FileMode
}{
	{"rollcall.yaml", config.ExampleSettings(), 0o600},
	{"team.yaml", config.ExampleTeam, 0o644},
}

func (s *session) initCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write an example of settings and of a team, to be edited",
		Long: `Init writes two files with comments into DIR, or the working directory:
rollcall.yaml with every setting, all of them commented out, and team.yaml with agent
types and a prepared team for rollcall run --agents. It never writes over what is there.`,
		Example: `  rollcall init
  rollcall init ./papers-team
  rollcall init --json`,
		GroupID: groupBegin, Args: args(0, 1),
	}
	return s.command(c, func(_ context.Context, args []string) error {
		dir, err := filepath.Abs(s.path(append(args, ".")[0]))
		if err != nil {
			return err
		}
		doc, err := writeExamples(dir)
		if err != nil {
			return err
		}
		return s.print(doc, func(w io.Writer) {
			for _, file := range doc.Files {
				fmt.Fprintln(w, printable(file))
			}
			cd := ""
			if len(args) > 0 {
				cd = "cd " + shellWord(args[0]) + " && "
			}
			s.say("edit them, then: %srollcall run \"…\" --input ./papers --agents team.yaml", cd)
		})
	})
}

// writeExamples writes all the examples or none.
func writeExamples(dir string) (doc examplesDocument, err error) {
	var there []string
	for _, e := range examples {
		if _, err := os.Lstat(filepath.Join(dir, e.name)); err == nil {
			there = append(there, e.name)
		}
	}
	if len(there) > 0 {
		return doc, domain.Refuse("file-exists", "no examples are written to "+printable(dir), strings.Join(there, " and ")+" would be written over",
			"name another directory, rollcall init DIR, or move what is there away")
	}
	unwritable := func(err error) error {
		return domain.Refuse("output-unwritable", "the examples cannot be written", err.Error(), "name a directory that you can write to: rollcall init DIR")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return doc, unwritable(err)
	}
	defer func() {
		if err != nil {
			for _, file := range doc.Files {
				_ = os.Remove(file) // it is ours, and of this moment
			}
		}
	}()
	for _, e := range examples {
		file := filepath.Join(dir, e.name)
		if err := writeNew(file, e.text, e.mode); err != nil {
			return doc, unwritable(err)
		}
		doc.Files = append(doc.Files, file)
	}
	return doc, nil
}

// writeNew writes a file that is not there.
func writeNew(file, text string, mode fs.FileMode) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(file)
	}
	return err
}
