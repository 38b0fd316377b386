package e2e_test

import (
	"encoding/json"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/eventstore"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// eventstoreWindow is how long JetStream itself drops a repeated Nats-Msg-Id.
const eventstoreWindow = eventstore.InboxDuplicates

// inbox is a message as any NATS client publishes it, with headers as name,
// value, name, value.
func inbox(id, to, text string, headers ...string) *nats.Msg {
	m := nats.NewMsg("rollcall.in.main." + id + "." + to)
	m.Data = []byte(text)
	for i := 0; i < len(headers); i += 2 {
		m.Header.Set(headers[i], headers[i+1])
	}
	return m
}

// ack is JetStream's acknowledgement.
type ack struct {
	Stream    string              `json:"stream"`
	Seq       uint64              `json:"seq"`
	Duplicate bool                `json:"duplicate"`
	Error     *jetstream.APIError `json:"error"`
}

// publish sends a message as "nats request" does, and reads the acknowledgement.
func (p *place) publish(nc *nats.Conn, m *nats.Msg) ack {
	p.t.Helper()
	reply, err := nc.RequestMsgWithContext(p.ctx(), m)
	if err != nil {
		p.t.Fatalf("publish to %s: %v", m.Subject, err)
	}
	a := acknowledged(p.t, reply)
	if a.Error != nil || a.Stream != "ROLLCALL_INBOX" || a.Seq == 0 {
		p.t.Fatalf("publishing to %s came to %s", m.Subject, reply.Data)
	}
	return a
}

func acknowledged(t *testing.T, reply *nats.Msg) (a ack) {
	t.Helper()
	if err := json.Unmarshal(reply.Data, &a); err != nil {
		t.Fatalf("acknowledgement %q: %v", reply.Data, err)
	}
	return a
}

// answered is the next answer of a node to a publisher that named Rollcall-Reply.
func (p *place) answered(sub *nats.Subscription) *rollcallv1.Answer {
	p.t.Helper()
	m, err := sub.NextMsgWithContext(p.ctx())
	if err != nil {
		p.t.Fatalf("no answer: %v", err)
	}
	a := new(rollcallv1.Answer)
	if err := proto.Unmarshal(m.Data, a); err != nil {
		p.t.Fatal(err)
	}
	return a
}
