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
