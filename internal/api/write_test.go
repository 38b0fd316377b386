package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func TestWriteIsAnsweredWithItsVersion(t *testing.T) {
	w := newWorld(t)
	key := w.open("harbor", "Backend")
	before := w.position(key).Version
	a := w.say(key, "faster")
	if a.Version != before+1 || a.Subject == "" || a.Conversation != key.Conversation || a.Accepted || a.Command == "" {
		t.Errorf("answered %+v after version %d", a, before)
	}
	if got := w.position(key).Version; got != a.Version {
		t.Errorf("the answer names version %d, the log ends at %d", a.Version, got)
	}
}

func TestWriteInJSON(t *testing.T) {
	w := newWorld(t)
	answer, refused := w.ask("open", `{"name":"harbor","contract":"mailbox","objective":"go on","budget":{"cost":1.5,"tokens":7},
		"agents":[{"name":"general","memory":"fresh"}],"members":[{"name":"Backend","brief":"work"}]}`)
	if refused != nil {
		t.Fatal(refused)
	}
	id := answer["conversation"].(string)
	if answer["version"] != 1.0 || answer["command"] == "" {
		t.Errorf("answered %v", answer)
	}
	d, err := w.client.Show(w.context(), api.ReadRequest{Conversation: id})
	if err != nil {
		t.Fatal(err)
	}
	if d.Name != "harbor" || len(d.Members) != 2 || d.Budget.Cost != 1.5 || d.Budget.Tokens != 7 {
		t.Errorf("opened %+v", d)
	}
	// The same id again does nothing, and says what the first came to.
	first, refused := w.ask("send", `{"conversation":"harbor","member":"Back","text":"hi","id":"once"}`)
	if refused != nil {
		t.Fatal(refused)
	}
	again, refused := w.ask("send", `{"conversation":"harbor","member":"Back","text":"hi","id":"once"}`)
	if refused != nil || fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("answered %v, then %v, %v", first, again, refused)
	}
	for verb, request := range map[string]string{
		"pause":     `{"conversation":"harbor"}`,
		"task":      `{"conversation":"harbor","operation":"add","title":"look","owner":"user"}`,
		"budget":    `{"conversation":"harbor","budget":{"tokens":900}}`,
		"interrupt": `{"conversation":"harbor"}`,
	} {
		if _, refused := w.ask(verb, request); refused != nil {
			t.Errorf("%s: %+v", verb, refused)
		}
	}
	for _, verb := range []string{"resume", "retry", "dissolve"} {
		if _, refused := w.ask(verb, `{"conversation":"harbor"}`); refused != nil {
			t.Errorf("%s: %+v", verb, refused)
		}
	}
}

func TestWriteRefusals(t *testing.T) {
	w := newWorld(t)
	w.open("harbor", "Backend", "Backstop")
	for _, c := range []struct {
		verb, request, code string
		exit                int
	}{
		{"send", `{"conversation":"nowhere","text":"hi"}`, "conversation-not-found", 3},
		{"send", `{"conversation":"01jzzzzzzzzzzzzzzzzzzzzzzz","text":"hi"}`, "conversation-not-found", 3},
		{"pause", `{"conversation":"01jzzzzzzzzzzzzzzzzzzzzzzz"}`, "conversation-not-found", 3},
		{"send", `{"text":"hi"}`, "request-invalid", 2},
		{"send", `{"conversation":"harbor","member":"Front","text":"hi"}`, "member-not-found", 3},
		{"send", `{"conversation":"harbor","member":"Back","text":"hi"}`, "member-ambiguous", 3},
		{"send", `{"conversation":"harbor","text":""}`, "text-empty", 4},
		{"send", `{"conversation":"harbor","text":"a\u0000b"}`, "text-invalid", 4},
		{"send", "{\"conversation\":\"harbor\",\"text\":\"a\xffb\"}", "text-invalid", 4},
		{"send", `{"conversation":"harbor","text":"` + strings.Repeat("x", api.MaxText+1) + `"}`, "text-too-long", 4},
		{"send", `{"conversation":"harbor","text":"hi","kind":"brief"}`, "request-invalid", 2},
		{"send", `{"conversation":"harbor","text":"hi","mode":"shout"}`, "request-invalid", 2},
		{"send", `{`, "request-invalid", 2},
		{"send", `[]`, "request-invalid", 2},
		{"task", `{"conversation":"harbor","operation":"paint"}`, "request-invalid", 2},
		{"task", `{"conversation":"harbor","operation":"done","task":"t9"}`, "task-not-found", 3},
		{"open", `{"conversation":"Harbor","contract":"mailbox","objective":"x"}`, "id-invalid", 4},
		{"approve", `{"conversation":"harbor","approval":"a1"}`, "approval-not-found", 3},
		{"approve", `{"conversation":"harbor"}`, "approval-not-found", 3},
		{"deny", `{"conversation":"harbor","approval":"a1","reason":"no"}`, "approval-not-found", 3},
		{"open", `{"contract":"none","objective":"x","approvals":{"tools":["fly"]}}`, "tool-unknown", 3},
		{"open", `{"contract":"none","objective":"x","approvals":{"default":"perhaps"}}`, "request-invalid", 2},
		{"open", `{"contract":"ring","objective":"x"}`, "contract-unknown", 3},
		{"open", `{"contract":"mailbox","objective":"x","agents":[{"name":"a","memory":"rusty"}]}`, "request-invalid", 2},
		{"resume", `{"conversation":"harbor","at":-1}`, "", 0}, // fields of no meaning are ignored
	} {
		_, refused := w.ask(c.verb, c.request)
		if c.code == "" {
			if refused != nil && refused.Code == "request-invalid" {
				t.Errorf("%s %s: refused with %+v", c.verb, c.request, refused)
			}
			continue
		}
		request := c.request[:min(len(c.request), 80)]
		if refused == nil || refused.Code != c.code || refused.Exit != c.exit {
			t.Errorf("%s %s: refused with %+v, want %s and exit %d", c.verb, request, refused, c.code, c.exit)
		} else if refused.What == "" || refused.Why+refused.Try == "" {
			t.Errorf("%s %s: the refusal says too little: %+v", c.verb, request, refused)
		}
	}
	m, err := w.nc.Request("rollcall.api.BAD.info", nil, patience)
	if err != nil || m.Header.Get("Nats-Service-Error-Code") != "tenant-invalid" {
		t.Errorf("a bad tenant: %v %v", m, err)
	}
}

// An outsider cannot slip in what only a node says.
func TestWriteTakesOnlyItsOwnCommands(t *testing.T) {
	w := newWorld(t)
	key := w.open("harbor")
	for _, cmd := range []*rollcallv1.Command{
		{Kind: &rollcallv1.Command_RecordReply{RecordReply: &rollcallv1.RecordReply{Member: "lead", Run: "r1", Step: 1, Attempt: 1}}},
		{Kind: &rollcallv1.Command_FireTimer{FireTimer: &rollcallv1.FireTimer{}}},
		{Kind: &rollcallv1.Command_PauseConversation{PauseConversation: &rollcallv1.PauseConversation{}}},
		{},
	} {
		data, err := proto.Marshal(&rollcallv1.CommandRequest{Conversation: key.Conversation, Command: cmd})
		if err != nil {
			t.Fatal(err)
		}
		got := new(rollcallv1.Refusal)
		if w.askProto("send", data, got); got.GetCode() != "request-invalid" {
			t.Errorf("%v was answered with %v", cmd, got)
		}
	}
	if got := w.position(key).Version; got != 1 {
		t.Errorf("the log went on to %d", got)
	}
}

func TestWriteIsAcceptedWhenNobodyDecides(t *testing.T) {
	w := newWorld(t)
	key := w.open("harbor")
	w.mu.Lock()
	w.deaf = true
	w.mu.Unlock()
	answer, refused := w.ask("send", `{"conversation":"harbor","text":"hi","id":"mine","timeout_ms":30}`)
	if refused != nil || answer["accepted"] != true || answer["command"] != "mine" || answer["version"] != 0.0 {
		t.Errorf("answered %v, %v", answer, refused)
	}
	if got := w.position(key).Version; got != 1 {
		t.Errorf("the log went on to %d", got)
	}
}

// A request under way when the service closes is told that it is accepted.
func TestCloseAnswersWhatWaits(t *testing.T) {
	w := newWorld(t)
	w.open("harbor")
	w.mu.Lock()
	w.deaf = true
	w.mu.Unlock()
	partition := 0
	for _, k := range w.keys() {
		partition = k.Partition()
	}
	answered := make(chan map[string]any, 1)
	go func() {
		answer, _ := w.ask("send", `{"conversation":"harbor","text":"hi","timeout_ms":60000}`)
		answered <- answer
	}()
	ctx := w.context()
	for w.store.Pending(partition) == 0 { // stored, and waited for
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			t.Fatal("the command was never stored")
		}
	}
	if err := w.server.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case answer := <-answered:
		if answer["accepted"] != true {
			t.Errorf("answered %v", answer)
		}
	case <-ctx.Done():
		t.Fatal("no answer")
	}
}

func TestLongTextsAreStoredApart(t *testing.T) {
	w := newWorld(t)
	key := w.open("harbor")
	long := strings.Repeat("détail ", 30_000)
	a := w.say(key, long)
	mail, err := w.client.Mail(w.context(), api.MailRequest{ReadRequest: api.ReadRequest{Conversation: "harbor", AtLeast: a.Version}, Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	m := mail.Messages[0]
	if m.Blob == nil || m.Text.Text != "" {
		t.Fatalf("the text is %+v", m.Text)
	}
	text, err := w.client.Text(w.context(), key.Conversation, m.Text)
	if err != nil || text != long {
		t.Errorf("read %d bytes of %d, %v", len(text), len(long), err)
	}
	refused(t, errOf(w.client.Send(w.context(), "harbor", words("", strings.Repeat("x", api.MaxText+1)))), "text-too-long", "--input")
	refused(t, errOf(w.client.Send(w.context(), "harbor", words("", "a\xff"))), "text-invalid", "UTF-8")
}

func errOf[T any](_ T, err error) error { return err }

// askProto asks in protobuf and reads the answer into one.
func (w *world) askProto(verb string, data []byte, into proto.Message) {
	w.t.Helper()
	m, err := w.nc.RequestMsg(natsMsg("rollcall.api.main."+verb, data, "application/protobuf"), patience)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := proto.Unmarshal(m.Data, into); err != nil {
		w.t.Fatalf("%s: %v in %q", verb, err, m.Data)
	}
}

func TestClientGivesUp(t *testing.T) {
	w := newWorld(t)
	if err := w.server.Close(); err != nil {
		t.Fatal(err)
	}
	w.client.Patience = 10 * time.Millisecond
	refused(t, errOf(w.client.Info(w.context())), "node-unreachable", "rollcall up")
	if got := api.ExitCode(errOf(w.client.Info(w.context()))); got != api.ExitUnreachable {
		t.Errorf("exit %d", got)
	}
	w.client.Patience = 0
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := errOf(w.client.Info(ctx)); api.ExitCode(err) != api.ExitTimeout {
		t.Errorf("got %v", err)
	}
}
