package ingress

import (
	"testing"

	"github.com/rollcall-dev/rollcall/eventstore"
)

// A Nats-Msg-Id is a word between a publisher and JetStream. It is no key of
// ours: two clients that choose the same one send two messages. (A seeded fault
// was the first to ask: docs/mutants.md.)
func TestNatsMsgIdIsNoKey(t *testing.T) {
	e := envelope("lead", "", "Hello")
	e.Header[eventstore.HeaderMsgID] = "order-7"
	for seq, want := range map[uint64]string{7: "in-7-1700000000000000042", 8: "in-8-1700000000000000042"} {
		if got, err := Decode(e, seq, stored); err != nil || got.GetId() != want {
			t.Errorf("at %d: %q, %v, want %q", seq, got.GetId(), err, want)
		}
	}
	e.Header[eventstore.HeaderID] = "mine"
	if got, err := Decode(e, 7, stored); err != nil || got.GetId() != "mine" {
		t.Errorf("with a Rollcall-Id: %q, %v", got.GetId(), err)
	}
}
