package node_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"

	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// A commit says in its headers who caused it, and carries on the trace of the
// message that did: readers need no protobuf for that.
func TestCommitsCarryTheirOrigin(t *testing.T) {
	models := greeter(t)
	dir := t.TempDir()
	start(t, dir, models.URL())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	nc, err := api.Dial(api.Target{Dir: dir}, "test")
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	nc.SetClosedHandler(func(*nats.Conn) { close(closed) })
	t.Cleanup(func() { nc.Close(); <-closed })
	id := strings.ToLower(ulid.Make().String())
	if _, err := api.NewClient(nc, "main").Open(ctx, &rollcallv1.OpenConversation{Conversation: id, Tenant: "main", Name: "traced", Contract: "none"}); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	msg := nats.NewMsg("rollcall.in.main." + id + ".lead")
	msg.Data = []byte("hi")
	msg.Header.Set("traceparent", trace)
	msg.Header.Set("Rollcall-Id", "from-outside")
	if _, err := js.PublishMsg(ctx, msg); err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(ctx, "ROLLCALL_EVENTS")
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); ; {
		m, err := stream.GetMsg(ctx, seq)
		if err != nil {
			if ctx.Err() != nil {
				t.Fatal("no commit carries the trace")
			}
			continue // not written yet
		}
		if m.Header.Get("Rollcall-Actor") == "" {
			t.Errorf("commit %d does not say who caused it", seq)
		}
		if m.Header.Get("traceparent") == trace {
			if got := m.Header.Get("Rollcall-Correlation"); got != "from-outside" {
				t.Errorf("correlation %q", got)
			}
			return
		}
		seq++
	}
}
