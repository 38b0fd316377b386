package prompt

import (
	"unicode/utf8"

	"github.com/rollcall-dev/rollcall/domain"
)

// Bounds of what one request shows, as the domain counts them.
const (
	MaxMail       = domain.ShownMail
	MaxMailBytes  = domain.ShownMailBytes
	MaxFrameBytes = domain.ShownFrameBytes
	MaxOutput     = domain.ShownOutput
	MaxArguments  = domain.ShownArguments
	// MaxArgument is what strings of longer arguments are cut to.
	MaxArgument = 4 << 10
)

// head is the longest beginning of s with at most n bytes that ends between
// two runes.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
