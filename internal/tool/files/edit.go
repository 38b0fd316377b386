package files

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/rollcall-dev/rollcall/internal/tool"
)

type editArgs struct {
	Path       string `json:"path" jsonschema:"the file to change, in your own workspace"`
	OldText    string `json:"old_text" jsonschema:"the passage to replace, exactly as it stands in the file, with enough around it to be the only one"`
	NewText    string `json:"new_text" jsonschema:"what to put in its place"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"true to replace every occurrence"`
}

func editFile(store Store) action[editArgs] {
	return func(ctx context.Context, w workspace, args editArgs) (tool.Outcome, error) {
		path, err := w.own(args.Path)
		if err != nil {
			return tool.Outcome{}, err
		}
		blob, err := w.blob(path, "")
		if err != nil {
			return tool.Outcome{}, err
		}
		data, err := store.GetBlob(ctx, w.plan.Key, blob)
		if err != nil {
			return tool.Outcome{}, err
		}
		if binary(data) {
			return tool.Outcome{}, mistakef("%s is a binary file and cannot be edited as text.", path)
		}
		text, n, err := replace(path, string(data), args)
		if err != nil {
			return tool.Outcome{}, err
		}
		out, err := w.put(ctx, store, path, text, "edited")
		if err == nil && n > 1 {
			out.Output += fmt.Sprintf(" %d places changed.", n)
		}
		return out, err
	}
}

// replace changes the passage and counts the places. A file whose lines end in
// CRLF may be edited with plain line ends.
func replace(path, text string, args editArgs) (string, int, error) {
	before, after := args.OldText, args.NewText
	switch {
	case before == "":
		return "", 0, mistakef("old_text is empty. To write a whole file, use file_write.")
	case before == after:
		return "", 0, mistakef("old_text and new_text are the same: there is nothing to change.")
	}
	n := strings.Count(text, before)
	if n == 0 && strings.Contains(text, "\r\n") && !strings.Contains(before, "\r") {
		before, after = strings.ReplaceAll(before, "\n", "\r\n"), strings.ReplaceAll(after, "\n", "\r\n")
		n = strings.Count(text, before)
	}
	switch {
	case n == 0:
		return "", 0, mistakef("old_text does not occur in %s. %s", path, why(text, args.OldText))
	case n > 1 && !args.ReplaceAll:
		return "", 0, mistakef("old_text occurs %d times in %s, at lines %s. Add what stands around the one you mean, or set replace_all.", n, path, places(text, before))
	}
	return strings.ReplaceAll(text, before, after), n, nil
}

// why tells what the passage differs in, so far as that can be seen.
func why(text, before string) string {
	folded := strings.Join(strings.Fields(before), " ")
	if folded != "" {
		all := lines(text)
		span := len(lines(before))
		for i := range all {
			passage := strings.Join(all[i:min(i+span, len(all))], "")
			if strings.Contains(strings.Join(strings.Fields(passage), " "), folded) {
				return fmt.Sprintf("It stands at line %d with other white space: read the file and copy the passage as it is.", i+1)
			}
		}
		if at := strings.Index(strings.ToLower(text), strings.ToLower(before)); at >= 0 {
			return fmt.Sprintf("It stands at line %d with other capitals: copy the passage as it is.", line(text, at))
		}
	}
	return "Read the file and copy the passage exactly."
}

// places names the lines of the first occurrences.
func places(text, before string) string {
	const most = 10
	var out []string
	for at := 0; ; {
		i := strings.Index(text[at:], before)
		if i < 0 {
			return strings.Join(out, ", ")
		}
		if len(out) == most {
			return strings.Join(out, ", ") + " and more"
		}
		at += i
		out = append(out, strconv.Itoa(line(text, at)))
		at += len(before)
	}
}

func line(text string, at int) int {
	return 1 + strings.Count(text[:min(at, len(text))], "\n")
}
