package e2e_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/auth"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// ear hears whatever comes on the subjects it could subscribe to.
type ear struct {
	mu    sync.Mutex
	heard []string
}

func (e *ear) listen(m *nats.Msg) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard = append(e.heard, fmt.Sprintf("%s %v %s", m.Subject, m.Header, m.Data))
}

func (e *ear) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.heard
}

// overheard are subjects on which others speak.
var overheard = []string{
	">", "*", "*.>", "rollcall.>", "rollcall.*.>", "rollcall.events.>", "rollcall.events.*.other.*", "rollcall.in.>", "rollcall.in.main.>", "rollcall.in.other.>",
	"rollcall.api.>", "rollcall.api.main.>", "rollcall.api.*.open", "rollcall.cmd.>", "rollcall.dead.>", "rollcall.timer.>", "rollcall.admin.>", "rollcall.node.>",
	"rollcall.feed.>", "rollcall.feed.*.*", "rollcall.feed.other.>", "rollcall.feed.other.*", "rollcall.audit.>",
	"_R_.>", "_R_.*.>", "$KV.>", "$O.>", "$JS.>", "$JS.API.>", "$JS.ACK.>", "$JS.EVENT.>", "$SYS.>", "$SRV.>",
}

// Nobody hears another tenant, the log, or the nodes, whatever he subscribes
// to; inboxes are those of his own account.
func TestNobodyOutsideListens(t *testing.T) {
	t.Parallel()
	c := newCastle(t)
	secret := "the secret of the other tenant"
	for _, role := range []string{"client-main", "auditor-alice", "auditor-bob"} {
		t.Run(role, func(t *testing.T) {
			i, e := c.intruder(role), &ear{}
			for _, subject := range overheard {
				for _, queue := range []string{"", "rollcall", "q"} {
					if _, err := i.QueueSubscribe(subject, queue, e.listen); err != nil {
						t.Fatal(err)
					}
				}
				c.eventually(t, "a subscription of "+subject+" is refused", func() bool { return i.wasDenied(subject) })
			}
			if _, err := i.Subscribe("_INBOX.>", e.listen); err != nil {
				t.Fatal(err)
			}
			_ = i.FlushTimeout(patience)
			c.say(t, c.theirs, secret)
			_ = i.FlushTimeout(patience)
			for _, heard := range e.all() {
				t.Errorf("%s hears %s", role, heard)
			}
		})
	}
	// Who may hear does.
	e := &ear{}
	own := c.dial("client-other")
	if _, err := own.Subscribe("rollcall.feed.other.*", e.listen); err != nil {
		t.Fatal(err)
	}
	_ = own.FlushTimeout(patience)
	c.say(t, c.theirs, secret)
	c.eventually(t, "the tenant hears its own feed", func() bool { return strings.Contains(strings.Join(e.all(), "\n"), secret) })
	nodes := &ear{}
	if _, err := c.nodes.Subscribe(">", nodes.listen); err != nil {
		t.Fatal(err)
	}
	_ = c.nodes.FlushTimeout(patience)
	c.say(t, c.theirs, secret)
	c.eventually(t, "there is something to hear", func() bool {
		all := strings.Join(nodes.all(), "\n")
		return strings.Contains(all, "rollcall.events.") && strings.Contains(all, "_R_.") && strings.Contains(all, "$JS.")
	})
}

// say has a tenant's client speak to its Lead and hear the end of it.
func (c *castle) say(t *testing.T, key domain.Key, text string) {
	t.Helper()
	nc := c.dial("client-" + key.Tenant)
	before := ask(nc, "rollcall.api."+key.Tenant+".usage", fmt.Sprintf(`{"conversation":%q}`, key.Conversation))
	if got := ask(nc, "rollcall.api."+key.Tenant+".send", fmt.Sprintf(`{"conversation":%q,"text":%q}`, key.Conversation, text)); strings.Contains(got, `"code"`) {
		t.Fatal(got)
	}
	c.eventually(t, "the Lead answered", func() bool {
		return ask(nc, "rollcall.api."+key.Tenant+".usage", fmt.Sprintf(`{"conversation":%q}`, key.Conversation)) != before
	})
}

// A client cannot ask for what is another tenant's: not by its id, its name,
// the hash of its files, nor under a subject that is not its own.
func TestNobodyOutsideReads(t *testing.T) {
	t.Parallel()
	c := newCastle(t)
	file := []byte("a file of the other tenant")
	sum := sha256.Sum256(file)
	sha := hex.EncodeToString(sum[:])
	upload := fmt.Sprintf(`{"conversation":%q,"sha256":%q,"size":%d,"data":%q}`, c.theirs.Conversation, sha, len(file), base64.StdEncoding.EncodeToString(file))
	if got := ask(c.dial("client-other"), "rollcall.api.other.upload", upload); !strings.Contains(got, `"stored":true`) {
		t.Fatal(got)
	}
	blob := fmt.Sprintf(`{"conversation":%q,"sha256":%q,"size":%d}`, c.theirs.Conversation, sha, len(file))
	if got := ask(c.dial("client-other"), "rollcall.api.other.blob", blob); !strings.Contains(got, base64.StdEncoding.EncodeToString(file)) {
		t.Fatalf("the tenant itself reads %s", got)
	}
	binary, err := proto.Marshal(&rollcallv1.LogRequest{Conversation: c.theirs.Conversation})
	if err != nil {
		t.Fatal(err)
	}
	// A letter of the other tenant that nobody can deliver.
	lost := api.NewID()
	if got := ask(c.dial("client-other"), "rollcall.in.other."+lost+".lead", "x"); !strings.Contains(got, "ROLLCALL_INBOX") {
		t.Fatal(got)
	}
	c.quiet()
	if got := ask(c.dial("client-other"), "rollcall.api.other.doctor", ""); !strings.Contains(got, lost) {
		t.Errorf("the tenant itself is not told of its letter: %s", got)
	}
	i := c.intruder("client-main")
	secrets := []string{c.theirs.Conversation + `","name`, `"name":"theirs, secret"`, base64.StdEncoding.EncodeToString(file), `"tenant":"other"`, lost}
	check := func(name, got string) {
		t.Helper()
		for _, s := range secrets {
			if strings.Contains(got, s) {
				t.Errorf("%s gives %s", name, got)
			}
		}
	}
	verbs := []string{"ls", "show", "roll", "log", "mail", "files", "blob", "usage", "doctor", "info"}
	for _, verb := range verbs {
		for _, body := range []string{
			"", "{}", blob, fmt.Sprintf(`{"conversation":%q}`, c.theirs.Conversation), fmt.Sprintf(`{"conversation":%q}`, c.theirs.Conversation[:20]),
			`{"conversation":"theirs, secret"}`, `{"conversation":"theirs"}`, `{"conversation":"../other"}`,
			fmt.Sprintf(`{"conversation":"other.%s","tenant":"other"}`, c.theirs.Conversation),
			fmt.Sprintf(`{"conversation":%q,"tenant":"other"}`, c.theirs.Conversation),
			fmt.Sprintf(`{"conversation":%q,"sha256":%q,"size":%d}`, c.ours.Conversation, sha, len(file)),
			fmt.Sprintf(`{"conversation":%q,"sha256":"%s.%s","size":%d}`, c.ours.Conversation, c.theirs.Conversation, sha, len(file)),
		} {
			check(verb+" "+body, ask(i.Conn, "rollcall.api.main."+verb, body))
		}
	}
	for _, subject := range []string{
		"rollcall.api.other.ls", "rollcall.api.main.other.ls", "rollcall.api.*.ls", "rollcall.api.main.upload.x", "rollcall.admin.nodes", "$SRV.INFO.rollcall",
		"$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.INFO.ROLLCALL_EVENTS", "$JS.API.STREAM.MSG.GET.ROLLCALL_EVENTS", "$JS.API.DIRECT.GET.ROLLCALL_EVENTS",
		"$JS.API.DIRECT.GET.ROLLCALL_EVENTS." + eventstore.EventSubject(c.theirs), "$JS.API.DIRECT.GET.KV_ROLLCALL_NODES.$KV.ROLLCALL_NODES.owner.1", "$JS.API.DIRECT.GET.OBJ_ROLLCALL_BLOBS",
		"$JS.API.CONSUMER.MSG.NEXT.ROLLCALL_EVENTS.audit-alice", "$JS.API.CONSUMER.INFO.ROLLCALL_EVENTS.audit-alice", "$JS.API.STREAM.SNAPSHOT.ROLLCALL_EVENTS",
		auth.AuditAPI + ".CONSUMER.MSG.NEXT.ROLLCALL_EVENTS.audit-alice", auth.AuditAPI + ".STREAM.INFO.ROLLCALL_EVENTS", "$SYS.REQ.USER.INFO", "$SYS.REQ.ACCOUNT.PING.CONNZ",
	} {
		if got := c.quick(i, subject, `{"seq":1}`); !strings.HasPrefix(got, "error: ") {
			t.Errorf("%s answers %s", subject, got)
		}
	}
	m := &nats.Msg{Subject: "rollcall.api.main.log", Data: binary, Header: nats.Header{"Content-Type": {"application/protobuf"}}}
	answer, err := i.RequestMsg(m, patience)
	if err != nil {
		t.Fatal(err)
	}
	page := new(rollcallv1.LogPage)
	if proto.Unmarshal(answer.Data, page) == nil && len(page.GetCommits()) > 0 {
		t.Error("the log of another tenant was given in protobuf")
	}
	if _, err := api.NewClient(i.Conn, "other").LogJSON(shortly(t), api.LogRequest{ReadRequest: api.ReadRequest{Conversation: c.theirs.Conversation}}); err == nil {
		t.Error("a client of another tenant's name reads its log")
	}
}

// quick asks where no answer is to come. What the server denies never has one,
// so the denial is the answer.
func (c *castle) quick(i *intruder, subject, body string) string {
	inbox := i.NewRespInbox()
	sub, err := i.SubscribeSync(inbox)
	if err != nil {
		return "error: " + err.Error()
	}
	defer sub.Unsubscribe() //nolint:errcheck // it is over
	if err := i.PublishRequest(subject, inbox, []byte(body)); err != nil {
		return "error: " + err.Error()
	}
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); {
		m, err := sub.NextMsg(5 * time.Millisecond)
		switch {
		case i.wasDenied(subject):
			return "error: denied"
		case err == nil && m.Header.Get("Status") == "503":
			return "error: nobody is there"
		case err == nil:
			return string(m.Data)
		}
	}
	return "error: no answer"
}

func shortly(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// An auditor reads what is his to read, and nothing beside it.
func TestAuditorsReadTheirPart(t *testing.T) {
	t.Parallel()
	c := newCastle(t)
	for role, want := range map[string][]string{"alice": {"main", "other"}, "bob": {"main"}} {
		t.Run(role, func(t *testing.T) {
			i := c.intruder("auditor-" + role)
			inbox := i.NewRespInbox()
			sub, err := i.SubscribeSync(inbox)
			if err != nil {
				t.Fatal(err)
			}
			if err := i.PublishRequest(auth.AuditAPI+".CONSUMER.MSG.NEXT.ROLLCALL_EVENTS.audit-"+role, inbox, []byte(`{"batch":1000,"no_wait":true}`)); err != nil {
				t.Fatal(err)
			}
			tenants := map[string]int{}
			for {
				m, err := sub.NextMsg(patience)
				if err != nil {
					t.Fatal(err)
				}
				if m.Header.Get("Status") != "" {
					break
				}
				key, err := eventstore.ParseEventSubject(m.Subject)
				if err != nil {
					t.Fatal(err)
				}
				tenants[key.Tenant]++
			}
			for _, tenant := range want {
				if tenants[tenant] == 0 {
					t.Errorf("%s reads nothing of %s: %v", role, tenant, tenants)
				}
			}
			if len(tenants) != len(want) {
				t.Errorf("%s reads %v", role, tenants)
			}
			other := map[string]string{"alice": "bob", "bob": "alice"}[role]
			closed := []string{
				auth.AuditAPI + ".CONSUMER.MSG.NEXT.ROLLCALL_EVENTS.audit-" + other, auth.AuditAPI + ".CONSUMER.RESET.ROLLCALL_EVENTS.audit-" + other, auth.AuditAPI + ".CONSUMER.INFO.ROLLCALL_EVENTS.audit-" + other,
				auth.AuditAPI + ".CONSUMER.MSG.NEXT.ROLLCALL_INBOX.p3-1", auth.AuditAPI + ".CONSUMER.LIST.ROLLCALL_EVENTS", auth.AuditAPI + ".STREAM.INFO.ROLLCALL_INBOX", auth.AuditAPI + ".STREAM.LIST",
				auth.AuditAPI + ".STREAM.MSG.GET.ROLLCALL_EVENTS", auth.AuditAPI + ".DIRECT.GET.ROLLCALL_EVENTS", auth.AuditAPI + ".DIRECT.GET.ROLLCALL_INBOX", auth.AuditAPI + ".DIRECT.GET.KV_ROLLCALL_NODES", auth.AuditAPI + ".DIRECT.GET.OBJ_ROLLCALL_SNAPSHOTS",
				"$JS.API.STREAM.INFO.ROLLCALL_EVENTS", "$JS.API.DIRECT.GET.OBJ_ROLLCALL_BLOBS", "$JS.API.CONSUMER.MSG.NEXT.ROLLCALL_EVENTS.audit-" + role,
				"rollcall.api.other.blob", "rollcall.api.main.ls", "rollcall.api.main.open", "rollcall.admin.nodes",
			}
			if role == "bob" {
				closed = append(closed, auth.AuditAPI+".DIRECT.GET.OBJ_ROLLCALL_BLOBS", auth.AuditAPI+".STREAM.INFO.ROLLCALL_EVENTS")
			}
			for _, subject := range closed {
				if got := c.quick(i, subject, `{"seq":1}`); !strings.HasPrefix(got, "error: ") {
					t.Errorf("%s answers %s", subject, got)
				}
			}
		})
	}
}
