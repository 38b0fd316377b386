package files

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/rollcall-dev/rollcall/domain"
)

// maxElement is the longest element of a path, in bytes: what disks can hold.
const maxElement = 255

// cleanPath is the form in which a path is stored. It is stricter than the
// log's own rule: NFC, no ".." even where it would stay inside, nothing that
// cannot be seen. A path that leaves the workspace is refused, never resolved.
func cleanPath(p string) (string, error) {
	p = strings.TrimSpace(norm.NFC.String(p))
	for _, r := range p {
		if r != 0 && invisible(r) {
			return "", fmt.Errorf("the path %q has the character %U, which cannot be seen; leave it out", p, r)
		}
	}
	for element := range strings.SplitSeq(p, "/") {
		if element == ".." {
			return "", fmt.Errorf(`the path %q has a ".." element; paths stay in the workspace`, p)
		}
		if element != strings.TrimSpace(element) {
			return "", fmt.Errorf("an element of the path %q begins or ends with a space; leave the space out", p)
		}
		if len(element) > maxElement {
			return "", fmt.Errorf("an element of the path has %d bytes, more than %d; choose a shorter name", len(element), maxElement)
		}
	}
	if strings.Trim(p, "/") != "" {
		p = strings.TrimRight(p, "/")
	}
	cleaned, refusal := domain.CleanPath(p)
	if refusal != nil {
		return "", fmt.Errorf("%s: %s; %s", refusal.What, refusal.Why, refusal.Try)
	}
	return cleaned, nil
}

// invisible reports controls, formats and separators; the joiners of scripts
// and emoji may stay.
func invisible(r rune) bool {
	if r == '\u200C' || r == '\u200D' {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
