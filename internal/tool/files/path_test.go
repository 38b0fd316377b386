package files

import (
	"path"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestCleanPath(t *testing.T) {
	for in, want := range map[string]string{
		"a.txt":             "a.txt",
		" a.txt ":           "a.txt",
		"./api//p.json":     "api/p.json",
		"api/./p.json":      "api/p.json",
		"api/":              "api",
		"..a/b..":           "..a/b..",
		"...":               "...",
		"Übersicht/語.md":    "Übersicht/語.md",
		"U\u0308bersicht":   "Übersicht",
		"~/x":               "~/x",
		"a b/c d":           "a b/c d",
		"👩\u200D💻.txt":      "👩\u200D💻.txt",
		"C:/windows":        "C:/windows",
		"%2e%2e/etc/passwd": "%2e%2e/etc/passwd",
	} {
		if got, err := cleanPath(in); err != nil || got != want {
			t.Errorf("cleanPath(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
	for in, says := range map[string]string{
		"":                              "names no file",
		"  ":                            "names no file",
		".":                             "names no file",
		"./":                            "names no file",
		"..":                            `".." element`,
		"../x":                          `".." element`,
		"a/../b":                        `".." element`,
		"a/..":                          `".." element`,
		"/etc/passwd":                   "is absolute",
		"//x":                           "is absolute",
		`a\b`:                           "backslash",
		`..\x`:                          "backslash",
		"a /b":                          "begins or ends with a space",
		"a/ /.":                         "begins or ends with a space",
		"a\x00b":                        "NUL",
		"a\nb":                          "U+000A",
		"a\u202Eb":                      "U+202E",
		"a\u200Bb":                      "U+200B",
		"a\u2028b":                      "U+2028",
		"a\x7f":                         "U+007F",
		"\xff":                          "UTF-8",
		strings.Repeat("a/", 256) + "b": "at most 500",
		strings.Repeat("a", 256):        "more than 255",
	} {
		if got, err := cleanPath(in); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("cleanPath(%q) = %q, %v, want an error that says %q", in, got, err, says)
		}
	}
}

func FuzzCleanPath(f *testing.F) {
	for _, p := range []string{"a", "../a", "a/../../b", "/a", `a\..\b`, "．．/a", "a/\u200B../b", "‥/x", "\x00", "a//b/./c/", "é", "e\u0301", "a/# /"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, err := cleanPath(in)
		if err != nil {
			return
		}
		if again, err := cleanPath(got); err != nil || again != got {
			t.Errorf("cleanPath(%q) = %q, and of that %q, %v", in, got, again, err)
		}
		if path.IsAbs(got) || path.Clean(got) != got || got == "." || len(got) > 512 || !utf8.ValidString(got) || !norm.NFC.IsNormalString(got) {
			t.Errorf("cleanPath(%q) = %q", in, got)
		}
		if joined := path.Join("/workspace", got); !strings.HasPrefix(joined, "/workspace/") {
			t.Errorf("cleanPath(%q) leaves the workspace: %q", in, joined)
		}
		for element := range strings.SplitSeq(got, "/") {
			if element == "" || element == "." || element == ".." {
				t.Errorf("cleanPath(%q) = %q has the element %q", in, got, element)
			}
		}
		if strings.ContainsFunc(got, unicode.IsControl) || strings.Contains(got, `\`) {
			t.Errorf("cleanPath(%q) = %q", in, got)
		}
	})
}
