package prompt

import "unicode/utf8"

// Bounds of what one request shows, in bytes unless said otherwise. They are
// part of the renderer's version.
const (
	// MaxMail is how many messages one frame holds.
	MaxMail = 50
	// MaxMailBytes is what one message of a frame shows, MaxFrameBytes what all
	// of them show together. A brief is an assignment: it may fill a frame.
	MaxMailBytes  = 32 << 10
	MaxFrameBytes = 64 << 10
	// MaxOutput is what one tool result shows.
	MaxOutput = 32 << 10
	// MaxArguments is what one call's arguments show; strings of longer ones are
	// cut to MaxArgument.
	MaxArguments = 32 << 10
	MaxArgument  = 4 << 10
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
