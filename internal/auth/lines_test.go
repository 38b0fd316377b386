package auth_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// lineLog collects what a server says.
type lineLog chan string

func (l lineLog) logger() *slog.Logger { return slog.New(handler{l}) }

// wait returns when a line has the text.
func (l lineLog) wait(t *testing.T, text string) {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case line := <-l:
			if strings.Contains(line, text) {
				return
			}
		case <-timeout:
			t.Fatalf("the server did not say %q", text)
		}
	}
}

type handler struct{ lines lineLog }

func (h handler) Enabled(context.Context, slog.Level) bool { return true }

func (h handler) Handle(_ context.Context, r slog.Record) error {
	select {
	case h.lines <- r.Message:
	default:
	}
	return nil
}
func (h handler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h handler) WithGroup(string) slog.Handler      { return h }
