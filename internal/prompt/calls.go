package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// validID is an id that servers accept. Names and arguments that they do not
// accept are the encoder's to mend (model.Encode).
var validID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

// callIDs gives each call of a request an id of its own.
type callIDs struct {
	used map[string]bool
	n    int
}

// next keeps the id where it can be kept.
func (c *callIDs) next(id string) string {
	c.n++
	if !validID.MatchString(id) || c.used[id] {
		for n := c.n; ; n++ {
			if id = fmt.Sprintf("call_%d", n); !c.used[id] {
				break
			}
		}
	}
	c.used[id] = true
	return id
}

// arguments are as the model wrote them, cut when they are long: a member
// that wrote a file needs not read it with each of its later requests.
func arguments(raw string) (string, error) {
	raw = strings.ToValidUTF8(raw, "\uFFFD")
	if len(raw) <= MaxArguments {
		return raw, nil
	}
	object, ok := decodeObject(raw)
	if !ok {
		return shorten(raw), nil
	}
	out, err := encode(cutStrings(object))
	if err != nil || len(out) <= 2*MaxArguments {
		return out, err
	}
	return encode(map[string]any{"shortened_arguments": shorten(raw)})
}

func decodeObject(raw string) (map[string]any, bool) {
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil || object == nil {
		return nil, false
	}
	_, err := d.Token()
	return object, err == io.EOF
}

// encode gives JSON with sorted keys and characters as they are.
func encode(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", fmt.Errorf("encode arguments: %w", err)
	}
	return strings.TrimSpace(b.String()), nil
}

func cutStrings(v any) any {
	switch v := v.(type) {
	case string:
		return shorten(v)
	case []any:
		for i := range v {
			v[i] = cutStrings(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = cutStrings(v[k])
		}
	}
	return v
}

func shorten(s string) string {
	if len(s) <= MaxArgument {
		return s
	}
	shown := head(s, MaxArgument)
	return fmt.Sprintf("%s… [shortened in this transcript to %d of %d bytes; the call had them all]", shown, len(shown), len(s))
}

// What a model reads where a call has no outcome of its own.
const (
	interrupted = "Interrupted before it finished. It may have taken effect in part or not at all: check before you go on."
	unknown     = "Outcome unknown: the node stopped while this call was running. It may or may not have taken effect. Verify first; repeat it only if it did not."
)

// output is the content of a tool message, never empty.
func output(finished *rollcallv1.ToolCallFinished, text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if shown := head(text, MaxOutput); len(shown) < len(text) {
		text = fmt.Sprintf("%s\n[cut: the first %d of %d bytes are shown; ask for less at a time to see the rest]", shown, len(shown), len(text))
	}
	says := func(word string) bool {
		return strings.HasPrefix(strings.ToLower(strings.TrimSpace(text)), word)
	}
	blank := strings.TrimSpace(text) == ""
	switch {
	case finished.GetUnknown() && blank:
		return unknown
	case finished.GetUnknown() && !says("outcome unknown"):
		return unknown + "\n" + text
	case finished.GetUnknown():
		return text
	case finished.GetError() && blank:
		return "Error: the call failed and said nothing more."
	case finished.GetError() && !says("error"):
		return "Error: " + text
	case blank:
		return "Done; no output."
	}
	return text
}
