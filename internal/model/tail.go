package model

import (
	"encoding/json"
	"unicode/utf8"
)

// A tails joins characters that a server cut in two between chunks: the halves
// of a surrogate pair, written as escapes, or the bytes of one UTF-8 sequence.
// Decoded apart, each half would become U+FFFD.
type tails map[string][]byte

// text decodes a JSON string, the piece of the text named by key. A half
// character at its end waits for the next piece.
func (t tails) text(key string, raw json.RawMessage) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	inner := raw[1 : len(raw)-1]
	if held := t[key]; len(held) > 0 && len(inner) > 0 {
		delete(t, key)
		inner = append(held[:len(held):len(held)], inner...)
	}
	if n := halfAtEnd(inner); n > 0 {
		t[key] = append([]byte(nil), inner[len(inner)-n:]...)
		inner = inner[:len(inner)-n]
	}
	quoted := make([]byte, 0, len(inner)+2)
	quoted = append(append(append(quoted, '"'), inner...), '"')
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return "", false
	}
	return s, true
}

// halfAtEnd is the length of the half character at the end of the inside of a
// JSON string, 0 if there is none.
func halfAtEnd(s []byte) int {
	const escape = len(`\ud83d`)
	if n := len(s); n >= escape && s[n-escape] == '\\' && s[n-5] == 'u' && highSurrogate(s[n-4:]) {
		slashes := 0
		for i := n - escape; i >= 0 && s[i] == '\\'; i-- {
			slashes++
		}
		if slashes%2 == 1 {
			return escape
		}
	}
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		tail := s[len(s)-n:]
		if utf8.RuneStart(tail[0]) {
			if tail[0] >= utf8.RuneSelf && !utf8.FullRune(tail) {
				return n
			}
			return 0
		}
	}
	return 0
}

// highSurrogate reports hex digits d800 to dbff.
func highSurrogate(hex []byte) bool {
	if hex[0]|0x20 != 'd' {
		return false
	}
	switch hex[1] | 0x20 {
	case '8', '9', 'a', 'b':
	default:
		return false
	}
	return isHex(hex[2]) && isHex(hex[3])
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}
