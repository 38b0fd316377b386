package actors

import (
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// backoff restarts a crashed child after a delay that doubles from first to
// last and starts again after a quiet time. It never gives up: what must not
// be tried for ever (a conversation that cannot be loaded) is quarantined by
// the actor itself.
type backoff struct {
	first, last, quiet time.Duration
	log                *slog.Logger
}

var _ actor.SupervisorStrategy = backoff{}

func supervisor(log *slog.Logger) actor.PropsOption {
	return actor.WithSupervisor(backoff{first: 20 * time.Millisecond, last: 10 * time.Second, quiet: time.Minute, log: log})
}

func (b backoff) HandleFailure(_ *actor.ActorSystem, sup actor.Supervisor, child *actor.PID, rs *actor.RestartStatistics, reason, _ any) {
	if rs.NumberOfFailures(b.quiet) == 0 {
		rs.Reset()
	}
	rs.Fail()
	delay := min(b.first<<min(rs.FailureCount()-1, 16), b.last)
	b.log.Error("actor crashed; restarting it from the log", "actor", child.GetId(), "reason", reason, "after", delay)
	time.AfterFunc(delay, func() { sup.RestartChildren(child) })
}
