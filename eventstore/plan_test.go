package eventstore_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
)

func plan(t *testing.T, nc *nats.Conn, cfg eventstore.Config) []string {
	t.Helper()
	all, err := eventstore.Plan(t.Context(), nc, cfg)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{}
	for _, c := range all {
		texts = append(texts, c.String())
	}
	return texts
}

func mustRefuse(t *testing.T, code string, err error) *domain.Refusal {
	t.Helper()
	r, ok := errors.AsType[*domain.Refusal](err)
	if !ok || r.Code != code || r.Why == "" || r.Try == "" {
		t.Fatalf("got %v, want %s", err, code)
	}
	return r
}

// The plan says everything that provisioning does and changes nothing itself;
// afterwards there is nothing to do.
func TestPlan(t *testing.T) {
	nc := natsdtest.Connect(t, natsdtest.Start(t))
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	wanted := eventstore.Streams(eventstore.Config{})
	for range 2 { // it changes nothing
		if got := plan(t, nc, eventstore.Config{}); len(got) != len(wanted) || got[0] != "ROLLCALL_EVENTS: make it, one copy" {
			t.Fatalf("on an empty server: %q", got)
		}
		mustRefuse(t, "installation-missing", eventstore.Ready(t.Context(), nc, eventstore.Config{}))
	}
	natsdtest.Open(t, nc, eventstore.Config{})
	settled := func() {
		t.Helper()
		if got := plan(t, nc, eventstore.Config{EveryEpoch: true}); len(got) != 0 {
			t.Fatalf("after provisioning: %q", got)
		}
		if err := eventstore.Ready(t.Context(), nc, eventstore.Config{}); err != nil {
			t.Fatal(err)
		}
	}
	settled()

	for _, x := range []struct {
		stream, want string
		change       func(*jetstream.StreamConfig)
	}{
		{eventstore.StreamInbox, "discard from DiscardOld to DiscardNew", func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld }},
		{eventstore.StreamInbox, "also takes from from nothing to ROLLCALL_TIMERS", func(c *jetstream.StreamConfig) { c.Sources = nil }},
		{eventstore.StreamEvents, "max age from 1h0m0s to 0s", func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }},
		{eventstore.StreamEvents, "allow direct from false to true", func(c *jetstream.StreamConfig) { c.AllowDirect = false }},
		{eventstore.StreamEvents, "compression from None to S2", func(c *jetstream.StreamConfig) { c.Compression = jetstream.NoCompression }},
		{eventstore.StreamDead, "max bytes from 1024 to", func(c *jetstream.StreamConfig) { c.MaxBytes = 1024 }},
		{eventstore.StreamDead, "settings version from 1 to 2", func(c *jetstream.StreamConfig) { c.Metadata["rollcall.provision"] = "1" }},
	} {
		s, err := js.Stream(t.Context(), x.stream)
		if err != nil {
			t.Fatal(err)
		}
		cfg := s.CachedInfo().Config
		x.change(&cfg)
		cfg.Metadata["theirs"] = "kept"
		if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		if got := plan(t, nc, eventstore.Config{}); len(got) != 1 || !strings.Contains(got[0], x.stream+": "+x.want) {
			t.Errorf("%s: %q", x.want, got)
		}
		mustRefuse(t, "installation-outdated", eventstore.Ready(t.Context(), nc, eventstore.Config{}))
		natsdtest.Open(t, nc, eventstore.Config{})
		settled()
		if s, err = js.Stream(t.Context(), x.stream); err != nil || s.CachedInfo().Config.Metadata["theirs"] != "kept" {
			t.Errorf("%s: what others noted on the stream is gone: %v", x.want, err)
		}
	}

	// A newer program set more up, and says that this one can work with it.
	s, err := js.Stream(t.Context(), eventstore.StreamDead)
	if err != nil {
		t.Fatal(err)
	}
	newer := s.CachedInfo().Config
	newer.Metadata["rollcall.provision"], newer.MaxBytes = "1000", 12345
	if _, err := js.UpdateStream(t.Context(), newer); err != nil {
		t.Fatal(err)
	}
	settled()
	natsdtest.Open(t, nc, eventstore.Config{})
	if s, err = js.Stream(t.Context(), eventstore.StreamDead); err != nil || s.CachedInfo().Config.MaxBytes != 12345 {
		t.Errorf("the older program changed it: %v", err)
	}
	if drift := eventstore.Drift(wanted[3], s.CachedInfo().Config); len(drift) != 0 {
		t.Errorf("it is called drift: %q", drift)
	}
}

// Each thing in the way has its code, at once and not after a timeout.
func TestProvisionRefuses(t *testing.T) {
	try := func(t *testing.T, nc *nats.Conn, cfg eventstore.Config, code string) string {
		t.Helper()
		begun := time.Now()
		_, err := eventstore.Plan(t.Context(), nc, cfg)
		if err == nil {
			err = eventstore.Provision(t.Context(), nc, cfg)
		}
		r := mustRefuse(t, code, err)
		if took := time.Since(begun); took > 8*time.Second {
			t.Errorf("said only after %v", took)
		}
		return r.Why
	}
	t.Run("another stream listens on our subjects", func(t *testing.T) {
		for _, subject := range []string{"rollcall.>", "rollcall.in.main.*.*", "rollcall.api.>", "$KV.ROLLCALL_NODES.x"} {
			nc := natsdtest.Connect(t, natsdtest.Start(t))
			js, _ := jetstream.New(nc)
			if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ARCHIVE", Subjects: []string{subject}, NoAck: true}); err != nil {
				t.Fatal(err)
			}
			if why := try(t, nc, eventstore.Config{}, "stream-foreign"); !strings.Contains(why, "ARCHIVE") {
				t.Errorf("%s: %s", subject, why)
			}
		}
	})
	t.Run("a stream of our name is another's", func(t *testing.T) {
		nc := natsdtest.Connect(t, natsdtest.Start(t))
		js, _ := jetstream.New(nc)
		if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: eventstore.StreamInbox, Subjects: []string{"mine"}, Storage: jetstream.MemoryStorage}); err != nil {
			t.Fatal(err)
		}
		if why := try(t, nc, eventstore.Config{}, "stream-foreign"); !strings.Contains(why, "retention is Limits, must be WorkQueue") {
			t.Error(why)
		}
	})
	t.Run("more replicas than servers", func(t *testing.T) {
		nc := natsdtest.Connect(t, natsdtest.Start(t))
		try(t, nc, eventstore.Config{Replicas: 3}, "replicas-too-many")
		natsdtest.Open(t, nc, eventstore.Config{})
		try(t, nc, eventstore.Config{Replicas: 3}, "replicas-too-many")
		nc = natsdtest.Connect(t, natsdtest.Cluster(t, 3)[0])
		try(t, nc, eventstore.Config{Replicas: 5}, "replicas-too-many")
	})
	t.Run("no JetStream", func(t *testing.T) {
		try(t, plain(t, `port: -1`, ""), eventstore.Config{}, "jetstream-missing")
	})
	const jetStream = "port: -1\njetstream: {store_dir: \"%DIR%\"}\n"
	t.Run("no JetStream for the account", func(t *testing.T) {
		nc := plain(t, jetStream+`accounts: {A: {users: [{user: a, password: a}]}, B: {jetstream: enabled, users: [{user: b, password: b}]}}`, "a:a")
		try(t, nc, eventstore.Config{}, "jetstream-missing")
	})
	t.Run("limits of the account", func(t *testing.T) {
		nc := plain(t, jetStream+`accounts: {A: {jetstream: {max_streams: 2}, users: [{user: a, password: a}]}}`, "a:a")
		if why := try(t, nc, eventstore.Config{}, "jetstream-limit"); !strings.Contains(why, "maximum number of streams") {
			t.Error(why)
		}
		nc = plain(t, jetStream+`accounts: {A: {jetstream: {max_file: 1M}, users: [{user: a, password: a}]}}`, "a:a")
		try(t, nc, eventstore.Config{}, "jetstream-limit")
	})
	t.Run("denied", func(t *testing.T) {
		for subject, allowed := range map[string]string{
			"$JS.API.STREAM.INFO.ROLLCALL_EVENTS":   `publish: ["rollcall.>"]`,
			"$JS.API.STREAM.CREATE.ROLLCALL_EVENTS": `publish: {deny: ["$JS.API.STREAM.CREATE.>"]}`,
			"_INBOX.":                               `subscribe: ["rollcall.>"]`,
		} {
			nc := plain(t, jetStream+`accounts: {A: {jetstream: enabled, users: [{user: a, password: a, permissions: {`+allowed+`}}]}}`, "a:a")
			if why := try(t, nc, eventstore.Config{}, "nats-denied"); !strings.Contains(why, subject) {
				t.Errorf("%s: %s", allowed, why)
			}
		}
	})
}

// plain starts a plain NATS server on a configuration.
func plain(t *testing.T, config, user string) *nats.Conn {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(config, "%DIR%", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	opts.NoSigs, opts.NoLog = true, true
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server is not ready")
	}
	u, err := url.Parse(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	name, password, _ := strings.Cut(user, ":")
	nc, err := nats.Connect(u.String(), nats.UserInfo(name, password), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { natsdtest.Close(nc) })
	return nc
}

// Several machines that provision a cluster at the same time come to the same.
func TestProvisionClusterAtOnce(t *testing.T) {
	servers := natsdtest.Cluster(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	conns := make([]*nats.Conn, 3)
	for i, s := range servers {
		conns[i] = natsdtest.Connect(t, s)
		for range 2 {
			wg.Go(func() {
				if err := eventstore.Provision(ctx, conns[i], eventstore.Config{Replicas: 3}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	for _, nc := range conns {
		if got := plan(t, nc, eventstore.Config{Replicas: 3, EveryEpoch: true}); len(got) != 0 {
			t.Errorf("afterwards: %q", got)
		}
	}
	js, err := jetstream.New(conns[0])
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for name := range js.StreamNames(ctx).Name() {
		names = append(names, name)
	}
	if len(names) != len(eventstore.Streams(eventstore.Config{})) || !slices.Contains(names, eventstore.StreamInbox) {
		t.Errorf("streams are %q", names)
	}
}
