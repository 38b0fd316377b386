package api_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// A node that was killed with requests in hand answers none of them, and the
// connection to NATS knows nothing of it. Clients turn to another node; one that
// works long says so and is waited for.
func TestClientsTurnFromASilentNode(t *testing.T) {
	w := newWorld(t)
	var swallowed atomic.Int32
	dead := w.connect()
	for _, verb := range []string{"ls", "send"} {
		if _, err := dead.QueueSubscribe("rollcall.api.main."+verb, "q", func(*nats.Msg) { swallowed.Add(1) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := dead.Flush(); err != nil {
		t.Fatal(err)
	}
	id := w.open("harbor").Conversation
	for i := 0; swallowed.Load() == 0; i++ {
		if i == 200 {
			t.Fatal("the silent node was never asked")
		}
		began := time.Now()
		if _, err := w.client.List(w.context()); err != nil {
			t.Fatalf("a silent node ends the request: %v", err)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("the request took %v", took)
		}
	}
	// What a silent node took with it is sent again, and counts once.
	before := swallowed.Load()
	sent := 0
	for swallowed.Load() == before {
		a, err := w.client.Send(w.context(), id, &rollcallv1.PostMessage{
			Kind: rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, Body: &rollcallv1.Body{Text: "a word"},
		})
		if err != nil || a.Accepted {
			t.Fatal(a, err)
		}
		sent++
	}
	mail, err := w.client.Mail(w.context(), api.MailRequest{ReadRequest: api.ReadRequest{Conversation: id}})
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	for _, m := range mail.Messages {
		if m.Text.Text == "a word" {
			got++
		}
	}
	if got != sent {
		t.Errorf("%d messages of %d sent", got, sent)
	}
}
