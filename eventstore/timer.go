package eventstore

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// ContentTypeProtobuf marks a Command in protobuf.
const ContentTypeProtobuf = "application/protobuf"

// CheckTimer reports whether a timer of that name can be armed.
func CheckTimer(key domain.Key, timer string) error {
	if !key.Valid() || !domain.ValidToken(timer) {
		return fmt.Errorf("timer %q of %s: lower-case letters, digits, '-' and '_', at most 64 of them", timer, key)
	}
	return nil
}

// TimerEnvelope is the message that a timer brings when it is due. Its command
// id is made of timer and due time, so that bringing it twice is harmless.
func TimerEnvelope(key domain.Key, timer string, due time.Time) (Envelope, error) {
	if err := CheckTimer(key, timer); err != nil {
		return Envelope{}, err
	}
	id := fmt.Sprintf("timer-%s-%d", timer, due.UnixNano())
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(&rollcallv1.Command{
		Id: id, Actor: domain.Framework,
		Kind: &rollcallv1.Command_FireTimer{FireTimer: &rollcallv1.FireTimer{Timer: timer, Due: timestamppb.New(due)}},
	})
	if err != nil {
		return Envelope{}, fmt.Errorf("arm timer %q of %s: %w", timer, key, err)
	}
	return Envelope{
		Key: key, To: ToCommand,
		Header: map[string]string{HeaderContentType: ContentTypeProtobuf, HeaderID: id},
		Data:   data,
	}, nil
}

// ArmTimer implements Timers: a scheduled message. The server's client cuts
// the time to seconds, so the headers are set by hand.
func (j *JetStream) ArmTimer(ctx context.Context, key domain.Key, timer string, due time.Time) error {
	e, err := TimerEnvelope(key, timer, due)
	if err != nil {
		return err
	}
	h := toHeader(e.Header)
	h.Set("Nats-Schedule", "@at "+due.UTC().Format(time.RFC3339Nano))
	h.Set("Nats-Schedule-Target", dueSubject(key, timer))
	h.Set("Nats-Schedule-TTL", dueTTL.String())
	err = persist(ctx, func() error {
		_, err := j.publish(ctx, &nats.Msg{Subject: timerSubject(key, timer), Header: h, Data: e.Data})
		return err
	})
	if err != nil {
		return fmt.Errorf("arm timer %q of %s: %w", timer, key, err)
	}
	return nil
}

// CancelTimer implements Timers.
func (j *JetStream) CancelTimer(ctx context.Context, key domain.Key, timer string) error {
	if err := CheckTimer(key, timer); err != nil {
		return err
	}
	if err := j.purge(ctx, StreamTimers, timerSubject(key, timer)); err != nil {
		return fmt.Errorf("cancel timer %q of %s: %w", timer, key, err)
	}
	return nil
}
