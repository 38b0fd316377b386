package actors

import (
	"cmp"
	"regexp"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
)

// traceparent is a W3C trace context; nothing else is passed on from outside.
var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// origin is what the headers of the commit say of where it came from: of the
// first command that it holds the effect of.
func (f *flight) origin() eventstore.Origin {
	for _, d := range f.decided {
		if d.err != nil {
			continue
		}
		o := eventstore.Origin{Actor: cmp.Or(d.item.command.GetActor(), domain.Operator), Correlation: d.item.command.GetId()}
		if d.item.delivery == nil {
			return o
		}
		if trace := d.item.delivery.Envelope().Header["traceparent"]; traceparent.MatchString(trace) {
			o.Traceparent = trace
		}
		return o
	}
	return eventstore.Origin{}
}
