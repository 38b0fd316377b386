package cli

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// runeColumns is how many columns of a terminal a character takes.
func runeColumns(r rune) int {
	switch {
	case r == 0x200b, r == 0x200d, unicode.In(r, unicode.Mn, unicode.Me): // joins the one before it
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// columns is how many columns a text takes.
func columns(text string) int {
	n := 0
	for _, r := range text {
		n += runeColumns(r)
	}
	return n
}

// pad fills a text up with spaces to n columns.
func pad(text string, n int) string {
	return text + strings.Repeat(" ", max(n-columns(text), 0))
}
