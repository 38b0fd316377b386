package natsd

import (
	"log/slog"
	"strings"
	"testing"
)

// A server that was told to stop warns of what comes of that, such as that its
// stores are closed: nobody has to do anything.
func TestWarningsOfAServerThatStops(t *testing.T) {
	var out strings.Builder
	l := &logger{log: slog.New(slog.NewTextHandler(&out, nil)), broken: make(chan string, 1)}
	l.Warnf("while it %s", "runs")
	l.stopping.Store(true)
	l.Warnf("while it %s", "stops")
	l.Errorf("an error as it %s", "stops")
	if got := out.String(); !strings.Contains(got, "while it runs") || strings.Contains(got, "while it stops") || !strings.Contains(got, "an error") {
		t.Error(got)
	}
}

// What is expected is no alarm; everything else is.
func TestExpectedLinesAreNoAlarm(t *testing.T) {
	var out strings.Builder
	l := &logger{log: slog.New(slog.NewTextHandler(&out, nil)), broken: make(chan string, 1)}
	l.Errorf("Error trying to connect to route (attempt %d): %s", 1, "connection refused")
	l.Warnf("Waiting for routing to be established...")
	l.Warnf("Filestore [%s] Recovering stream state from index errored: prior state file", "ROLLCALL_EVENTS")
	if got := out.String(); got != "" {
		t.Errorf("it says %s", got)
	}
	l.Errorf("Filestore [%s] Recovering stream state from index errored: %s", "ROLLCALL_EVENTS", "checksum")
	if !strings.Contains(out.String(), "checksum") {
		t.Error("a fault is kept back")
	}
}
