package api

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
)

// MaxText is the most bytes of one message's text.
const MaxText = eventstore.MaxInbox

// CheckText refuses what no log may hold: invalid UTF-8, NUL, and more than
// limit bytes. what names the text in the refusal.
func CheckText(what, text string, limit int) error {
	if len(text) > limit {
		return domain.Refuse("text-too-long", what+" is too long",
			fmt.Sprintf("%d KiB, the limit is %d KiB", (len(text)+1023)>>10, limit>>10),
			"put it into a file and give it with --input")
	}
	if !utf8.ValidString(text) {
		return domain.Refuse("text-invalid", what+" is not valid UTF-8",
			fmt.Sprintf("the first invalid byte is at %d", firstInvalid(text)), "convert it to UTF-8, for example with iconv")
	}
	if i := strings.IndexByte(text, 0); i >= 0 {
		return domain.Refuse("text-invalid", what+" contains a NUL character",
			fmt.Sprintf("at byte %d", i), "remove it, or give binary data with --input")
	}
	return nil
}

func firstInvalid(s string) int {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return i
			}
		}
	}
	return len(s)
}

func textRefusal(what string, err error) error {
	return domain.Refuse("text-invalid", what+" cannot be encoded", err.Error(), "use valid UTF-8 text")
}
