package eventstore_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

var conv = domain.Key{Tenant: "main", Conversation: "c1"}

// objects opens a bucket with NATS's own client: what the store writes is an
// object store to others too.
func objects(t *testing.T, nc *nats.Conn, bucket string) (jetstream.ObjectStore, jetstream.Stream) {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	o, err := js.ObjectStore(t.Context(), bucket)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), "OBJ_"+bucket)
	if err != nil {
		t.Fatal(err)
	}
	return o, s
}

func TestBlobsDamaged(t *testing.T) {
	s, nc := natsdtest.Store(t)
	o, stream := objects(t, nc, eventstore.BucketBlobs)
	data := bytes.Repeat([]byte("0123456789"), 100_000)
	b, err := s.PutBlob(t.Context(), conv, data)
	if err != nil {
		t.Fatal(err)
	}
	name := eventstore.BlobName(conv, b)
	if got, err := o.GetBytes(t.Context(), name); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("read by NATS's client: %d bytes, %v", len(got), err)
	}

	// Its bytes are gone, its entry is not.
	info, err := o.GetInfo(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	chunks := "$O." + eventstore.BucketBlobs + ".C." + info.NUID
	if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject(chunks)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GetBlob(patient(t), conv, b); !errors.Is(err, eventstore.ErrMissingBlob) {
		t.Fatalf("a blob without its bytes: %v", err)
	}
	// Putting it again repairs it.
	if _, err := s.PutBlob(t.Context(), conv, data); err != nil {
		t.Fatal(err)
	}
	if got, err := s.GetBlob(t.Context(), conv, b); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("after the repair: %d bytes, %v", len(got), err)
	}
	// Other bytes under its name.
	if _, err := o.PutBytes(t.Context(), name, append([]byte("x"), data[1:]...)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GetBlob(t.Context(), conv, b); !errors.Is(err, domain.ErrHash) {
		t.Fatalf("other bytes under its name: %v", err)
	}
}

// Replaced snapshots leave nothing behind.
func TestSnapshotsReplace(t *testing.T) {
	s, nc := natsdtest.Store(t)
	_, stream := objects(t, nc, eventstore.BucketSnapshots)
	r, err := s.Append(t.Context(), conv, eventstore.Position{}, &rollcallv1.Commit{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		snap := eventstore.Snapshot{Position: r.Position(), EvolveVersion: 1, Data: []byte(fmt.Sprint(i))}
		if err := s.SaveSnapshot(t.Context(), conv, snap); err != nil {
			t.Fatal(err)
		}
	}
	info, err := stream.Info(t.Context())
	if err != nil || info.State.Msgs != 2 {
		t.Fatalf("%d messages, want an entry and a chunk; %v", info.State.Msgs, err)
	}
}

func TestSnapshotDamaged(t *testing.T) {
	nc := natsdtest.Connect(t, natsdtest.Start(t))
	var lines strings.Builder
	s := natsdtest.Open(t, nc, eventstore.Config{Log: slog.New(slog.NewTextHandler(&lines, nil))})
	o, stream := objects(t, nc, eventstore.BucketSnapshots)
	r, err := s.Append(t.Context(), conv, eventstore.Position{}, &rollcallv1.Commit{})
	if err != nil {
		t.Fatal(err)
	}
	snap := eventstore.Snapshot{Position: r.Position(), EvolveVersion: 1, Data: []byte("state")}
	if err := s.SaveSnapshot(t.Context(), conv, snap); err != nil {
		t.Fatal(err)
	}
	good, err := o.GetInfo(t.Context(), conv.String())
	if err != nil {
		t.Fatal(err)
	}
	packed, err := o.GetBytes(t.Context(), conv.String())
	if err != nil {
		t.Fatal(err)
	}
	// A sound archive, but not the one that the entry names.
	var other bytes.Buffer
	w := gzip.NewWriter(&other)
	_, _ = w.Write([]byte("other state"))
	_ = w.Close()
	js, _ := jetstream.New(nc)
	chunk := "$O." + eventstore.BucketSnapshots + ".C." + good.NUID
	if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject(chunk)); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), chunk, other.Bytes()); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := s.LoadSnapshot(t.Context(), conv, 1); ok || err != nil {
		t.Fatalf("another archive: counts %v, %v", ok, err)
	}

	packed[len(packed)/2] ^= 0xff
	for what, data := range map[string][]byte{"no archive": []byte("hello"), "a flipped byte": packed, "nothing": nil} {
		lines.Reset()
		meta := jetstream.ObjectMeta{Name: conv.String(), Metadata: good.Metadata}
		if _, err := o.Put(t.Context(), meta, bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := s.LoadSnapshot(t.Context(), conv, 1); ok || err != nil {
			t.Fatalf("%s: counts %v, %v", what, ok, err)
		}
		if !strings.Contains(lines.String(), conv.String()) {
			t.Fatalf("%s: no line about it: %q", what, lines.String())
		}
	}
}

// Anybody may publish to the inbox, and with any headers.
func TestForgedMessages(t *testing.T) {
	s, nc := natsdtest.Store(t)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	publish := func(subject, body string, header ...string) {
		t.Helper()
		m := &nats.Msg{Subject: subject, Header: nats.Header{}, Data: []byte(body)}
		for i := 0; i < len(header); i += 2 {
			m.Header.Set(header[i], header[i+1])
		}
		if _, err := js.PublishMsg(t.Context(), m); err != nil {
			t.Fatalf("publish to %s: %v", subject, err)
		}
	}
	to := eventstore.InboxSubject(conv, "lead")
	// Words of the server, in the mouth of a client.
	publish(to, "", "Status", "409", "Description", "Consumer Deleted")
	publish(to, "", "Status", "100", "Description", "Idle Heartbeat")
	publish(to, "", "Status", "503")
	publish(to, "", "Nats-Sequence", "1", "Nats-Subject", "rollcall.events.0.a.b")
	// A name that is not one of ours goes to the owner, who knows the members.
	publish(eventstore.InboxSubject(conv, "Backend"), "to a display name")

	l, err := s.Claim(t.Context(), "n1", conv.Partition())
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Receive(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx := patient(t)
	for range 4 {
		expect(t, ctx, r, "", func(d eventstore.Delivery) error { return d.Ack(ctx) })
	}
	expect(t, ctx, r, "to a display name", func(d eventstore.Delivery) error { return d.Ack(ctx) })
}

// What names no conversation at all goes to the dead letters by itself.
func TestNoConversation(t *testing.T) {
	s, nc := natsdtest.Store(t)
	bad := domain.Key{Tenant: "main", Conversation: "Harbor"}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), eventstore.InboxSubject(bad, "lead"), []byte("hello")); err != nil {
		t.Fatal(err)
	}
	l, err := s.Claim(t.Context(), "n1", bad.Partition())
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Receive(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	good := domain.Key{Tenant: "main"}
	for i := 0; good.Conversation == "" || good.Partition() != bad.Partition(); i++ {
		good.Conversation = fmt.Sprint("c", i)
	}
	if _, _, err := s.Publish(t.Context(), eventstore.Envelope{Key: good, To: "lead", Data: []byte("good")}); err != nil {
		t.Fatal(err)
	}
	expect(t, patient(t), r, "good", nil)
	dead, err := s.DeadLetters(t.Context(), 10)
	if err != nil || len(dead) != 1 || dead[0].Envelope.Key != bad || !strings.Contains(dead[0].Reason, "Harbor") {
		t.Fatalf("dead letters %+v, %v", dead, err)
	}
}

// A commit can be filtered without protobuf.
func TestCommitHeaders(t *testing.T) {
	s, nc := natsdtest.Store(t)
	c := &rollcallv1.Commit{Id: "id1", Node: "n1", Epoch: 7, CommandIds: []string{"k1", "k2"}, Events: []*rollcallv1.Event{
		{Kind: &rollcallv1.Event_RunStarted{RunStarted: &rollcallv1.RunStarted{}}},
		{Kind: &rollcallv1.Event_ModelCallStarted{ModelCallStarted: &rollcallv1.ModelCallStarted{}}},
		{Kind: &rollcallv1.Event_RunStarted{RunStarted: &rollcallv1.RunStarted{}}},
	}}
	ctx := eventstore.WithOrigin(context.Background(), eventstore.Origin{Actor: "operator", Traceparent: "00-a-b-01"})
	r, err := s.Append(ctx, conv, eventstore.Position{}, c)
	if err != nil {
		t.Fatal(err)
	}
	js, _ := jetstream.New(nc)
	stream, err := js.Stream(ctx, eventstore.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetMsg(ctx, r.Seq)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"Nats-Msg-Id": "id1", "Rollcall-Version": "1", "Rollcall-Schema": "rollcall.v1",
		"Rollcall-Types": "RunStarted,ModelCallStarted", "Rollcall-Node": "n1", "Rollcall-Epoch": "7",
		"Rollcall-Actor": "operator", "Rollcall-Correlation": "k1", "traceparent": "00-a-b-01",
	} {
		if got := m.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
