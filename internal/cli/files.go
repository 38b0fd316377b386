package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/nearest"
	"github.com/rollcall-dev/rollcall/projections"
)

func (s *session) files() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "files CONV[/MEMBER][@VERSION] ls|get [PATH] [flags]",
		Short: "List or fetch the files of a team",
		Long: `Files lists the files of a conversation or of one member. Get prints one file on
stdout, or saves it, or all of them, into a directory as MEMBER/PATH.`,
		Example: `  rollcall files harbor ls
  rollcall files harbor/Backend get api.json
  rollcall files harbor get --output ./out`,
		GroupID: groupWatch, Args: args(2, 3), ValidArgsFunction: s.completeConversation,
	}
	c.Flags().StringVar(&output, "output", "", "directory to save to")
	return s.command(c, func(ctx context.Context, args []string) error {
		r, err := parseRef(args[0])
		if err != nil {
			return err
		}
		switch {
		case args[1] == "ls" && len(args) == 2:
		case args[1] == "get" && (len(args) == 3 || output != ""):
		case args[1] == "get":
			return domain.Refuse("usage", "get needs a path or --output", "", c.UseLine())
		default:
			return domain.Refuse("usage", "rollcall files cannot be run like that", fmt.Sprintf("got %q", args[1:])+didYouMean(args[1], "ls", "get"), c.UseLine())
		}
		client, err := s.connect()
		if err != nil {
			return err
		}
		list, err := client.Files(ctx, r.read())
		if err != nil {
			return err
		}
		if args[1] == "ls" {
			return s.print(list, func(w io.Writer) { showFiles(w, list) })
		}
		if len(args) == 3 {
			if list.Files, err = fileAt(list.Files, args[2]); err != nil {
				return err
			}
		}
		return s.getFiles(ctx, client, list, output)
	})
}

func showFiles(w io.Writer, list api.FilesAnswer) {
	rows := [][]string{{"MEMBER", "PATH", "BYTES", "VERSION"}}
	for _, f := range list.Files {
		rows = append(rows, []string{f.Member, f.Path, fmt.Sprint(f.Size), fmt.Sprint(f.Version)})
	}
	table(w, rows)
}

// fileAt finds one file by its path, or by MEMBER/PATH.
func fileAt(files []projections.File, path string) ([]projections.File, error) {
	var found []projections.File
	var known []string
	for _, f := range files {
		known = append(known, f.Member+"/"+f.Path)
		if f.Path == path || f.Member+"/"+f.Path == path {
			found = append(found, f)
		}
	}
	switch {
	case len(found) == 1:
		return found, nil
	case len(found) > 1:
		return nil, domain.Refuse("file-ambiguous", fmt.Sprintf("more than one member has a file %q", printable(path)),
			found[0].Member+" and "+found[1].Member, "name the member: rollcall files CONV/MEMBER get "+printable(path))
	}
	why := "there is no file at all"
	if len(known) > 0 {
		why = "the team has " + count(len(known), "file")
	}
	if near := nearest.To(path, known, 3); len(near) > 0 {
		why = "the nearest are"
		for _, n := range near {
			why += " " + printable(n)
		}
	}
	return nil, domain.Refuse("file-not-found", fmt.Sprintf("there is no file %q", printable(path)), why, "rollcall files CONV ls lists them")
}

func (s *session) getFiles(ctx context.Context, c *api.Client, list api.FilesAnswer, output string) error {
	if output == "" {
		data, err := c.Blob(ctx, list.Conversation, api.BlobRef(list.Files[0].BlobRef))
		if err != nil {
			return err
		}
		if _, err := s.Out.Write(data); err != nil {
			return fmt.Errorf("write to stdout: %w", err)
		}
		return nil
	}
	out, err := openOutput(s.path(output))
	if err != nil {
		return err
	}
	defer out.close()
	saved, err := out.saveAll(ctx, c, list.Conversation, list.Files)
	if err != nil {
		return err
	}
	return s.print(savedFiles{Output: output, Files: saved}, func(w io.Writer) {
		for _, name := range saved {
			fmt.Fprintln(w, printable(name))
		}
	})
}

// savedFiles is what `files get --output --json` says.
type savedFiles struct {
	// Output is the directory, Files the paths below it.
	Output string   `json:"output"`
	Files  []string `json:"files"`
}
