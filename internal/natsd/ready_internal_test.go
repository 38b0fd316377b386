package natsd

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// On a slow machine the server has not begun to run when it is first looked at.
func TestReadyWaitsForASlowStart(t *testing.T) {
	inner, err := server.NewServer(options(Config{Dir: t.TempDir(), Port: -1}))
	if err != nil {
		t.Fatal(err)
	}
	log := &logger{fatal: make(chan string, 1)}
	inner.SetLoggerV2(log, false, false, false)
	started := make(chan struct{})
	time.AfterFunc(300*time.Millisecond, func() {
		defer close(started)
		inner.Start()
	})
	if err := ready(inner, log, started); err != nil {
		t.Error(err)
	}
	<-started
	inner.Shutdown()
	inner.WaitForShutdown()
	if err := ready(inner, log, started); err == nil {
		t.Error("a server that stopped is ready")
	}
}

// What is said of sync: interval everywhere is "the last seconds": the server's
// own default would be two minutes.
func TestIntervalIsSeconds(t *testing.T) {
	for cfg, want := range map[Config]time.Duration{{}: defaultSync, {SyncInterval: time.Minute}: time.Minute} {
		if got := options(cfg).SyncInterval; got != want || defaultSync > 5*time.Second {
			t.Errorf("%+v syncs every %v, want %v", cfg, got, want)
		}
	}
}
