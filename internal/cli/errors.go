package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
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
			return api.Codes(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	return s.command(c, func(_ context.Context, args []string) error {
		codes := api.Codes()
		if len(args) > 0 {
			if _, ok := api.Explain(args[0]); !ok {
				return codeNotFound(args[0], codes)
			}
			codes = args[:1]
		}
		doc := explained{Errors: []explanation{}}
		for _, code := range codes {
			m, _ := api.Explain(code)
			doc.Errors = append(doc.Errors, explanation{Code: code, Exit: m.Exit, Meaning: m.Text, Try: m.Try})
		}
		return s.print(doc, func(w io.Writer) {
			for _, e := range doc.Errors {
				fmt.Fprintf(w, "%s (exit %d)\n  %s\n", e.Code, e.Exit, e.Meaning)
				if e.Try != "" {
					fmt.Fprintf(w, "  try: %s\n", e.Try)
				}
			}
		})
	})
}

// explained is the document of errors.
type explained struct {
	Errors []explanation `json:"errors"`
}

type explanation struct {
	Code    string `json:"code"`
	Exit    int    `json:"exit"`
	Meaning string `json:"meaning"`
	Try     string `json:"try,omitempty"`
}

func codeNotFound(code string, codes []string) error {
	why := ""
	for i, near := range nearest.To(code, codes, 3) {
		if i == 0 {
			why = "the nearest are"
		}
		why += " " + near
	}
	return domain.Refuse("code-not-found", fmt.Sprintf("there is no error code %q", printable(code)), why, "rollcall errors lists them")
}
