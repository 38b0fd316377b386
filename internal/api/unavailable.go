package api

import (
	"context"
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/domain"
)

// unavailable is the code of what failed because the servers have no leader at
// the moment, or cannot be reached: asking again helps.
const unavailable = "jetstream-unavailable"

const tryLater = "see that most of the NATS servers run and reach each other, and try again"

// passing recognises it.
func passing(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.Code == 503
	}
	for _, e := range []error{nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// reason says in a user's words why JetStream did not do what it was asked: the
// error itself speaks of subjects and contexts.
func reason(err error) string {
	if refused, ok := errors.AsType[*domain.Refusal](err); ok {
		return refused.What
	}
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return "the server says: " + strings.TrimPrefix(api.Description, "nats: ")
	}
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return "nobody takes it: the streams have no leader"
	case errors.Is(err, nats.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return "no answer came in time"
	}
	return "the connection to NATS is broken at the moment"
}

// unsent reports that a publish surely did not get through: nobody was there to
// take it, or it never left. Of all other failures nobody knows, an error
// that a server answers with included: others may have stored it before.
func unsent(err error) bool {
	for _, e := range []error{nats.ErrNoResponders, nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func outcomeUnknown(why string) error {
	return domain.Refuse("outcome-unknown", "it is not known whether the command was stored", why,
		"it may still be carried out: look with rollcall ls and rollcall show when NATS is back, before you ask again")
}

// inTime gives a step that ran out of its time while the request has more, or
// none, the words of servers that do not answer.
func inTime(what string, err error) error {
	if err != nil && (errors.Is(err, context.DeadlineExceeded) || passing(err)) {
		if _, refused := errors.AsType[*domain.Refusal](err); !refused {
			return domain.Refuse(unavailable, what, reason(err), tryLater)
		}
	}
	return err
}
