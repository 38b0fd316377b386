package natsd_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/natsd"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
)

func TestMain(m *testing.M) { natsdtest.VerifyTestMain(m) }

// A fresh directory is ready at once: every test and every first run waits for it.
func TestReadyQuickly(t *testing.T) {
	best := time.Hour
	for range 5 {
		start := time.Now()
		s, err := natsd.Start(natsd.Config{Dir: filepath.Join(t.TempDir(), "a", "b"), Port: -1, SyncAlways: true})
		if err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(start))
		s.Shutdown()
	}
	t.Logf("ready in %v", best)
	if best > time.Second {
		t.Fatalf("ready in %v", best)
	}
}

func TestDirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	s := natsdtest.StartIn(t, dir)
	start := func() *domain.Refusal {
		t.Helper()
		_, err := natsd.Start(natsd.Config{Dir: dir, Port: -1})
		r, ok := errors.AsType[*domain.Refusal](err)
		if !ok || r.Code != "data-directory-in-use" || !strings.Contains(r.What, dir) || r.Try == "" {
			t.Fatalf("start on a directory in use: %v", err)
		}
		return r
	}
	start()
	if err := os.WriteFile(filepath.Join(dir, "node.pid"), []byte("4711\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := start(); !strings.Contains(r.Why, "4711") || !strings.Contains(r.Try, "kill 4711") {
		t.Fatalf("the refusal does not name the process: %v", r)
	}
	s.Shutdown()
	s.Shutdown()
	natsdtest.StartIn(t, dir)
}

// What failed to start leaves nothing behind.
func TestStartFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(natsd.StreamsDir(dir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if _, err := natsd.Start(natsd.Config{Dir: dir, Port: -1}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Fatalf("start where the streams cannot lie: %v", err)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Fatalf("it took %v to notice", d)
	}
	if err := os.Remove(natsd.StreamsDir(dir)); err != nil {
		t.Fatal(err)
	}
	natsdtest.StartIn(t, dir)
	if _, err := natsd.Start(natsd.Config{}); err == nil {
		t.Fatal("started without a directory")
	}
}

func TestTokenGuardsTheSocket(t *testing.T) {
	s := natsdtest.Start(t)
	nc, err := nats.Connect(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	natsdtest.Close(nc)
	if !strings.HasPrefix(s.URL, "nats://"+natsdtest.Token+"@127.0.0.1:") {
		t.Fatalf("URL %s", s.URL)
	}
	open := strings.Replace(s.URL, natsdtest.Token+"@", "", 1)
	if nc, err := nats.Connect(open); !errors.Is(err, nats.ErrAuthorization) {
		nc.Close()
		t.Fatalf("connect without the token: %v", err)
	}
}

func TestInProcessOnly(t *testing.T) {
	s, err := natsd.Start(natsd.Config{Dir: t.TempDir(), Token: natsdtest.Token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	if s.URL != "" {
		t.Fatalf("it listens on %s", s.URL)
	}
	nc := natsdtest.Connect(t, s)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.AccountInfo(t.Context()); err != nil {
		t.Fatalf("JetStream: %v", err)
	}
}

// The server's lines reach slog; its notices only at debug level.
func TestQuietLog(t *testing.T) {
	for level, wantAny := range map[slog.Level]bool{slog.LevelInfo: false, slog.LevelDebug: true} {
		var out strings.Builder
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level}))
		s, err := natsd.Start(natsd.Config{Dir: t.TempDir(), Port: -1, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		s.Shutdown()
		if got := strings.Contains(out.String(), "nats-server"); got != wantAny {
			t.Errorf("at level %v: %q", level, out.String())
		}
	}
}

// TestProvisionedStoreQuickly holds what the test helper promises.
func TestProvisionedStoreQuickly(t *testing.T) {
	best := time.Hour
	for range 5 {
		start := time.Now()
		t.Run("store", func(t *testing.T) {
			natsdtest.Store(t)
			best = min(best, time.Since(start))
		})
	}
	t.Logf("a provisioned store in %v", best)
	if best > 2*time.Second {
		t.Fatalf("a provisioned store took %v", best)
	}
}
