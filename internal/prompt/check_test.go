package prompt

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/rollcall-dev/rollcall/internal/model"
)

// A shownMessage is what stands in a frame, read back by an XML parser that knows
// nothing of package prompt.
type shownMessage struct {
	ID    string `xml:"id,attr"`
	From  string `xml:"from,attr"`
	Kind  string `xml:"kind,attr"`
	Time  string `xml:"time,attr"`
	Task  string `xml:"task,attr"`
	Topic string `xml:"topic,attr"`
	Reply string `xml:"reply_to,attr"`
	Wait  string `xml:"wait_for_reply,attr"`
	Shown string `xml:"shown,attr"`
	Body  string `xml:",chardata"`
}

type shownFrame struct {
	Notices  []string       `xml:"notice"`
	Messages []shownMessage `xml:"message"`
}

// split reads a user message: its frame, if any, and the operator's words.
func split(content string) (frame shownFrame, words string, err error) {
	const open, end = "<team-mailbox>\n", "</team-mailbox>"
	if !strings.HasPrefix(content, open) {
		return frame, content, noFrame(content)
	}
	at := strings.Index(content, end)
	if at < 0 {
		return frame, "", fmt.Errorf("the frame is never closed: %q", content)
	}
	inside, rest := content[:at+len(end)], content[at+len(end):]
	if err := noFrame(inside[len(open):at]); err != nil {
		return frame, "", err
	}
	if err := noFrame(rest); err != nil {
		return frame, "", err
	}
	if rest != "" && !strings.HasPrefix(rest, "\n\n") {
		return frame, "", fmt.Errorf("the operator's words do not begin a block of their own: %q", rest)
	}
	d := xml.NewDecoder(strings.NewReader(inside))
	if err := d.Decode(&frame); err != nil {
		return frame, "", fmt.Errorf("the frame is not well formed: %w: %q", err, inside)
	}
	if _, err := d.Token(); err != io.EOF {
		return frame, "", fmt.Errorf("something follows the frame's end: %q", inside)
	}
	return frame, strings.TrimPrefix(rest, "\n\n"), nil
}

func noFrame(s string) error {
	plain := strings.ToLower(strings.Join(strings.Fields(s), ""))
	for _, tag := range []string{"<team-mailbox", "</team-mailbox"} {
		if strings.Contains(plain, tag) {
			return fmt.Errorf("a second frame: %q", s)
		}
	}
	return nil
}

// checkRequest holds a request to what the strictest server asks: a system
// message first, every call answered at once and in order, nothing between, no
// two user messages or replies in a row, no empty message, something to answer.
func checkRequest(r model.Request) error {
	if len(r.Messages) < 2 || r.Messages[0].Role != "system" || r.Messages[1].Role != "user" {
		return fmt.Errorf("a request begins with system and user, this one with %d messages", len(r.Messages))
	}
	ids := map[string]bool{}
	var open []string
	for i, m := range r.Messages {
		previous := ""
		if i > 0 {
			previous = r.Messages[i-1].Role
		}
		if m.Role != "tool" && len(open) > 0 {
			return fmt.Errorf("message %d (%s) comes before the results of %v", i, m.Role, open)
		}
		if m.Content == "" && len(m.Calls) == 0 {
			return fmt.Errorf("message %d (%s) is empty", i, m.Role)
		}
		switch m.Role {
		case "system":
			if i > 0 {
				return fmt.Errorf("message %d is a second system message", i)
			}
		case "user":
			if previous == "user" {
				return fmt.Errorf("message %d is a user message after another", i)
			}
			if _, _, err := split(m.Content); err != nil {
				return fmt.Errorf("message %d: %w", i, err)
			}
		case "assistant":
			if previous == "assistant" {
				return fmt.Errorf("message %d is a reply after another", i)
			}
			for _, c := range m.Calls {
				if c.GetId() == "" || len(c.GetId()) > 40 || ids[c.GetId()] {
					return fmt.Errorf("call id %q is empty, long or used twice", c.GetId())
				}
				ids[c.GetId()] = true
				open = append(open, c.GetId())
			}
		case "tool":
			if len(open) == 0 || open[0] != m.CallID {
				return fmt.Errorf("message %d answers %q, open are %v", i, m.CallID, open)
			}
			open = open[1:]
		default:
			return fmt.Errorf("message %d has the role %q", i, m.Role)
		}
	}
	last := r.Messages[len(r.Messages)-1].Role
	if len(open) > 0 || last != "user" && last != "tool" {
		return fmt.Errorf("the request ends with %s, unanswered are %v", last, open)
	}
	_, err := model.Encode(r)
	return err
}
