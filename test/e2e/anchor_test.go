package e2e_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// anchored is how many conversations have an open run, and with it a message
// that is not acknowledged. A consumer's usual limit is 1,000.
const anchored = 3000

// anchor: the model server hangs for 3,000 conversations of one partition, and
// the next message is still served: of a new conversation, and of one of them.
func TestAnchor(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, `rules:
  - {name: hang, lacks: [Go on], hold: hanging, text: Never said.}
  - {name: go on, text: I go on.}
`))
	p.binary = plainBinary(t)
	p.env = append(p.env, "OPENAI_BASE_URL="+p.models.URL(),
		"ROLLCALL_CONFIG="+p.file("rollcall.yaml", fmt.Sprintf("sync: interval\nmax_concurrent_runs: %d\n", anchored+10)))
	p.start()
	c := p.client()
	partition := domain.Key{Tenant: "main", Conversation: api.NewID()}.Partition()
	began := time.Now()
	js := p.streams()
	var all []string
	for range anchored {
		id := onPartition(partition)
		all = append(all, id)
		if _, err := js.PublishMsgAsync(opening(t, id, "Hang.")); err != nil {
			t.Fatal(err)
		}
	}
	p.poll("all are asked", func() bool { return len(p.models.Requests()) >= anchored })
	t.Logf("anchor: %d conversations with an open run on partition %d, after %s", anchored, partition, time.Since(began).Round(time.Second))
	if held := p.unacknowledged(js, partition); held != anchored {
		t.Errorf("%d messages are held, want one a conversation", held)
	}

	began = time.Now()
	next := onPartition(partition)
	if _, err := js.PublishMsg(p.ctx(), opening(t, next, "Go on.")); err != nil {
		t.Fatal(err)
	}
	p.served(next, "go on")
	one := all[anchored/2]
	if _, err := c.Send(p.ctx(), one, &rollcallv1.PostMessage{Body: &rollcallv1.Body{Text: "Go on."}}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{next, one} {
		p.until(c, id, "it is served", quiet)
		if got := answer(p.events(c, id)); got != "I go on." {
			t.Errorf("%s is answered %q", id, got)
		}
	}
	t.Logf("anchor: both served after %s", time.Since(began).Round(time.Millisecond))
	p.poll("what is done is acknowledged", func() bool { return p.unacknowledged(js, partition) == anchored-1 })
	for _, r := range p.models.Requests() {
		if r.RuleName == "hang" && r.Ended && r.Conversation != one {
			t.Fatalf("the call of %s did not hang", r.Conversation)
		}
	}
	p.kill()
}

// plainBinary builds the program without the race detector, for what is about
// numbers.
func plainBinary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rollcall")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../../cmd/rollcall").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// onPartition makes the id of a conversation of a partition.
func onPartition(partition int) string {
	for {
		if id := api.NewID(); (domain.Key{Tenant: "main", Conversation: id}).Partition() == partition {
			return id
		}
	}
}

// opening is the message that opens a conversation, as the service sends it.
func opening(t *testing.T, id, objective string) *nats.Msg {
	t.Helper()
	data, err := proto.Marshal(&rollcallv1.Command{Id: id, Kind: &rollcallv1.Command_OpenConversation{OpenConversation: &rollcallv1.OpenConversation{
		Conversation: id, Tenant: "main", Name: id, Contract: "none", Objective: &rollcallv1.Body{Text: objective},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	m := nats.NewMsg(eventstore.InboxSubject(domain.Key{Tenant: "main", Conversation: id}, eventstore.ToCommand))
	m.Header.Set(eventstore.HeaderContentType, eventstore.ContentTypeProtobuf)
	m.Header.Set(eventstore.HeaderID, id)
	m.Data = data
	return m
}

// unacknowledged counts the messages that the owner of a partition holds.
func (p *place) unacknowledged(js jetstream.JetStream, partition int) (held int) {
	p.t.Helper()
	stream := got(js.Stream(p.ctx(), eventstore.StreamInbox)).must(p.t)
	consumers := stream.ListConsumers(p.ctx())
	for info := range consumers.Info() {
		if strings.HasPrefix(info.Name, fmt.Sprintf("p%d-", partition)) {
			held += info.NumAckPending
		}
	}
	if err := consumers.Err(); err != nil {
		p.t.Fatal(err)
	}
	return held
}
