package eventstore

import (
	"fmt"
	"time"

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
