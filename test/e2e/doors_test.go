package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/auth"
	"github.com/rollcall-dev/rollcall/internal/config"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
	"github.com/rollcall-dev/rollcall/internal/natsd"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
	"github.com/rollcall-dev/rollcall/internal/node"
)

// castle is an installation with all its roles: a server that lets nobody in
// but by them, a node on it, and a conversation of each of two tenants.
type castle struct {
	t   *testing.T
	dir string
	url string
	ca  string
	// nodes is the node's own way in.
	nodes *nats.Conn
	// read are messages of the log that were read before.
	read map[string]*jetstream.RawStreamMsg
	// ours is the conversation of tenant main, theirs that of tenant other.
	ours, theirs domain.Key
}

func newCastle(t *testing.T) *castle {
	t.Helper()
	c := &castle{t: t, dir: filepath.Join(t.TempDir(), "roles"), read: map[string]*jetstream.RawStreamMsg{}}
	ports := natsdtest.Ports(t, 2)
	made, err := auth.Init(c.dir, auth.Plan{
		Servers:  []auth.Server{{Name: "a", Host: "127.0.0.1", ClientPort: ports[0], RoutePort: ports[1]}},
		Tenants:  []string{"main", "other"},
		Auditors: []auth.Auditor{{Name: "alice"}, {Name: "bob", Tenant: "main"}},
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c.url, c.ca = made.URL, made.CA
	for _, r := range made.Roles {
		ownersOnly(t, c.dir, filepath.Base(r.Creds))
	}
	ownersOnly(t, c.dir, "keys", "keys/operator.nk", "keys/nodes.nk", "a", "a/server.key", "a/node.creds", "node/node.creds")
	b, err := auth.Load(filepath.Join(c.dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	server, err := natsd.Start(b.NATS(t.TempDir(), nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	c.garrison(b.Auditors())
	return c
}

// garrison sets the streams up, starts a node and opens the conversations.
func (c *castle) garrison(auditors []auth.Auditor) {
	t := c.t
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c.nodes = c.dial("node")
	if err := eventstore.Provision(ctx, c.nodes, eventstore.Config{}); err != nil {
		t.Fatal(err)
	}
	for _, a := range auditors {
		if _, err := eventstore.PrepareAuditor(ctx, c.nodes, a.Name, a.Tenant); err != nil {
			t.Fatal(err)
		}
	}
	models, err := scripted.Start(script(t, "rules: [{text: hello}]"), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = models.Close() })
	n, err := node.Start(ctx, node.Config{
		Join: true, Version: "0.0.0-test",
		Settings: &config.Settings{
			Data: t.TempDir(), Model: "scripted", BaseURL: models.URL(), Key: config.NewSecret("sk-doors"),
			NATS: config.NATS{URL: c.url, Creds: c.creds("node"), CA: c.ca},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := n.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	c.ours, c.theirs = c.open("main", "ours"), c.open("other", "theirs, secret")
	// It claims one partition after the other.
	js := c.js(c.nodes)
	for deadline := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		s, err := js.Stream(ctx, eventstore.StreamInbox)
		if err != nil {
			t.Fatal(err)
		}
		if s.CachedInfo().State.Consumers == domain.Partitions {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("of %d partitions the node has claimed %d", domain.Partitions, s.CachedInfo().State.Consumers)
		}
	}
}

func (c *castle) creds(role string) string { return filepath.Join(c.dir, role+".creds") }

// dial comes in by a role's credentials.
func (c *castle) dial(role string, more ...nats.Option) *nats.Conn {
	c.t.Helper()
	options := []nats.Option{nats.UserCredentials(c.creds(role)), nats.MaxReconnects(-1), nats.ReconnectWait(10 * time.Millisecond)}
	if c.ca != "" {
		options = append(options, nats.RootCAs(c.ca))
	}
	nc, err := nats.Connect(c.url, append(options, more...)...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(nc.Close)
	return nc
}

func (c *castle) js(nc *nats.Conn) jetstream.JetStream {
	c.t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		c.t.Fatal(err)
	}
	return js
}

// open opens a conversation of a tenant, with its clients' credentials alone,
// and waits until the Lead has answered.
func (c *castle) open(tenant, name string) domain.Key {
	c.t.Helper()
	nc := c.dial("client-" + tenant)
	key := domain.Key{Tenant: tenant, Conversation: api.NewID()}
	for deadline := time.Now().Add(patience); ; {
		got := ask(nc, "rollcall.api."+tenant+".open", fmt.Sprintf(`{"id":"open","conversation":%q,"name":%q,"contract":"none","objective":"hello"}`, key.Conversation, name))
		if strings.Contains(got, key.Conversation) && !strings.Contains(got, `"code"`) {
			break
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("open as %s: %s", tenant, got)
		}
	}
	for deadline := time.Now().Add(patience); ; {
		got := ask(nc, "rollcall.api."+tenant+".show", fmt.Sprintf(`{"conversation":%q}`, key.Conversation))
		if strings.Contains(got, `"status":"idle"`) && strings.Contains(got, "hello") {
			return key
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("conversation of %s: %s", tenant, got)
		}
	}
}

// ask is a request as somebody makes it who has nothing but a connection; what
// goes wrong is the answer.
func ask(nc *nats.Conn, subject, body string) string {
	m, err := nc.Request(subject, []byte(body), 2*time.Second)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(m.Data)
}

// inventory is all that nobody outside may change: every message of the log and
// of the buckets, the settings of every stream, and the consumers that are
// there. The inbox, and the letters that could never succeed, are left out:
// there outsiders may leave what they like.
func (c *castle) inventory() map[string]string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	js := c.js(c.nodes)
	found := map[string]string{}
	streams := js.ListStreams(ctx)
	for info := range streams.Info() {
		name := info.Config.Name
		settings, err := json.Marshal(info.Config)
		if err != nil {
			c.t.Fatal(err)
		}
		found["stream "+name] = string(settings)
		s, err := js.Stream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			delete(found, "stream "+name) // it went while we looked
			continue
		}
		if err != nil {
			c.t.Fatal(err)
		}
		for consumer := range s.ListConsumers(ctx).Info() {
			found["consumer "+name+" "+consumer.Name] = consumer.Config.FilterSubject
		}
		if name == eventstore.StreamInbox || name == eventstore.StreamDead {
			continue
		}
		for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
			m, err := c.message(ctx, s, name, seq)
			if err == nil && strings.Contains(m.Subject, ".node.") {
				continue // the node says again and again that it is there
			}
			switch {
			case err != nil: // it was replaced
			case strings.Contains(m.Subject, ".owner."):
				var lease struct{ Node string }
				_ = json.Unmarshal(m.Data, &lease) // the rest changes when it is renewed
				found["key "+m.Subject] = "of " + lease.Node
			case strings.HasPrefix(m.Subject, "$KV."):
				found["key "+m.Subject] = string(m.Data)
			default:
				found[fmt.Sprintf("message %s %d", name, seq)] = m.Subject + " " + string(m.Data)
			}
		}
	}
	if err := streams.Err(); err != nil {
		c.t.Fatal(err)
	}
	return found
}

// message reads a message, once where none can go: the log has no keys.
func (c *castle) message(ctx context.Context, s jetstream.Stream, name string, seq uint64) (*jetstream.RawStreamMsg, error) {
	key := fmt.Sprint(name, " ", seq)
	if m, ok := c.read[key]; ok {
		return m, nil
	}
	m, err := s.GetMsg(ctx, seq)
	if err == nil && name == eventstore.StreamEvents {
		c.read[key] = m
	}
	return m, err
}

// changes between two inventories, in words.
func changes(before, after map[string]string) []string {
	var out []string
	for k, v := range before {
		if now, ok := after[k]; !ok {
			out = append(out, k+" is gone")
		} else if now != v {
			out = append(out, k+" is "+now+", was "+v)
		}
	}
	for k, v := range after {
		if _, ok := before[k]; !ok {
			out = append(out, k+" is new: "+v)
		}
	}
	return out
}

// quiet waits until the node has done all that is in the inbox.
func (c *castle) quiet() {
	c.t.Helper()
	js := c.js(c.nodes)
	for deadline := time.Now().Add(patience); ; {
		s, err := js.Stream(c.t.Context(), eventstore.StreamInbox)
		if err == nil && s.CachedInfo().State.Msgs == 0 {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("the inbox is never empty: %v, %v", c.stuck(s), err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// stuck are the messages that stay in the inbox.
func (c *castle) stuck(s jetstream.Stream) (all []string) {
	for seq := s.CachedInfo().State.FirstSeq; seq <= s.CachedInfo().State.LastSeq; seq++ {
		if m, err := s.GetMsg(c.t.Context(), seq); err == nil {
			all = append(all, fmt.Sprintf("%s %v %.80q", m.Subject, m.Header, m.Data))
		}
	}
	return all
}

// intruder is a role that tries what it may not do.
type intruder struct {
	*nats.Conn
	mu     sync.Mutex
	denied []string
}

func (c *castle) intruder(role string) *intruder {
	c.t.Helper()
	i := &intruder{}
	i.Conn = c.dial(role, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.denied = append(i.denied, err.Error())
	}))
	return i
}

// wasDenied reports whether the server refused a subject.
func (i *intruder) wasDenied(subject string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, d := range i.denied {
		if strings.Contains(d, `"`+subject+`"`) {
			return true
		}
	}
	return false
}

// ownersOnly checks that nobody but its owner can read a directory, or what
// keeps others out in it.
func ownersOnly(t *testing.T, dir string, files ...string) {
	t.Helper()
	for _, name := range append(files, "") {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", filepath.Join(dir, name), info, err)
		}
	}
}

func (i *intruder) denials() int {
	_ = i.FlushTimeout(patience)
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.denied)
}

// pulls are an auditor's own requests, with answers sent elsewhere.
func (c *castle) pulls() []attempt { return c.pullsOf(auth.AuditAPI) }

// nodePulls are the same, from within the account of the log.
func (c *castle) nodePulls() []attempt { return c.pullsOf("$JS.API") }

func (c *castle) pullsOf(prefix string) []attempt {
	var all []attempt
	for _, consumer := range []string{"audit-alice", "audit-bob"} {
		for _, reply := range []string{eventstore.EventSubject(c.ours), "rollcall.in.other." + c.theirs.Conversation + ".lead"} {
			all = append(all,
				attempt{name: "reset " + consumer, subject: prefix + ".CONSUMER.RESET.ROLLCALL_EVENTS." + consumer, data: `{"seq":1}`, reply: reply},
				attempt{name: "by the reply of a pull of " + consumer + ", " + reply, subject: prefix + ".CONSUMER.MSG.NEXT.ROLLCALL_EVENTS." + consumer, data: `{"batch":5,"no_wait":true}`, reply: reply, open: consumer == "audit-alice"},
				attempt{name: "by the reply of " + consumer + "'s state, " + reply, subject: prefix + ".CONSUMER.INFO.ROLLCALL_EVENTS." + consumer, reply: reply},
			)
		}
	}
	return append(all, attempt{name: "by the reply of a body", subject: prefix + ".DIRECT.GET.OBJ_ROLLCALL_BLOBS", data: `{"seq":1}`, reply: eventstore.EventSubject(c.ours), open: true})
}

// alive shows that the node still serves both tenants.
func (c *castle) alive(t *testing.T) {
	t.Helper()
	for _, key := range []domain.Key{c.ours, c.theirs} {
		nc := c.dial("client-" + key.Tenant)
		if got := ask(nc, "rollcall.api."+key.Tenant+".ls", ""); !strings.Contains(got, key.Conversation) {
			t.Errorf("afterwards %s sees %s", key.Tenant, got)
		}
	}
}

func (c *castle) eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Errorf("never: %s", what)
			return
		}
		<-time.After(10 * time.Millisecond)
	}
}
