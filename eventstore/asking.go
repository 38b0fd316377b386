package eventstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/domain"
)

const (
	// askPatience is how long JetStream may be without a leader while it is
	// looked at: servers that have just started elect one.
	askPatience = 30 * time.Second
	// emptyPatience is how long nobody at all may answer.
	emptyPatience = 3 * time.Second
	// makeTimeout bounds making or changing a stream: its replicas elect a leader.
	makeTimeout = 15 * time.Second
)

// asking runs calls of JetStream's API until they are answered, and says in our
// words why they are not. They must do no harm when they are repeated.
func asking(ctx context.Context, nc *nats.Conn, calls func(context.Context, jetstream.JetStream) error) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	watched, denied := watchDenied(ctx, nc)
	defer denied(nil)
	begun := time.Now()
	for wait := newBackoff(); ; {
		err = calls(watched, js)
		switch {
		case err == nil:
			return nil
		case watched.Err() != nil && ctx.Err() == nil:
			err = context.Cause(watched)
		case ctx.Err() != nil:
		case waitsFor(err, time.Since(begun)) && wait.sleep(watched) == nil:
			continue
		case watched.Err() != nil && ctx.Err() == nil:
			err = context.Cause(watched)
		}
		return explain(err)
	}
}

// waitsFor reports whether a later attempt may fare better.
func waitsFor(err error, waited time.Duration) bool {
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrJetStreamNotEnabled) && !hasCode(err, codeNotEnabled, codeNotForAccount):
		return waited < emptyPatience
	case hasCode(err, codeNotAvailable, codeNoLeader), errors.Is(err, nats.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return waited < askPatience
	}
	return false
}

// watchDenied ends the context when the server tells the connection that it
// may not do something: the call itself is never answered.
func watchDenied(ctx context.Context, nc *nats.Conn) (context.Context, context.CancelCauseFunc) {
	before := nc.LastError()
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := nc.LastError(); errors.Is(err, nats.ErrPermissionViolation) && err != before { //nolint:errorlint // another one, not of another kind
					end(err)
				}
			}
		}
	}()
	return ctx, end
}

// explain gives what is in the way its code.
func explain(err error) error {
	const what = "cannot look at or set up the streams of this NATS server"
	if _, refused := errors.AsType[*domain.Refusal](err); refused || errors.Is(err, context.Canceled) && !errors.Is(err, nats.ErrPermissionViolation) {
		return err
	}
	api, _ := errors.AsType[*jetstream.APIError](err)
	switch {
	case errors.Is(err, nats.ErrPermissionViolation):
		return domain.Refuse("nats-denied", what, "the server says: "+strings.TrimPrefix(err.Error(), "nats: "),
			"use the credentials of a node, which rollcall auth init makes, or allow this user the subjects that docs/cluster.md lists")
	case hasCode(err, codeNotForAccount):
		return domain.Refuse("jetstream-missing", what, "JetStream is not enabled for the account of this user", "enable it for the account, or use another one's credentials")
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, nats.ErrNoResponders), hasCode(err, codeNotEnabled):
		return domain.Refuse("jetstream-missing", what, "nobody answers for JetStream: it is not enabled on this server", "start nats-server with -js, or name another server with NATS_URL")
	case hasCode(err, codeNotAvailable, codeNoLeader), errors.Is(err, nats.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return domain.Refuse("jetstream-unavailable", what, "JetStream did not answer: its servers have no leader, or cannot reach each other",
			"see that most of the NATS servers run (nats server report jetstream), and try again")
	case hasCode(err, codeOverlap):
		return foreignStream("another stream listens on subjects of ours", "nats stream ls shows which; give it other subjects, or Rollcall an account of its own")
	case hasCode(err, codeReplicasAlone, codeNoPeers):
		return tooManyReplicas("too few servers have JetStream and room: " + api.Description)
	case hasCode(err, codeMaxStreams, codeResources, codeNoResources, codeStorage, codeMaxStreamBytes, codeNoTier, codeConsumersOfStream):
		return domain.Refuse("jetstream-limit", what, "a limit of the account or the server is too low: "+api.Description,
			"Rollcall has 7 streams, and reserves 1.25 GiB for its inbox and its dead letters, times the replicas: raise the limit")
	}
	return fmt.Errorf("provision: %w", err)
}

// within bounds one call.
func within(ctx context.Context, limit time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return call(ctx)
}

func stream(ctx context.Context, js jetstream.JetStream, name string) (s jetstream.Stream, err error) {
	err = within(ctx, tryTimeout, func(ctx context.Context) (err error) { s, err = js.Stream(ctx, name); return err })
	return s, err
}
