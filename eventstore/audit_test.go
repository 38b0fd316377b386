package eventstore_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/auth"
	"github.com/rollcall-dev/rollcall/internal/natsd"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// offices is a server with the accounts of rollcall auth, and a log.
type offices struct {
	t     *testing.T
	url   string
	made  *auth.Made
	node  *nats.Conn
	store *eventstore.JetStream
	// restart stops the server and starts it again where it was.
	restart func()
}

func newOffices(t *testing.T) *offices {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "auth")
	server, err := auth.ParseServer("a=127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	o := &offices{t: t}
	o.made, err = auth.Init(dir, auth.Plan{
		Servers: []auth.Server{server}, Tenants: []string{"main", "acme"},
		Auditors: []auth.Auditor{{Name: "alice"}, {Name: "bob", Tenant: "acme"}},
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := auth.Load(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	cfg := bundle.NATS(t.TempDir(), nil)
	cfg.Port, cfg.Advertise, cfg.TLS = -1, "", nil
	s, err := natsd.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Shutdown() })
	o.url = s.URL
	o.restart = func() {
		s.Shutdown()
		if _, err := fmt.Sscanf(o.url, "nats://127.0.0.1:%d", &cfg.Port); err != nil {
			t.Error(err)
		}
		again, err := natsd.Start(cfg)
		if err != nil {
			t.Error(err)
			return
		}
		s = again
	}
	o.node = o.dial(bundle.Creds())
	if err := eventstore.Provision(t.Context(), o.node, eventstore.Config{}); err != nil {
		t.Fatal(err)
	}
	if o.store, err = eventstore.Open(t.Context(), o.node, eventstore.Config{}); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *offices) dial(creds string) *nats.Conn {
	o.t.Helper()
	nc, err := nats.Connect(o.url, nats.UserCredentials(creds), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond),
		nats.ReconnectBufSize(-1), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { natsdtest.Close(nc) })
	return nc
}

// as connects with the credentials of a role.
func (o *offices) as(role, name string) *nats.Conn {
	o.t.Helper()
	i := slices.IndexFunc(o.made.Roles, func(r auth.Role) bool { return r.Role == role && r.Name == name })
	return o.dial(o.made.Roles[i].Creds)
}

func (o *offices) prepare(name, tenant string) {
	o.t.Helper()
	if _, err := eventstore.PrepareAuditor(o.t.Context(), o.node, name, tenant); err != nil {
		o.t.Fatal(err)
	}
}

// write appends commits of several conversations in turn, and gives all in the
// order of the stream.
func (o *offices) write(n int, keys ...domain.Key) (all []eventstore.Recorded) {
	o.t.Helper()
	at := map[domain.Key]eventstore.Position{}
	for i := range n {
		for _, key := range keys {
			c := &rollcallv1.Commit{Events: []*rollcallv1.Event{domain.NewEvent(&rollcallv1.ConversationResumed{By: fmt.Sprint(i)})}}
			r, err := o.store.Append(o.t.Context(), key, at[key], c)
			if err != nil {
				o.t.Fatal(err)
			}
			at[key] = r.Position()
			all = append(all, r)
		}
	}
	return all
}

var (
	ours   = domain.Key{Tenant: "main", Conversation: "01jzzzzzzzzzzzzzzzzzzzzzza"}
	others = domain.Key{Tenant: "acme", Conversation: "01jzzzzzzzzzzzzzzzzzzzzzzb"}
)

func TestPrepareAuditor(t *testing.T) {
	o := newOffices(t)
	var made [4]bool
	var all sync.WaitGroup
	for i := range made {
		all.Go(func() {
			var err error
			if made[i], err = eventstore.PrepareAuditor(t.Context(), o.node, "alice", ""); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if again, err := eventstore.PrepareAuditor(t.Context(), o.node, "alice", ""); err != nil || again {
		t.Errorf("again: made %v, %v", again, err)
	}
	if !slices.Contains(made[:], true) {
		t.Error("nobody made it")
	}
	// A dry run says the same.
	refused := func(code, name, tenant string) {
		t.Helper()
		_, err := eventstore.PrepareAuditor(t.Context(), o.node, name, tenant)
		mustRefuse(t, code, err)
		_, _, err = eventstore.PlanAuditor(t.Context(), o.node, name, tenant)
		mustRefuse(t, code, err)
	}
	refused("auditor-exists", "alice", "acme")
	for _, x := range [][2]string{{"", ""}, {"a.b", ""}, {"*", ""}, {"alice", ">"}} {
		refused("auditor-invalid", x[0], x[1])
	}
	for name, want := range map[string]bool{"alice": false, "bob": true} {
		if _, missing, err := eventstore.PlanAuditor(t.Context(), o.node, name, ""); err != nil || missing != want {
			t.Errorf("%s is to be made: %v, %v", name, missing, err)
		}
	}
	_, err := eventstore.PrepareAuditor(t.Context(), o.as("client", ""), "carol", "")
	if r := mustBeRefused(t, err); r.Code != "jetstream-missing" && r.Code != "nats-denied" {
		t.Errorf("a client prepares: %v", err)
	}
}

func mustBeRefused(t *testing.T, err error) *domain.Refusal {
	t.Helper()
	r, ok := err.(*domain.Refusal) //nolint:errorlint // as it comes
	if !ok {
		t.Fatalf("not refused: %v", err)
	}
	return r
}

func (o *offices) open(nc *nats.Conn, name string) *eventstore.AuditLog {
	o.t.Helper()
	a, err := eventstore.OpenAudit(o.t.Context(), nc, name, auth.AuditAPI, "$JS.API")
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(a.Close)
	return a
}

func reading(ctx context.Context, a *eventstore.AuditLog, from, until uint64) (all []eventstore.Recorded, err error) {
	err = a.Read(ctx, from, until, func(r eventstore.Recorded) error {
		all = append(all, r)
		return nil
	})
	return all, err
}

func mustRead(t *testing.T, what string, want, got []eventstore.Recorded, err error) {
	t.Helper()
	if err != nil || len(got) != len(want) {
		t.Fatalf("%s: %d of %d commits, %v", what, len(got), len(want), err)
	}
	for i, w := range want {
		if g := got[i]; g.Key != w.Key || g.Seq != w.Seq || !bytes.Equal(g.Raw, w.Raw) || g.Header["Rollcall-Version"] == nil {
			t.Fatalf("%s: commit %d is %v at %d, want %v at %d", what, i, g.Key, g.Seq, w.Key, w.Seq)
		}
	}
}

// An auditor reads the log with his own credentials and no node.
func TestAuditLog(t *testing.T) {
	o := newOffices(t)
	alice, bob := o.as("auditor", "alice"), o.as("auditor", "bob")
	_, err := eventstore.OpenAudit(t.Context(), alice, "alice", auth.AuditAPI)
	mustRefuse(t, "auditor-unprepared", err)
	o.prepare("alice", "")
	o.prepare("bob", "acme")
	all := o.write(150, ours, others)
	if _, err := o.node.Request("rollcall.events.0.main.stray", []byte("no commit"), time.Second); err != nil {
		t.Fatal(err)
	}
	a := o.open(alice, "alice")
	for range 2 {
		got, err := reading(t.Context(), a, 0, 0)
		mustRead(t, "all", all, got, err)
	}
	got, err := reading(t.Context(), a, all[100].Seq, all[199].Seq)
	mustRead(t, "a stretch", all[100:200], got, err)

	b := o.open(bob, "bob")
	if a.Tenant() != "" || b.Tenant() != "acme" {
		t.Errorf("tenants %q and %q", a.Tenant(), b.Tenant())
	}
	got, err = reading(t.Context(), b, 0, 0)
	mustRead(t, "of a tenant", slices.DeleteFunc(slices.Clone(all), func(r eventstore.Recorded) bool { return r.Key != others }), got, err)

	data := bytes.Repeat([]byte("paint "), 200_000)
	blob, err := o.store.PutBlob(t.Context(), ours, data)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := a.Body(t.Context(), ours, blob); err != nil || !bytes.Equal(got, data) {
		t.Errorf("a body of %d bytes, %v", len(got), err)
	}

	// With the node's rights, by the name of the API that everybody knows.
	got, err = reading(t.Context(), o.open(o.node, "alice"), 0, 0)
	mustRead(t, "by the operator", all, got, err)
	_, err = eventstore.OpenAudit(t.Context(), o.as("client", ""), "alice", auth.AuditAPI, "$JS.API")
	mustBeRefused(t, err)
	_, err = eventstore.OpenAudit(t.Context(), bob, "alice", auth.AuditAPI, "$JS.API")
	mustBeRefused(t, err)
}

// Whoever else moves the consumer costs time, and nothing is lost or read twice.
func TestAuditLogDisturbed(t *testing.T) {
	o := newOffices(t)
	o.prepare("alice", "")
	all := o.write(200, ours)
	a, other := o.open(o.as("auditor", "alice"), "alice"), o.as("auditor", "alice")
	const own = auth.AuditAPI + ".CONSUMER."
	var got []eventstore.Recorded
	err := a.Read(t.Context(), 0, 0, func(r eventstore.Recorded) error {
		got = append(got, r)
		var err error
		switch len(got) {
		case 60:
			_, err = other.Request(own+"RESET.ROLLCALL_EVENTS.audit-alice", []byte(`{"seq":1}`), time.Second)
		case 130:
			_, err = other.Request(own+"MSG.NEXT.ROLLCALL_EVENTS.audit-alice", []byte(`{"no_wait":true}`), time.Second)
		}
		return err
	})
	mustRead(t, "disturbed", all, got, err)
}

// A server that goes away and comes back costs time.
func TestAuditLogRestart(t *testing.T) {
	o := newOffices(t)
	o.prepare("alice", "")
	all := o.write(200, ours)
	a := o.open(o.as("auditor", "alice"), "alice")
	var got []eventstore.Recorded
	err := a.Read(t.Context(), 0, 0, func(r eventstore.Recorded) error {
		if got = append(got, r); len(got) == 70 {
			o.restart()
		}
		return nil
	})
	mustRead(t, "over a restart", all, got, err)
}
