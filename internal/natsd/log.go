package natsd

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
)

// logger turns the server's lines into slog records. What the server calls a
// notice is debug to a user of Rollcall.
type logger struct {
	log *slog.Logger
	// fatal holds the first line after which the server gives up.
	fatal chan string
	// broken holds the first line after which a stream stores nothing any more.
	broken chan string
	// stopping: the server was told to stop. What it then warns of, such as that a
	// store is closed, comes of that.
	stopping atomic.Bool
}

func (l *logger) at(emit func(*slog.Logger, string), format string, v []any) {
	if l.log != nil {
		emit(l.log.With("from", "nats-server"), fmt.Sprintf(format, v...))
	}
}

func debug(l *slog.Logger, s string) { l.Debug(s) }
func warn(l *slog.Logger, s string)  { l.Warn(s) }
func fail(l *slog.Logger, s string)  { l.Error(s) }

func (l *logger) Noticef(format string, v ...any) { l.at(debug, format, v) }
func (l *logger) Debugf(format string, v ...any)  { l.at(debug, format, v) }
func (l *logger) Tracef(format string, v ...any)  { l.at(debug, format, v) }

// expected are lines that the server prints as warnings or errors while all goes
// as it must: others are still to come, which the node says in one line of its
// own, or files are read again after a kill.
var expected = []string{
	"Error trying to connect to route",
	"Waiting for routing to be established",
	"Recovering stream state from index errored: prior state file",
}

func isExpected(line string) bool {
	return slices.ContainsFunc(expected, func(part string) bool { return strings.Contains(line, part) })
}

func (l *logger) Warnf(format string, v ...any) {
	if l.stopping.Load() || isExpected(fmt.Sprintf(format, v...)) {
		l.at(debug, format, v)
		return
	}
	l.at(warn, format, v)
}

func (l *logger) Errorf(format string, v ...any) {
	emit := fail
	if isExpected(fmt.Sprintf(format, v...)) {
		emit = debug
	}
	l.at(emit, format, v)
	if line := fmt.Sprintf(format, v...); stopsStoring(line) {
		select {
		case l.broken <- line:
		default:
		}
	}
}

// stopsStoring reports a line by which the server says that it will write
// nothing any more until it is started again, to one stream or to all.
func stopsStoring(line string) bool {
	return strings.Contains(line, "ritical write error") ||
		strings.Contains(line, "JetStream") && (strings.Contains(line, "DISABLED") || strings.Contains(line, "disabling"))
}

func (l *logger) Fatalf(format string, v ...any) {
	l.at(fail, format, v)
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}
