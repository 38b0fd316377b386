// Package docs holds the pages that commands print. The pages are the source:
// what a command says is what the page says.
package docs

import (
	_ "embed"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

//go:embed errors.md
var errorsPage string

// Error is a row of errors.md.
type Error struct {
	Code string
	// Exit is the exit code of a command that ends with the error; 1 for one
	// that never ends a command.
	Exit int
	// Means says what it means, Try what to try, in Markdown of one line.
	Means, Try string
}

var row = regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\| ([0-9]+|-) \\| (.+?) \\| (.+?) \\|$")

// Errors lists the rows of errors.md in the order of the page.
var Errors = sync.OnceValue(func() []Error {
	var all []Error
	for _, m := range row.FindAllStringSubmatch(errorsPage, -1) {
		exit, err := strconv.Atoi(m[2])
		if err != nil { // a dash
			exit = 1
		}
		all = append(all, Error{Code: m[1], Exit: exit, Means: strings.TrimSpace(m[3]), Try: strings.TrimSpace(m[4])})
	}
	return all
})

var byCode = sync.OnceValue(func() map[string]Error {
	codes := make(map[string]Error, len(Errors()))
	for _, e := range Errors() {
		codes[e.Code] = e
	}
	return codes
})

// ErrorOf is the row of a code; false when the page has none.
func ErrorOf(code string) (Error, bool) {
	e, ok := byCode()[code]
	return e, ok
}
