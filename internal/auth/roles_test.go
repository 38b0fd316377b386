package auth_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/auth"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
)

const commits = 250

// rolesOn has each role do what it is for, through each server: the answers
// come from whichever has them.
func rolesOn(t *testing.T, dir string, all []auth.Server, nodes *nats.Conn) {
	natsdtest.Open(t, nodes, eventstore.Config{Replicas: 3})
	js, err := jetstream.New(nodes)
	if err != nil {
		t.Fatal(err)
	}
	for i := range commits {
		if _, err := js.Publish(t.Context(), fmt.Sprintf("rollcall.events.1.%s.c", []string{"main", "other"}[i%2]), fmt.Append(nil, "commit ", i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		if _, err := js.Publish(t.Context(), "$O.ROLLCALL_BLOBS.C.big", fmt.Append(nil, "chunk ", i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range load(t, dir, "a").Auditors() {
		_, err := js.CreateConsumer(t.Context(), eventstore.StreamEvents, jetstream.ConsumerConfig{Durable: a.Durable(), FilterSubject: a.Filter(), AckPolicy: jetstream.AckNonePolicy})
		if err != nil {
			t.Fatal(err)
		}
	}
	// A node's service, whose answer comes in parts.
	service, err := nodes.Subscribe("rollcall.api.*.log", func(m *nats.Msg) {
		for i := range 3 {
			_ = nodes.Publish(m.Reply, fmt.Append(nil, m.Subject, " part ", i))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer service.Unsubscribe() //nolint:errcheck // it is over
	if err := nodes.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			url := "tls://" + s.ClientAddr()
			audits(t, dial(t, url, filepath.Join(dir, "auditor-alice.creds"), filepath.Join(dir, "ca.pem")), auth.Auditor{Name: "alice"}, commits)
			audits(t, dial(t, url, filepath.Join(dir, "auditor-bob.creds"), filepath.Join(dir, "ca.pem")), auth.Auditor{Name: "bob", Tenant: "main"}, commits/2)
			tenant(t, dial(t, url, filepath.Join(dir, "client-main.creds"), filepath.Join(dir, "ca.pem")), nodes)
		})
	}
}

// audits reads the log from its beginning, twice.
func audits(t *testing.T, nc *nats.Conn, a auth.Auditor, want int) {
	t.Helper()
	js, err := jetstream.NewWithAPIPrefix(nc, auth.AuditAPI)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		// Soon after it was made, some server may not have heard of the consumer.
		for deadline := time.Now().Add(patience); ; {
			m, err := nc.Request(auth.AuditAPI+".CONSUMER.RESET.ROLLCALL_EVENTS."+a.Durable(), []byte(`{"seq":1}`), patience)
			var got struct {
				Error json.RawMessage `json:"error"`
				Reset uint64          `json:"reset_seq"`
			}
			if err == nil {
				err = json.Unmarshal(m.Data, &got)
			}
			if err == nil && got.Error == nil && got.Reset == 1 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("reset: %v, %s", err, got.Error)
			}
		}
		c, err := js.Consumer(t.Context(), eventstore.StreamEvents, a.Durable())
		if err != nil {
			t.Fatal(err)
		}
		read, last, deadline := 0, uint64(0), time.Now().Add(patience)
		for read < want {
			// No more than there is: what a pull has left would be delivered to it
			// after the next reset.
			batch, err := c.Fetch(min(100, want-read), jetstream.FetchMaxWait(patience))
			if err != nil {
				t.Fatal(err)
			}
			for m := range batch.Messages() {
				meta, err := m.Metadata()
				if err != nil || meta.Sequence.Stream <= last {
					t.Fatalf("after %d comes %+v, %v", last, meta, err)
				}
				last = meta.Sequence.Stream
				if a.Tenant != "" && !strings.HasSuffix(m.Subject(), "."+a.Tenant+".c") {
					t.Errorf("%s reads %s", a.Name, m.Subject())
				}
				read++
			}
			if err := batch.Error(); err != nil || time.Now().After(deadline) {
				info, _ := c.Info(t.Context())
				t.Fatalf("after %d of %d: %v, %+v", read, want, err, info)
			}
		}
	}
	if a.Tenant != "" {
		return
	}
	// A large body comes in as many messages as it has chunks, and one that ends it.
	inbox := nc.NewRespInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.PublishRequest(auth.AuditAPI+".DIRECT.GET.OBJ_ROLLCALL_BLOBS", inbox, []byte(`{"seq":1,"next_by_subj":"$O.ROLLCALL_BLOBS.C.big","batch":10}`)); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		m, err := sub.NextMsg(patience)
		if err != nil || i < 3 && string(m.Data) != fmt.Sprint("chunk ", i) || i == 3 && m.Header.Get("Status") != "204" {
			t.Fatalf("chunk %d of a body: %+v, %v", i, m, err)
		}
	}
}

// tenant has a client publish, ask and listen.
func tenant(t *testing.T, nc, nodes *nats.Conn) {
	t.Helper()
	m, err := nc.Request("rollcall.in.main.c.lead", []byte("hello"), patience)
	if err != nil || !strings.Contains(string(m.Data), `"stream":"ROLLCALL_INBOX"`) {
		t.Fatalf("a message: %+v, %v", m, err)
	}
	inbox := nc.NewRespInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	feed, err := nc.SubscribeSync("rollcall.feed.main.*")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.PublishRequest("rollcall.api.main.log", inbox, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		m, err := sub.NextMsg(patience)
		if err != nil || string(m.Data) != fmt.Sprint("rollcall.api.main.log part ", i) {
			t.Fatalf("part %d: %+v, %v", i, m, err)
		}
	}
	// That there is a listener goes round the servers by itself.
	for deadline := time.Now().Add(patience); ; {
		_ = nodes.Publish("rollcall.feed.other.c", []byte("theirs"))
		_ = nodes.Publish("rollcall.feed.main.c", []byte("ours"))
		m, err := feed.NextMsg(50 * time.Millisecond)
		if err == nil && string(m.Data) == "ours" {
			return
		}
		if !errors.Is(err, nats.ErrTimeout) || time.Now().After(deadline) {
			t.Fatalf("the feed: %+v, %v", m, err)
		}
	}
}

// latecomer is a tenant who is made while the servers run: with its account in
// their folders they let it in.
func latecomer(t *testing.T, dir string, all []auth.Server) {
	made, err := auth.Add(dir, []string{"acme"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		nc := dial(t, "tls://"+s.ClientAddr(), filepath.Join(dir, "client-acme.creds"), made.CA)
		if _, err := nc.Request("rollcall.in.acme.c.lead", []byte("hello"), patience); err != nil {
			t.Errorf("by %s: %v", s.Name, err)
		}
	}
	// Somebody else's tenant, of the same name, is a stranger.
	other := filepath.Join(t.TempDir(), "roles")
	if _, err := auth.Init(other, auth.Plan{Tenants: []string{"acme"}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect("tls://"+all[0].ClientAddr(), nats.UserCredentials(filepath.Join(other, "client-acme.creds")), nats.RootCAs(made.CA))
	if err == nil {
		nc.Close()
	}
	if !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("a stranger: %v", err)
	}
}
