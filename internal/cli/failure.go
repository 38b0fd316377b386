package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/nearest"
)

// fail says on stderr what went wrong, why, and what to try.
func (s *session) fail(err error) {
	r := api.AsRefusal(err)
	if s.flags.json {
		s.line(s.Err, api.ErrorBody{Code: r.Code, What: r.What, Why: r.Why, Try: r.Try, Exit: api.ExitCode(r)})
		return
	}
	fmt.Fprintf(s.Err, "error: %s [%s]\n", printable(r.What), r.Code)
	indent(s, "why", r.Why)
	indent(s, "try", r.Try)
}

func indent(s *session, word, text string) {
	if text == "" {
		return
	}
	for i, line := range strings.Split(printable(text), "\n") {
		if i > 0 {
			word = ""
		}
		fmt.Fprintf(s.Err, "  %-3s  %s\n", word, line)
	}
}

// args makes an argument check whose errors say how the command is used.
func args(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) {
			return nil
		}
		why := fmt.Sprintf("it takes %s, got %d", count(least, "argument"), len(args))
		switch {
		case most < 0:
			why = fmt.Sprintf("it takes at least %s, got %d", count(least, "argument"), len(args))
		case most > least:
			why = fmt.Sprintf("it takes %d to %d arguments, got %d", least, most, len(args))
		}
		return domain.Refuse("usage", c.CommandPath()+" cannot be run like that", why, c.UseLine())
	}
}

func noArgs(c *cobra.Command, given []string) error {
	if len(given) == 0 {
		return nil
	}
	if c.HasSubCommands() {
		why := "there is no command " + fmt.Sprintf("%q", printable(given[0]))
		if near := c.SuggestionsFor(given[0]); len(near) > 0 {
			why += "; did you mean " + strings.Join(near, " or ") + "?"
		}
		return domain.Refuse("usage", "the command line cannot be understood", why, c.CommandPath()+" --help lists the commands")
	}
	return args(0, 0)(c, given)
}

// family makes a command that only holds others: alone it shows its help.
func family(c *cobra.Command, members ...*cobra.Command) *cobra.Command {
	c.AddCommand(members...)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.Args = noArgs
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	return c
}

// didYouMean ends a sentence with the nearest of the words that are right.
func didYouMean(wrote string, right ...string) string {
	if near := nearest.To(wrote, right, 2); len(near) > 0 {
		return "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return ""
}

// printable keeps control characters of strangers' texts off the terminal. Tabs
// and line ends stay.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < ' ' || r >= 0x7f && r < 0xa0:
			return '\uFFFD'
		case r == '\u202A' || r == '\u202B' || r == '\u202D' || r == '\u202E' || r >= '\u2066' && r <= '\u2069':
			return '\uFFFD' // would turn the line around
		}
		return r
	}, text)
}

// oneLine cuts a text to one line of at most n characters.
func oneLine(text string, n int) string {
	text = strings.Join(strings.Fields(printable(text)), " ")
	if r := []rune(text); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}
