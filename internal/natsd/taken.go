package natsd

import (
	"errors"
	"regexp"
	"strings"
	"syscall"

	"github.com/rollcall-dev/rollcall/domain"
)

// listening finds where the server wanted to listen in its last words.
var listening = regexp.MustCompile(`listen tcp[46]? (\S+): `)

// gaveUp is why a server did not start, of its last words.
func gaveUp(line string) error {
	at := listening.FindStringSubmatch(line)
	if at == nil || !strings.Contains(line, syscall.EADDRINUSE.Error()) {
		return errors.New(line)
	}
	return domain.Refuse("address-in-use", "the NATS server cannot listen on "+at[1], "another program, or another node, has that address",
		"stop that one (a node with this folder may be running already), or give the server another port")
}
