package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/docs"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/nearest"
)

func (s *session) errors() *cobra.Command {
	c := &cobra.Command{
		Use:   "errors [CODE]",
		Short: "Explain an error code, or list them",
		Example: `  rollcall errors node-unreachable
  rollcall errors --json`,
		GroupID: groupOperate, Args: args(0, 1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return codes(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	return s.command(c, func(_ context.Context, args []string) error {
		rows := docs.Errors()
		if len(args) > 0 {
			row, ok := docs.ErrorOf(args[0])
			if !ok {
				return codeNotFound(args[0])
			}
			rows = []docs.Error{row}
		}
		doc := explained{Errors: []explanation{}}
		for _, r := range rows {
			doc.Errors = append(doc.Errors, explanation{Code: r.Code, Exit: r.Exit, Means: r.Means, Try: r.Try})
		}
		return s.print(doc, func(w io.Writer) {
			for _, e := range doc.Errors {
				fmt.Fprintf(w, "%s (exit %d)\n  %s\n  try  %s\n", e.Code, e.Exit, e.Means, e.Try)
			}
		})
	})
}

func codes() []string {
	var all []string
	for _, r := range docs.Errors() {
		all = append(all, r.Code)
	}
	return all
}

// explained is the document of errors.
type explained struct {
	Errors []explanation `json:"errors"`
}

type explanation struct {
	Code string `json:"code"`
	// Exit of a command that ends with it.
	Exit  int    `json:"exit"`
	Means string `json:"means"`
	Try   string `json:"try"`
}

func codeNotFound(code string) error {
	why := ""
	for i, near := range nearest.To(code, codes(), 3) {
		if i == 0 {
			why = "the nearest are"
		}
		why += " " + near
	}
	return domain.Refuse("code-not-found", fmt.Sprintf("there is no error code %q", printable(code)), why, "rollcall errors lists them")
}
