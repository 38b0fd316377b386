package eval

import (
	"fmt"
	"strconv"
	"strings"
)

// heads of the table; the first three are words.
var heads = []string{
	"model", "case", "arm", "success", "missing", "fabricated",
	"needless", "redundant", "duplicate", "invalid", "loops", "guards", "undelivered", "lacking",
	"correct", "seconds", "calls", "tokens", "cost",
}

const wordColumns = 3

// Table is the report for people: a line for each model, case and arm.
func (r Report) Table() string {
	rows := [][]string{heads}
	for _, w := range r.Results {
		line := []string{
			w.Model, w.Case, w.Arm, share(w.Success, w.Runs), strconv.Itoa(w.Missing), strconv.Itoa(w.Fabricated),
		}
		for _, n := range w.counts() {
			line = append(line, strconv.Itoa(n))
		}
		rows = append(rows, append(line,
			share(w.Correct, w.Runs), fmt.Sprintf("%.1f", w.Seconds/float64(max(w.Runs, 1))), strconv.FormatUint(w.Calls, 10),
			strconv.FormatUint(w.InputTokens+w.OutputTokens, 10), fmt.Sprintf("%.4f", w.Cost)))
	}
	return lay(rows)
}

func share(n, of int) string { return fmt.Sprintf("%d/%d", n, of) }

// lay writes words to the left and numbers to the right.
func lay(rows [][]string) string {
	wide := make([]int, len(heads))
	for _, row := range rows {
		for i, cell := range row {
			wide[i] = max(wide[i], len([]rune(cell)))
		}
	}
	var out strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			gap := strings.Repeat(" ", wide[i]-len([]rune(cell)))
			if i < wordColumns {
				line.WriteString(cell + gap + "  ")
			} else {
				line.WriteString(gap + cell + "  ")
			}
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return out.String()
}
