// Package jsontext looks at JSON as it was written, for what encoding/json
// changes without a word when it decodes.
package jsontext

import "strconv"

// HalfCharacter finds an escaped half of a surrogate pair (\ud800 to \udfff)
// without its other half, and returns it as it stands in raw; empty when there
// is none. Such a half is no character: encoding/json puts U+FFFD in its
// place, other decoders fail on it or pass it on to what cannot be written as
// UTF-8. raw is JSON, or one JSON string.
func HalfCharacter(raw []byte) string {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		unit, ok := unicodeEscape(raw[i:])
		switch {
		case !ok:
			i++ // the escaped character
		case unit >= 0xD800 && unit < 0xDC00:
			low, ok := unicodeEscape(raw[i+escape:])
			if !ok || low < 0xDC00 || low > 0xDFFF {
				return string(raw[i : i+escape])
			}
			i += 2*escape - 1
		case unit >= 0xDC00 && unit <= 0xDFFF:
			return string(raw[i : i+escape])
		default:
			i += escape - 1
		}
	}
	return ""
}

const escape = len(`\ud83d`)

// unicodeEscape reads \uXXXX at the beginning of raw.
func unicodeEscape(raw []byte) (unit uint64, ok bool) {
	if len(raw) < escape || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(raw[2:escape]), 16, 32)
	return unit, err == nil
}
