package node

import (
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
)

// streams compares the settings of the streams with those that the promises
// need: somebody with the right to may have changed them since the start.
func (d *doctor) streams(ctx context.Context) api.Check {
	c := api.Check{Name: "streams", Level: api.OK}
	js, err := jetstream.New(d.nc)
	if err != nil {
		return api.Check{Name: c.Name, Level: api.Fail, Found: err.Error(), Fix: "look at the node's log"}
	}
	wanted := eventstore.Streams(eventstore.Config{})
	var odd []string
	for _, want := range wanted {
		s, err := js.Stream(ctx, want.Name)
		if err != nil {
			return api.Check{Name: c.Name, Level: api.Fail, Found: want.Name + ": " + err.Error(), Fix: "start the node again: it makes what is missing"}
		}
		odd = append(odd, eventstore.Drift(want, s.CachedInfo().Config)...)
	}
	if len(odd) > 0 {
		return api.Check{
			Name: c.Name, Level: api.Fail, Found: "changed by somebody: " + strings.Join(odd, "; "),
			Fix: "start the node again: it sets them as they must be; and see who may change streams",
		}
	}
	c.Found = fmt.Sprintf("all %d have the settings that the promises need", len(wanted))
	return c
}
