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
		odd = append(odd, drift(want, s.CachedInfo().Config)...)
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

// drift lists what of a stream is not as it must be.
func drift(want, have jetstream.StreamConfig) []string {
	var odd []string
	for _, x := range []struct {
		what       string
		want, have any
	}{
		{"subjects", want.Subjects, have.Subjects},
		{"retention", want.Retention, have.Retention},
		{"discard", want.Discard, have.Discard},
		{"storage", want.Storage, have.Storage},
		{"max age", want.MaxAge, have.MaxAge},
		{"max messages", want.MaxMsgs, have.MaxMsgs},
		{"max messages a subject", want.MaxMsgsPerSubject, have.MaxMsgsPerSubject},
		{"max bytes", want.MaxBytes, have.MaxBytes},
		{"deny delete", want.DenyDelete, have.DenyDelete},
		{"deny purge", want.DenyPurge, have.DenyPurge},
		{"allow direct", want.AllowDirect, have.AllowDirect},
		{"duplicate window", want.Duplicates, have.Duplicates},
		{"sealed", want.Sealed, have.Sealed},
	} {
		if w, h := fmt.Sprint(x.want), fmt.Sprint(x.have); w != h {
			odd = append(odd, fmt.Sprintf("%s: %s is %s, must be %s", want.Name, x.what, h, w))
		}
	}
	if have.Replicas < want.Replicas {
		odd = append(odd, fmt.Sprintf("%s: %d replicas, must be %d", want.Name, have.Replicas, want.Replicas))
	}
	return odd
}
