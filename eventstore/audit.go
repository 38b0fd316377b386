package eventstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/domain"
)

// AuditDurable is the consumer of the log by which an auditor reads.
func AuditDurable(name string) string { return "audit-" + name }

// AuditFilter is what an auditor reads: the log of a tenant, or of all.
func AuditFilter(tenant string) string {
	if tenant == "" {
		return prefixEvents + ">"
	}
	return prefixEvents + "*." + tenant + ".*"
}

// auditConsumer acknowledges nothing, so nothing that an auditor does or leaves
// undone is ever waited for, and he may begin anew as often as he likes.
func auditConsumer(name, tenant string) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       AuditDurable(name),
		Description:   "An auditor of Rollcall reads by it",
		FilterSubject: AuditFilter(tenant),
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckNonePolicy,
		MaxDeliver:    -1,
	}
}

// auditor is the consumer of an auditor that can be.
func auditor(name, tenant string) (jetstream.ConsumerConfig, error) {
	if !domain.ValidToken(AuditDurable(name)) || name == "" || tenant != "" && !domain.ValidToken(tenant) {
		return jetstream.ConsumerConfig{}, domain.Refuse("auditor-invalid", fmt.Sprintf("%q is no name of an auditor", name),
			"it is at most 58 of a-z, 0-9, '-' and '_', and so is a tenant", "use a name such as alice, or alice=main for one tenant")
	}
	return auditConsumer(name, tenant), nil
}

// PlanAuditor tells what PrepareAuditor would make; false when it is there. It
// refuses what that refuses, but for a log that is not there yet.
func PlanAuditor(ctx context.Context, nc *nats.Conn, name, tenant string) (c Change, missing bool, err error) {
	want, err := auditor(name, tenant)
	if err != nil {
		return c, false, err
	}
	c = Change{Stream: StreamEvents, Setting: "consumer " + want.Durable, To: want.FilterSubject}
	err = asking(ctx, nc, func(ctx context.Context, js jetstream.JetStream) error {
		return within(ctx, tryTimeout, func(ctx context.Context) error {
			have, err := js.Consumer(ctx, StreamEvents, want.Durable)
			if missing = errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound); missing {
				return nil
			}
			if err != nil {
				return err
			}
			return sameAuditor(name, want, have)
		})
	})
	return c, missing, err
}

// PrepareAuditor makes the durable consumer by which an auditor reads the log,
// of one tenant or, with none, of all: nobody who reads may make one. It may be
// repeated. made is false when the consumer was there.
func PrepareAuditor(ctx context.Context, nc *nats.Conn, name, tenant string) (made bool, err error) {
	want, err := auditor(name, tenant)
	if err != nil {
		return false, err
	}
	err = asking(ctx, nc, func(ctx context.Context, js jetstream.JetStream) error {
		return within(ctx, makeTimeout, func(ctx context.Context) error {
			c, err := js.Consumer(ctx, StreamEvents, want.Durable)
			if errors.Is(err, jetstream.ErrConsumerNotFound) {
				if c, err = js.CreateConsumer(ctx, StreamEvents, want); err == nil {
					made = true
				} else if errors.Is(err, jetstream.ErrConsumerExists) { // another was faster, with something else
					c, err = js.Consumer(ctx, StreamEvents, want.Durable)
				}
			}
			if errors.Is(err, jetstream.ErrStreamNotFound) {
				return domain.Refuse("installation-missing", "an auditor cannot be prepared", "stream "+StreamEvents+" does not exist", "run rollcall node init first")
			}
			if err != nil {
				return fmt.Errorf("prepare auditor %s: %w", name, err)
			}
			return sameAuditor(name, want, c)
		})
	})
	return made, err
}

// sameAuditor refuses a consumer of that name which reads something else.
func sameAuditor(name string, want jetstream.ConsumerConfig, c jetstream.Consumer) error {
	have := c.CachedInfo().Config
	if have.FilterSubject == want.FilterSubject && have.AckPolicy == want.AckPolicy {
		return nil
	}
	return domain.Refuse("auditor-exists", "auditor "+name+" reads something else",
		fmt.Sprintf("consumer %s is there for %s, not for %s", want.Durable, have.FilterSubject, want.FilterSubject),
		"choose another name, or remove the consumer: nats consumer rm "+StreamEvents+" "+want.Durable)
}
