package cli

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionInfo is the document of version.
type versionInfo struct {
	Version string `json:"version"`
	// Commit of the source, when the build knows it.
	Commit string `json:"commit,omitempty"`
	Go     string `json:"go"`
}

func (s *session) versionCommand() *cobra.Command {
	return s.command(&cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: `  rollcall version --json`,
		GroupID: groupOperate, Args: args(0, 0),
	}, func(context.Context, []string) error {
		v := versionInfo{Version: s.Version, Go: runtime.Version()}
		if info, ok := debug.ReadBuildInfo(); ok {
			for _, x := range info.Settings {
				if x.Key == "vcs.revision" {
					v.Commit = x.Value
				}
			}
		}
		return s.print(v, func(w io.Writer) { fmt.Fprintf(w, "rollcall %s (%s)\n", v.Version, v.Go) })
	})
}
