package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// line prints one JSON document on one line.
func (s *session) line(w io.Writer, v any) {
	data, err := api.Marshal(v)
	if err != nil {
		data = fmt.Appendf(nil, `{"code":"internal","what":%q}`, err.Error())
	}
	fmt.Fprintf(w, "%s\n", data)
}

// print shows a document: as JSON, or by what text writes.
func (s *session) print(doc any, text func(w io.Writer)) error {
	if s.flags.json {
		s.line(s.Out, doc)
		return nil
	}
	text(s.Out)
	return nil
}

// table aligns rows of cells; the first row is the head. Spaces before a cell
// stay. Without a row below the head it says so.
func table(w io.Writer, rows [][]string) {
	if len(rows) == 1 {
		head := rows[0][0]
		fmt.Fprintln(w, strings.Repeat(" ", len(head)-len(strings.TrimLeft(head, " ")))+"none")
		return
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			row[i] = strings.Repeat(" ", len(cell)-len(strings.TrimLeft(cell, " "))) + oneLine(cell, 100)
			widths[i] = max(widths[i], columns(row[i]))
		}
	}
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			line += pad(cell, widths[i]+2)
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// indentLines prints a text of several lines, each after a margin.
func indentLines(w io.Writer, margin, text string) {
	for line := range strings.Lines(printable(text)) {
		fmt.Fprintln(w, strings.TrimRight(margin+line, " \n"))
	}
}

// say tells on stderr, unless --progress quiet or --json is set.
func (s *session) say(format string, args ...any) {
	if s.flags.progress == quiet || s.flags.json && s.flags.progress == auto {
		return
	}
	fmt.Fprintf(s.Err, format+"\n", args...)
}

// answer shows what became of a write.
func (s *session) answer(a api.AnswerBody, what string) error {
	return s.print(a, func(w io.Writer) {
		switch {
		case a.Accepted:
			fmt.Fprintf(w, "accepted and stored; not yet decided (command %s)\n", a.Command)
		case a.Subject != "":
			fmt.Fprintf(w, "%s: %s at version %d\n", what, a.Subject, a.Version)
		default:
			fmt.Fprintf(w, "%s at version %d\n", what, a.Version)
		}
	})
}

// put prints a text that a person or a program reads: as it is into a file or
// pipe, made safe on a terminal.
func (s *session) put(w io.Writer, text string) {
	if s.Width(w) > 0 {
		text = printable(text)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	fmt.Fprint(w, text)
}

func tokens(u *rollcallv1.Usage) uint64 { return u.GetInputTokens() + u.GetOutputTokens() }

// spent says in a few words what a conversation used.
func spent(s *domain.State) string {
	text := fmt.Sprintf("%s, %s tokens", count(s.Used.Calls, "call"), thousands(s.Used.InputTokens+s.Used.OutputTokens))
	if s.Used.CostMicros > 0 {
		text += fmt.Sprintf(", cost %.4g", api.Units(s.Used.CostMicros))
	}
	return text
}

func thousands(n uint64) string {
	if n < 10_000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.1fk", float64(n)/1000)
}
