package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// settingsDocument is what `config --json` prints.
type settingsDocument struct {
	// File is the settings file that was read; empty when there is none.
	File     string         `json:"file,omitempty"`
	Settings []settingShown `json:"settings"`
}

// settingShown is one setting; a secret's value is hidden.
type settingShown struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Origin is a flag, a variable, a place in a file, or default.
	Origin string `json:"origin"`
}

func (s *session) config() *cobra.Command {
	c := &cobra.Command{
		Use:   "config [flags]",
		Short: "Show every setting and where it comes from",
		Long: `Config shows the settings as a command here would use them: flags win over the
environment, that over rollcall.yaml. The key is never shown. A node keeps those that
it was started with.`,
		Example: `  rollcall config
  rollcall config --json`,
		GroupID: groupOperate, Args: args(0, 0),
	}
	addNodeSettings(c)
	return s.command(c, func(context.Context, []string) error {
		doc := settingsDocument{File: s.cfg.File}
		for _, x := range s.cfg.Show() {
			doc.Settings = append(doc.Settings, settingShown{Name: x.Name, Value: x.Value, Origin: x.Origin})
		}
		return s.print(doc, func(w io.Writer) {
			rows := [][]string{{"SETTING", "VALUE", "FROM"}}
			for _, x := range doc.Settings {
				rows = append(rows, []string{x.Name, orDash(x.Value), x.Origin})
			}
			table(w, rows)
			if doc.File == "" {
				fmt.Fprintln(w, "no settings file was read")
			}
		})
	})
}
