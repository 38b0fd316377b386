package domain

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Limits of texts. Longer bodies lie in the object store before they are
// decided; what the state itself keeps is short.
const (
	// MaxInline is the longest text of a body that stands in the log, in bytes.
	MaxInline = 64 << 10
	// MaxMessage is the longest message from outside, in bytes.
	MaxMessage = 512 << 10
	// MaxTaskText is the longest description, result or reason of a task, in bytes.
	MaxTaskText = 32 << 10
	// MaxTitle is the longest title or name of a conversation or team, in runes.
	MaxTitle = 200
)

const useFile = "put long text into a file and name its path"

// checkText refuses what cannot stand in the log.
func checkText(what, text string, maxBytes int) *Refusal {
	switch {
	case !utf8.ValidString(text):
		return Refuse("text-invalid", what+" is refused", "it is not valid UTF-8", "send it as UTF-8, or as a file")
	case strings.ContainsRune(text, 0):
		return Refuse("text-invalid", what+" is refused", "it contains a NUL character", "leave it out, or send it as a file")
	case len(text) > maxBytes:
		return Refuse("text-too-long", what+" is refused", fmt.Sprintf("it has %d bytes, at most %d are allowed", len(text), maxBytes), useFile)
	}
	return nil
}

// checkBody refuses a body from outside that is empty or cannot stand in the log.
func checkBody(what string, b *rollcallv1.Body) *Refusal {
	if emptyBody(b) {
		return Refuse("text-empty", what+" is refused", "it is empty", "say something")
	}
	if blob := b.GetBlob(); blob != nil {
		if blob.GetSize() > MaxMessage {
			return Refuse("text-too-long", what+" is refused",
				fmt.Sprintf("it has %d bytes, at most %d are allowed", blob.GetSize(), MaxMessage), useFile)
		}
		return nil
	}
	return checkText(what, b.GetText(), MaxInline)
}

// title normalises a one-line text and checks it.
func title(what, text string) (string, *Refusal) {
	if r := checkText(what, text, 4*MaxTitle+MaxInline); r != nil {
		return "", r
	}
	text = strings.Join(strings.Fields(norm.NFC.String(text)), " ")
	if n := utf8.RuneCountInString(text); n > MaxTitle {
		return "", Refuse("text-too-long", what+" is refused", fmt.Sprintf("it has %d characters, at most %d are allowed", n, MaxTitle), useFile)
	}
	return text, nil
}

// Clean makes what a model or a tool said fit for the log: valid UTF-8
// without NUL. Their words cannot be refused: the call has been made.
func Clean(text string) string {
	if utf8.ValidString(text) && !strings.ContainsRune(text, 0) {
		return text
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

func cleanBody(b *rollcallv1.Body) *rollcallv1.Body {
	if b.GetBlob() != nil {
		return &rollcallv1.Body{Blob: b.GetBlob()}
	}
	if b.GetText() == "" {
		return nil
	}
	return textBody(Clean(b.GetText()))
}

// Shorten cuts text to about n bytes, at a rune, and marks that it did.
func Shorten(text string, n int) string { return cut(text, n) }

// cut shortens text to about n bytes at a rune.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + " …"
}
