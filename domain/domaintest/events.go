package domaintest

import (
	"fmt"
	"strings"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Names of events, in order, such as "RunFinished RunStarted".
func Names(events []*rollcallv1.Event) string {
	var names []string
	for _, e := range events {
		names = append(names, domain.EventName(e))
	}
	return strings.Join(names, " ")
}

// Count of events of a name.
func Count(events []*rollcallv1.Event, name string) int {
	n := 0
	for _, e := range events {
		if domain.EventName(e) == name {
			n++
		}
	}
	return n
}

// Finished are the tool outcomes among events.
func Finished(events []*rollcallv1.Event) []*rollcallv1.ToolCallFinished {
	var done []*rollcallv1.ToolCallFinished
	for _, e := range events {
		if f := e.GetToolCallFinished(); f != nil {
			done = append(done, f)
		}
	}
	return done
}

// Delivered are the messages among events, to one recipient or, when it is
// empty, to anybody.
func Delivered(events []*rollcallv1.Event, to string) []*rollcallv1.MessageDelivered {
	var mail []*rollcallv1.MessageDelivered
	for _, e := range events {
		if m := e.GetMessageDelivered(); m != nil && (to == "" || m.GetTo() == to) {
			mail = append(mail, m)
		}
	}
	return mail
}

// All events of the log.
func (k *Kit) All() []*rollcallv1.Event {
	var all []*rollcallv1.Event
	for _, c := range k.Commits {
		all = append(all, c.GetEvents()...)
	}
	return all
}

// Describe a command in a word.
func Describe(cmd *rollcallv1.Command) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", cmd.GetKind()), "*rollcallv1.Command_")
}
