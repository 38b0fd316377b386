package jsontext

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestHalfCharacter(t *testing.T) {
	for raw, want := range map[string]string{
		``:                               "",
		`"plain 😀"`:                      "",
		`"\ud83d\ude00"`:                 "",
		`"\uD83D\uDE00 \u00e9 \n \\u0"`:  "",
		`"\\ud83d"`:                      "",
		`"\\\\ud83d"`:                    "",
		`{"a":["\ud83d\ude00","\\\""]}`:  "",
		`"\ud83d"`:                       `\ud83d`,
		`"\\\ud83d"`:                     `\ud83d`,
		`"\ude00"`:                       `\ude00`,
		`"\ud83dx\ude00"`:                `\ud83d`,
		`"\ud83d\ud83d\ude00"`:           `\ud83d`,
		`"\ud83d\ude00\ude00"`:           `\ude00`,
		`"\ud83d\u0041"`:                 `\ud83d`,
		`"\ud83d\\ude00"`:                `\ud83d`,
		`{"\uDBFF":1}`:                   `\uDBFF`,
		`"\ud8`:                          "",
		`"\`:                             "",
		`"\ud83d\ude0`:                   `\ud83d`,
		"{\"a\":1}\n{\"b\":\"\\udc00\"}": `\udc00`,
	} {
		if got := HalfCharacter([]byte(raw)); got != want {
			t.Errorf("in %s there is %q, want %q", raw, got, want)
		}
	}
}

// What encoding/json cannot keep of a string is what HalfCharacter finds.
func FuzzHalfCharacter(f *testing.F) {
	for _, s := range []string{`"\ud83d\ude00"`, `"\ud83d"`, `"\\\ud83d"`, `"\ud83d\ud83d\ude00"`, `"\ufffd"`, `"\uDc00\u"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		var text string
		if strings.Contains(raw, "\uFFFD") || strings.Contains(strings.ToLower(raw), `\ufffd`) || json.Unmarshal([]byte(raw), &text) != nil {
			return
		}
		half := HalfCharacter([]byte(raw))
		replaced := strings.Contains(text, "\uFFFD") && strings.ToValidUTF8(raw, "") == raw
		if replaced && half == "" {
			t.Errorf("%s lost a half character", raw)
		}
		if half != "" && !strings.Contains(text, "\uFFFD") {
			t.Errorf("%s has lost nothing, but %s is named", raw, half)
		}
	})
}
