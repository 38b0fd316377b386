package eventstore

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rollcall-dev/rollcall/domain"
)

// Subjects are built and parsed here and nowhere else; docs/subjects.md lists
// them. Names of people and things never stand in a subject.
const (
	prefixEvents = "rollcall.events"
	prefixIn     = "rollcall.in"
	prefixCmd    = "rollcall.cmd"
	prefixTimer  = "rollcall.timer"
	prefixDue    = "rollcall.due"
	prefixDead   = "rollcall.dead"
)

// ToCommand is the recipient of commands that are no messages.
const ToCommand = "_"

// EventSubject is a conversation's log: rollcall.events.<p>.<tenant>.<conv>.
func EventSubject(k domain.Key) string {
	return prefixEvents + "." + strconv.Itoa(k.Partition()) + "." + k.String()
}

// InboxSubject is where messages to a member enter: rollcall.in.<tenant>.<conv>.<to>.
func InboxSubject(k domain.Key, to string) string {
	return prefixIn + "." + k.String() + "." + to
}

// ParseEventSubject is the inverse of EventSubject. A key that is not valid,
// or a partition that is not the key's, is an error.
func ParseEventSubject(subject string) (domain.Key, error) {
	rest, ok := strings.CutPrefix(subject, prefixEvents+".")
	t := strings.Split(rest, ".")
	if !ok || len(t) != 3 {
		return domain.Key{}, fmt.Errorf("subject %q is no conversation's log", subject)
	}
	k := domain.Key{Tenant: t[1], Conversation: t[2]}
	if !k.Valid() || t[0] != strconv.Itoa(k.Partition()) {
		return domain.Key{}, fmt.Errorf("subject %q is no conversation's log", subject)
	}
	return k, nil
}
