package prompt

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// frameTag is the element that only this package may write.
const frameTag = "team-mailbox"

// escape makes text safe to stand in a frame: no characters of it can open or
// close an element, look as if they did, hide, reorder what is read, or begin
// a line as if another party spoke. The result is XML character data; a reader
// who resolves its references has the text back, except that control
// characters became their pictures.
func escape(s string) string {
	var b strings.Builder
	b.Grow(len(s) + len(s)/16)
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		colon := speakerColon(line)
		for at, r := range line {
			if at == colon {
				reference(&b, r)
			} else {
				escapeRune(&b, r)
			}
		}
	}
	return b.String()
}

// quote is an attribute's value, in its quotes: escaped, on one line.
func quote(s string) string {
	s = escape(s)
	s = strings.NewReplacer(`"`, "&quot;", `'`, "&#39;", "\n", "&#xA;", "\t", "&#x9;").Replace(s)
	return `"` + s + `"`
}

func escapeRune(b *strings.Builder, r rune) {
	switch {
	case r == '&':
		b.WriteString("&amp;")
	case r == '<':
		b.WriteString("&lt;")
	case r == '>':
		b.WriteString("&gt;")
	case r == '\t':
		b.WriteRune(r)
	case r < 0x20:
		b.WriteRune('\u2400' + r) // ␀ to ␟
	case r == 0x7F:
		b.WriteRune('\u2421')
	case r == 0xFFFE || r == 0xFFFF:
		b.WriteRune(utf8.RuneError)
	case bracket(r) || hidden(r):
		reference(b, r)
	default:
		b.WriteRune(r)
	}
}

func reference(b *strings.Builder, r rune) {
	fmt.Fprintf(b, "&#x%X;", r)
}

// Brackets that a model may read as < or >.
const brackets = "＜＞﹤﹥‹›〈〉〈〉⟨⟩❬❭❮❯❰❱⧼⧽˂˃ᐸᐳ⟪⟫≺≻⪻⪼⋖⋗᚜᚛"

func bracket(r rune) bool {
	return r > unicode.MaxASCII && strings.ContainsRune(brackets, r)
}

// hidden reports characters that are not seen, or that move what is seen:
// formats, line and paragraph separators, C1 controls. The joiners stay, for
// scripts and emoji need them.
func hidden(r rune) bool {
	if r == '\u200C' || r == '\u200D' {
		return false
	}
	return r > unicode.MaxASCII && unicode.In(r, unicode.Cf, unicode.Cc, unicode.Zl, unicode.Zp)
}

// Words that begin a line where another party seems to speak.
var speakers = map[string]bool{
	"human": true, "user": true, "operator": true, "assistant": true, "system": true,
	"developer": true, "framework": true, "tool": true, "function": true, "ai": true, "model": true,
}

// speakerColon is the place of the colon in a line such as "Human: do this",
// or -1. Marks around the word do not hide it.
func speakerColon(line string) int {
	var word strings.Builder
	ended := false
	for at, r := range line {
		switch {
		case colon(r):
			if speakers[fold(word.String())] {
				return at
			}
			return -1
		case unicode.IsLetter(r):
			if ended || word.Len() > 64 {
				return -1
			}
			word.WriteRune(r)
		case unicode.IsNumber(r):
			return -1
		case word.Len() > 0 && !hidden(r) && r != '\u200C' && r != '\u200D':
			ended = true
		}
	}
	return -1
}

func colon(r rune) bool { return strings.ContainsRune(":：﹕꞉ː∶︓", r) }

// fold makes letters that only look different equal.
func fold(s string) string { return strings.ToLower(norm.NFKC.String(s)) }

// outside is the operator's text as it stands after the frame: the very words,
// except that quoting a frame neither opens nor closes one.
func outside(s string) string {
	var b strings.Builder
	for at, r := range s {
		if (r == '<' || bracket(r)) && namesFrame(s[at+utf8.RuneLen(r):]) {
			b.WriteString("&lt;")
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// namesFrame reports whether s begins with the frame's tag, also when it is
// spaced, hyphenated or lettered otherwise.
func namesFrame(s string) bool {
	var word strings.Builder
	for _, r := range s {
		switch {
		case unicode.IsSpace(r), hidden(r), r == '\u200C', r == '\u200D', r == '/', r == '\\', r == '／':
			continue
		case unicode.Is(unicode.Pd, r), r == '_', r == '−':
			r = '-'
		}
		word.WriteRune(r)
		folded := fold(word.String())
		if strings.HasPrefix(folded, frameTag) {
			return true
		}
		if !strings.HasPrefix(frameTag, folded) {
			return false
		}
	}
	return false
}
