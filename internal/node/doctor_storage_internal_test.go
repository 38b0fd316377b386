package node

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/config"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
)

// b50-storage-promise: doctor says of every way to keep what is acknowledged
// what a crash, a lost server and a power cut take.
func TestStoragePromise(t *testing.T) {
	t.Run("b50-storage-promise", func(t *testing.T) {
		nc := natsdtest.Connect(t, natsdtest.Start(t))
		natsdtest.Open(t, nc, eventstore.Config{})
		for _, x := range []struct {
			footing footing
			always  bool
			level   string
			says    string
		}{
			{onOwn, true, api.OK, "one copy, synced before every acknowledgement"},
			{onOwn, false, api.Warn, "a power cut may lose the last seconds"},
			{inCluster, false, api.Warn, "one copy, synced at intervals"},
			{onOthers, true, api.Warn, "depends on its sync_interval, which cannot be seen from here"},
			{onOthers, false, api.Warn, "depends on its sync_interval, which cannot be seen from here"},
		} {
			d := &doctor{nc: nc, footing: x.footing, settings: &config.Settings{SyncAlways: x.always}}
			c := d.storage(d.kept(t.Context()))
			if c.Level != x.level || !strings.Contains(c.Found, x.says) || (c.Level == api.OK) != (c.Fix == "") {
				t.Errorf("%+v: %+v", x, c)
			}
		}
	})
}

// On a cluster doctor names the servers whose copies are missing, and says when
// nothing can be stored.
func TestStorageOfACluster(t *testing.T) {
	servers := natsdtest.Cluster(t, 3)
	nc := natsdtest.Connect(t, servers[0], nats.MaxReconnects(-1))
	natsdtest.Open(t, nc, eventstore.Config{Replicas: 3})
	d := &doctor{nc: nc, footing: inCluster, settings: &config.Settings{}}
	until := func(what string, ok func(api.Check) bool) {
		t.Helper()
		var c api.Check
		for deadline := time.Now().Add(time.Minute); ; <-time.After(100 * time.Millisecond) {
			if c = d.storage(d.kept(t.Context())); ok(c) {
				t.Logf("%s: %s", what, c.Found)
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: never; it is %+v", what, c)
			}
		}
	}
	until("three copies", func(c api.Check) bool {
		return c.Level == api.OK && strings.HasPrefix(c.Found, "3 copies") && strings.Contains(c.Found, "the loss of one server")
	})
	if c := d.connection(t.Context(), d.kept(t.Context())); c.Level != api.OK || !strings.HasPrefix(c.Found, "n1 at ") {
		t.Errorf("the connection: %+v", c)
	}
	servers[2].Shutdown()
	until("one is down", func(c api.Check) bool {
		return c.Level == api.Warn && strings.HasPrefix(c.Found, "3 copies") && strings.Contains(c.Found, "n3 (down)") && !strings.Contains(c.Found, "n2 (") && c.Fix != ""
	})
	// Two are down: as the servers tell it when they have noticed.
	all := d.kept(t.Context())
	all[0].info.Cluster.Leader, all[2].err = "", nats.ErrTimeout
	if c := d.storage(all); c.Level != api.Fail || !strings.Contains(c.Found, "no server leads "+eventstore.StreamEvents+", "+eventstore.StreamInbox) || c.Fix == "" {
		t.Errorf("without a leader: %+v", c)
	}
}

// A full inbox is told before it refuses.
func TestInboxNearlyFull(t *testing.T) {
	nc := natsdtest.Connect(t, natsdtest.Start(t))
	s := natsdtest.Open(t, nc, eventstore.Config{InboxBytes: 1 << 20})
	d := &doctor{nc: nc, settings: &config.Settings{}}
	if c := d.inbox(d.kept(t.Context())); c.Level != api.OK || !strings.Contains(c.Found, "0 messages") {
		t.Errorf("an empty inbox: %+v", c)
	}
	for range 9 {
		e := eventstore.Envelope{Key: domain.Key{Tenant: "main", Conversation: "c1"}, To: "lead", Data: make([]byte, 100<<10)}
		if _, _, err := s.Publish(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if c := d.inbox(d.kept(t.Context())); c.Level != api.Warn || !strings.Contains(c.Found, "9 messages") || !strings.Contains(c.Found, "of 1.0 MiB") || c.Fix == "" {
		t.Errorf("a nearly full one: %+v", c)
	}
}
