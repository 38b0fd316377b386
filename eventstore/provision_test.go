package eventstore_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func TestProvisionOnManyNodesAtOnce(t *testing.T) {
	server := natsdtest.Start(t)
	var wg sync.WaitGroup
	for range 4 {
		nc := natsdtest.Connect(t, server)
		wg.Go(func() {
			for range 3 {
				if err := eventstore.Provision(t.Context(), nc, eventstore.Config{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	nc := natsdtest.Connect(t, server)
	js, _ := jetstream.New(nc)
	for _, want := range eventstore.Streams(eventstore.Config{}) {
		s, err := js.Stream(t.Context(), want.Name)
		if err != nil {
			t.Fatal(err)
		}
		have := s.CachedInfo().Config
		for what, pair := range map[string][2]any{
			"subjects": {have.Subjects, want.Subjects}, "discard": {have.Discard, want.Discard},
			"max bytes": {have.MaxBytes, want.MaxBytes}, "deny delete": {have.DenyDelete, want.DenyDelete},
			"deny purge": {have.DenyPurge, want.DenyPurge}, "direct": {have.AllowDirect, want.AllowDirect},
			"retention": {have.Retention, want.Retention}, "duplicates": {have.Duplicates, want.Duplicates},
			"storage": {have.Storage, want.Storage}, "compression": {have.Compression, want.Compression},
			"max age": {have.MaxAge, want.MaxAge}, "rollup": {have.AllowRollup, want.AllowRollup},
			"schedules": {have.AllowMsgSchedules, want.AllowMsgSchedules}, "TTL": {have.AllowMsgTTL, want.AllowMsgTTL},
		} {
			if fmt.Sprint(pair[0]) != fmt.Sprint(pair[1]) {
				t.Errorf("%s: %s is %v, want %v", want.Name, what, pair[0], pair[1])
			}
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	nc := natsdtest.Connect(t, natsdtest.Start(t))
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(code string, err error) {
		t.Helper()
		r, ok := errors.AsType[*domain.Refusal](err)
		if !ok || r.Code != code || r.Why == "" || r.Try == "" {
			t.Fatalf("got %v, want %s", err, code)
		}
	}
	_, err = eventstore.Open(t.Context(), nc, eventstore.Config{})
	refused("installation-missing", err)

	natsdtest.Open(t, nc, eventstore.Config{})
	s, err := js.Stream(t.Context(), eventstore.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	for code, change := range map[string][2]string{
		"installation-newer":      {"rollcall.needs", "1000"},
		"installation-partitions": {"rollcall.partitions", "64"},
	} {
		cfg := s.CachedInfo().Config
		old := cfg.Metadata[change[0]]
		cfg.Metadata[change[0]] = change[1]
		if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		refused(code, eventstore.Provision(t.Context(), nc, eventstore.Config{}))
		_, err = eventstore.Open(t.Context(), nc, eventstore.Config{})
		refused(code, err)
		cfg.Metadata[change[0]] = old
		if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	natsdtest.Open(t, nc, eventstore.Config{})
}

// Older settings are brought up to date; the log in them stays.
func TestProvisionUpgrades(t *testing.T) {
	s, nc := natsdtest.Store(t)
	key := domain.Key{Tenant: "main", Conversation: "c1"}
	if _, err := s.Append(t.Context(), key, eventstore.Position{}, &rollcallv1.Commit{Node: "n1"}); err != nil {
		t.Fatal(err)
	}
	js, _ := jetstream.New(nc)
	stream, err := js.Stream(t.Context(), eventstore.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	cfg := stream.CachedInfo().Config
	cfg.Metadata["rollcall.provision"], cfg.AllowDirect = "0", false
	if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	s = natsdtest.Open(t, nc, eventstore.Config{})
	if stream, err = js.Stream(t.Context(), eventstore.StreamEvents); err != nil || !stream.CachedInfo().Config.AllowDirect {
		t.Fatalf("after the upgrade: %v", err)
	}
	if got := versions(t, s, key); len(got) != 1 {
		t.Fatalf("the log has %v", got)
	}
}

// A node that does not know of the cluster does not shrink it.
func TestReplicasOnlyRise(t *testing.T) {
	servers := natsdtest.Cluster(t, 3)
	nc := natsdtest.Connect(t, servers[1])
	for _, cfg := range []eventstore.Config{{Replicas: 3}, {}, {Replicas: 1}, {Replicas: 1, InboxBytes: 1 << 20}} {
		natsdtest.Open(t, nc, cfg)
		js, _ := jetstream.New(nc)
		for _, name := range []string{eventstore.StreamEvents, eventstore.StreamInbox} {
			s, err := js.Stream(t.Context(), name)
			if err != nil || s.CachedInfo().Config.Replicas != 3 {
				t.Fatalf("%s, asked for %+v: %v", name, cfg, err)
			}
		}
	}
}

// Epochs rise above those in the log also when the bucket of nodes was lost,
// or is older than the log.
func TestEpochsSurviveTheBucket(t *testing.T) {
	s, nc := natsdtest.Store(t)
	write := func(from, to int) {
		for epoch := from; epoch <= to; epoch++ {
			key := domain.Key{Tenant: "main", Conversation: fmt.Sprint("c", epoch)}
			if _, err := s.Append(t.Context(), key, eventstore.Position{}, &rollcallv1.Commit{Node: "n1", Epoch: uint64(epoch)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	claimAbove := func(highest uint64) {
		t.Helper()
		l, err := s.Claim(t.Context(), "n1", 3)
		if err != nil || l.Epoch <= highest {
			t.Fatalf("epoch %d, %v; the log has %d", l.Epoch, err, highest)
		}
	}
	claimAbove(0)
	write(600, 650)
	s = natsdtest.Open(t, nc, eventstore.Config{}) // notices by the newest commit
	claimAbove(650)
	write(800, 900)
	write(1, 1) // and here the newest commit does not tell
	if err := eventstore.Provision(t.Context(), nc, eventstore.Config{EveryEpoch: true}); err != nil {
		t.Fatal(err)
	}
	claimAbove(900)
	write(1000, 1299)
	js, _ := jetstream.New(nc)
	if err := js.DeleteKeyValue(t.Context(), eventstore.BucketNodes); err != nil {
		t.Fatal(err)
	}
	s = natsdtest.Open(t, nc, eventstore.Config{})
	claimAbove(1299)
	// The bucket is one to other clients too.
	kv, err := js.KeyValue(t.Context(), eventstore.BucketNodes)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := kv.Get(t.Context(), "owner.3"); err != nil || !strings.Contains(string(e.Value()), "n1") {
		t.Fatalf("owner.3: %v", err)
	}
}

func TestInboxFull(t *testing.T) {
	nc := natsdtest.Connect(t, natsdtest.Start(t))
	s := natsdtest.Open(t, nc, eventstore.Config{InboxBytes: 1 << 20})
	key := domain.Key{Tenant: "main", Conversation: "c1"}
	e := eventstore.Envelope{Key: key, To: "lead", Data: make([]byte, 200<<10)}
	stored := 0
	for ; ; stored++ {
		_, _, err := s.Publish(t.Context(), e)
		if errors.Is(err, eventstore.ErrInboxFull) {
			break
		}
		if err != nil || stored > 10 {
			t.Fatalf("after %d messages: %v", stored, err)
		}
	}
	l, err := s.Claim(t.Context(), "n1", key.Partition())
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Receive(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range stored {
		d, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Ack(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Publish(t.Context(), e); err != nil {
		t.Fatalf("when there is room again: %v", err)
	}
}
