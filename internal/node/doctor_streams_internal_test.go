package node

import (
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
)

// The doctor notices a stream that somebody changed or deleted, and says that
// nothing is wrong before.
func TestStreamsDrift(t *testing.T) {
	nc := natsdtest.Connect(t, natsdtest.Start(t))
	if err := eventstore.Provision(t.Context(), nc, eventstore.Config{}); err != nil {
		t.Fatal(err)
	}
	d := &doctor{nc: nc}
	if c := d.streams(d.kept(t.Context())); c.Level != api.OK {
		t.Fatalf("as provisioned: %+v", c)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	all := eventstore.Streams(eventstore.Config{})
	i := slices.IndexFunc(all, func(s jetstream.StreamConfig) bool { return s.Name == eventstore.StreamInbox })
	changed := all[i]
	changed.Discard = jetstream.DiscardOld // would drop messages instead of refusing them
	if _, err := js.UpdateStream(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	c := d.streams(d.kept(t.Context()))
	if c.Level != api.Fail || !strings.Contains(c.Found, eventstore.StreamInbox+": discard") || c.Fix == "" {
		t.Errorf("after a change: %+v", c)
	}
	if err := js.DeleteStream(t.Context(), eventstore.StreamDead); err != nil {
		t.Fatal(err)
	}
	if err := eventstore.Provision(t.Context(), nc, eventstore.Config{}); err != nil {
		t.Fatal(err)
	}
	if c := d.streams(d.kept(t.Context())); c.Level != api.OK {
		t.Errorf("after provisioning again: %+v", c)
	}
	if err := js.DeleteStream(t.Context(), eventstore.StreamDead); err != nil {
		t.Fatal(err)
	}
	if c := d.streams(d.kept(t.Context())); c.Level != api.Fail || !strings.Contains(c.Found, eventstore.StreamDead) {
		t.Errorf("after a deletion: %+v", c)
	}
}
