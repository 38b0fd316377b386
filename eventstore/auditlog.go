package eventstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// AuditLog reads the log with an auditor's rights: by a durable consumer that
// is his own, which he may set back and pull from, and by direct gets of large
// bodies. It needs no node, writes nothing and starts no goroutine that
// outlives a call.
type AuditLog struct {
	nc      *nats.Conn
	api     string
	durable string
	tenant  string
	// store is what of the event store needs no right to write.
	store *JetStream
}

// auditPatience is how long a consumer may be without a leader.
const auditPatience = 10 * time.Second

// OpenAudit opens the log for an auditor. apis are the prefixes under which
// JetStream's API may be found, the first that answers is taken. The connection
// stays the caller's. Refusals are *domain.Refusal.
func OpenAudit(ctx context.Context, nc *nats.Conn, name string, apis ...string) (*AuditLog, error) {
	a := &AuditLog{nc: nc, durable: AuditDurable(name), store: &JetStream{nc: nc}}
	var err error
	for _, a.api = range apis {
		var info consumerState
		if info, err = a.ask(ctx, "INFO", nil); err == nil {
			return a.open(info)
		}
		if !errors.Is(err, nats.ErrNoResponders) && !errors.Is(err, nats.ErrPermissionViolation) {
			break
		}
	}
	return nil, a.explain(err)
}

func (a *AuditLog) open(info consumerState) (*AuditLog, error) {
	filter := info.Config.FilterSubject
	if t, ok := tokens(filter, prefixEvents); ok && t[0] == "*" && t[2] == "*" {
		a.tenant = t[1]
	}
	if filter != AuditFilter(a.tenant) || info.Config.AckPolicy != jetstream.AckNonePolicy {
		return nil, domain.Refuse("auditor-unprepared", "the log cannot be read as "+a.durable, "its consumer is not one that Rollcall prepares: it reads "+filter,
			"let the operator remove it and run rollcall node init --auditor NAME")
	}
	a.store.auditAPI = a.api
	return a, nil
}

// Tenant whose log alone can be read; empty: all.
func (a *AuditLog) Tenant() string { return a.tenant }

// Close ends what the reader holds on the connection.
func (a *AuditLog) Close() {
	for _, l := range a.store.listeners {
		a.store.drop(l)
	}
	a.store.listeners = nil
}

// consumerState is what the server tells of a consumer.
type consumerState struct {
	Config     jetstream.ConsumerConfig `json:"config"`
	NumPending uint64                   `json:"num_pending"`
	Delivered  struct {
		Consumer uint64 `json:"consumer_seq"`
	} `json:"delivered"`
	Error *jetstream.APIError `json:"error"`
}

func (a *AuditLog) subject(verb string) string {
	return a.api + ".CONSUMER." + verb + "." + StreamEvents + "." + a.durable
}

// ask asks about the own consumer, until somebody answers.
func (a *AuditLog) ask(ctx context.Context, verb string, body []byte) (info consumerState, err error) {
	watched, denied := watchDenied(ctx, a.nc)
	defer denied(nil)
	begun := time.Now()
	for wait := newBackoff(); ; {
		answer, err := a.store.request(watched, &nats.Msg{Subject: a.subject(verb), Data: body})
		if err == nil {
			if err = json.Unmarshal(answer.Data, &info); err == nil && info.Error != nil {
				err = info.Error
			}
		}
		again := err != nil && (passing(err) && !errors.Is(err, nats.ErrNoResponders) || a.away()) && time.Since(begun) < auditPatience
		if again && wait.sleep(watched) == nil {
			info = consumerState{}
			continue
		}
		if err != nil && watched.Err() != nil && ctx.Err() == nil {
			err = context.Cause(watched)
		}
		return info, err
	}
}

// away reports whether the server is gone and may come back.
func (a *AuditLog) away() bool { return !a.nc.IsConnected() && !a.nc.IsClosed() }

// explain gives what is in the way its code.
func (a *AuditLog) explain(err error) error {
	what := "the log cannot be read as " + a.durable
	switch {
	case err == nil, errors.Is(err, context.Canceled) && !errors.Is(err, nats.ErrPermissionViolation):
		return err
	case errors.Is(err, nats.ErrPermissionViolation):
		return domain.Refuse("nats-denied", what, "the server says: "+strings.TrimPrefix(err.Error(), "nats: "), "use that auditor's credentials, which rollcall auth init makes")
	case hasCode(err, codeNoConsumer, codeNoStream):
		return domain.Refuse("auditor-unprepared", what, "there is no such consumer on "+StreamEvents, "let the operator run rollcall node init --auditor "+strings.TrimPrefix(a.durable, AuditDurable("")))
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrJetStreamNotEnabled):
		return domain.Refuse("jetstream-missing", what, "nobody answers for JetStream here", "use the auditor's credentials, and a NATS that has JetStream")
	case passing(err), a.away():
		return domain.Refuse("jetstream-unavailable", what, "JetStream did not answer: its servers have no leader, or cannot reach each other",
			"see that most of the NATS servers run, and try again")
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Body reads a large body of a conversation, with its hash checked.
// Errors: ErrMissingBlob, domain.ErrHash.
func (a *AuditLog) Body(ctx context.Context, key domain.Key, b *rollcallv1.Blob) (data []byte, err error) {
	// Any replica answers, and one may lag.
	for wait, begun := newBackoff(), time.Now(); ; {
		data, err = a.store.GetBlob(ctx, key, b)
		if err == nil || !errors.Is(err, ErrMissingBlob) || time.Since(begun) > tryTimeout || wait.sleep(ctx) != nil {
			return data, err
		}
	}
}
