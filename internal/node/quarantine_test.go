package node_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// quarantine, as it is seen from outside: a conversation whose log somebody
// wrote to is set aside. The list, show and doctor say so, its neighbour on the
// same partition goes on, and its messages stay in the inbox, also when the node
// starts again and when a retry is asked for in vain.
func TestQuarantine(t *testing.T) {
	models := greeter(t)
	dir := t.TempDir()
	_, stop := start(t, dir, models.URL())
	c := client(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	sick := domain.Key{Tenant: "main", Conversation: api.NewID()}
	well := sick
	for well.Conversation == sick.Conversation || well.Partition() != sick.Partition() {
		well.Conversation = api.NewID()
	}
	for _, k := range []domain.Key{sick, well} {
		if _, err := c.Open(ctx, &rollcallv1.OpenConversation{
			Conversation: k.Conversation, Tenant: "main", Name: k.Conversation, Contract: "none", Objective: &rollcallv1.Body{Text: "hi"},
		}); err != nil {
			t.Fatal(err)
		}
		eventually(ctx, t, "it is answered", func() bool { return asked(models, k) == 1 && resting(ctx, t, c, k) })
	}

	js, nc := stranger(t, dir)
	forged := nats.NewMsg(eventstore.EventSubject(sick))
	forged.Header.Set("Rollcall-Version", "99")
	forged.Data = []byte("what is this?")
	if _, err := js.PublishMsg(ctx, forged); err != nil {
		t.Fatal(err)
	}
	nc.Close()
	look := func(dir string) {
		t.Helper()
		c := client(t, dir)
		js, nc := stranger(t, dir)
		defer nc.Close()
		said := nats.NewMsg(eventstore.InboxSubject(sick, "lead"))
		said.Data = []byte("are you there?")
		if _, err := js.PublishMsg(ctx, said); err != nil {
			t.Fatal(err)
		}
		eventually(ctx, t, "the list shows it", func() bool {
			list, err := c.List(ctx)
			if err != nil {
				t.Fatal(err)
			}
			status := map[string]string{}
			for _, one := range list.Conversations {
				status[one.ID] = one.Status
			}
			return status[sick.Conversation] == "quarantined" && status[well.Conversation] == "idle"
		})
		eventually(ctx, t, "doctor shows it", func() bool {
			report, err := c.Doctor(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, check := range report.Checks {
				if check.Name == "conversations" && check.Level == api.Fail && strings.Contains(check.Found, sick.Conversation) &&
					!strings.Contains(check.Found, well.Conversation) && strings.Contains(check.Fix, "rollcall retry") {
					return true
				}
			}
			return false
		})
		before := asked(models, well)
		if _, err := c.Send(ctx, well.Conversation, &rollcallv1.PostMessage{Body: &rollcallv1.Body{Text: "and you?"}}); err != nil {
			t.Fatal(err)
		}
		eventually(ctx, t, "the neighbour goes on", func() bool { return asked(models, well) == before+1 })
	}
	look(dir)
	stop()
	start(t, dir, models.URL())
	look(dir)
	c = client(t, dir)
	brief, end := context.WithTimeout(ctx, 2*time.Second)
	defer end()
	if _, err := c.Retry(brief, sick.Conversation, ""); err == nil {
		t.Error("a retry of a log that is broken seems to have worked")
	}
	js, nc = stranger(t, dir)
	defer nc.Close()
	inbox, err := js.Stream(ctx, eventstore.StreamInbox)
	if err != nil {
		t.Fatal(err)
	}
	// Two messages, and perhaps the retry.
	if held := inbox.CachedInfo().State.Msgs; held < 2 {
		t.Errorf("%d of 2 messages are held", held)
	}
	if n := asked(models, sick); n != 1 {
		t.Errorf("the model was asked %d times for the broken conversation", n)
	}
}

// stranger is a connection that may do anything.
func stranger(t *testing.T, dir string) (jetstream.JetStream, *nats.Conn) {
	t.Helper()
	nc, err := api.Dial(api.Target{Dir: dir}, "stranger")
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	nc.SetClosedHandler(func(*nats.Conn) { close(closed) })
	t.Cleanup(func() { nc.Close(); <-closed })
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js, nc
}

func asked(models *scripted.Server, k domain.Key) (n int) {
	for _, r := range models.Requests() {
		if r.Conversation == k.Conversation {
			n++
		}
	}
	return n
}

func resting(ctx context.Context, t *testing.T, c *api.Client, k domain.Key) bool {
	t.Helper()
	d, err := c.Show(ctx, api.ReadRequest{Conversation: k.Conversation})
	if err != nil {
		t.Fatal(err)
	}
	return d.Status == "idle"
}

// eventually polls until ctx ends.
func eventually(ctx context.Context, t *testing.T, what string, ok func() bool) {
	t.Helper()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
