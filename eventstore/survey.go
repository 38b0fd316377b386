package eventstore

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/domain"
)

// Holding is what the log's stream holds, by the server's own books.
type Holding struct {
	// Last is the last sequence that the stream gave; Gone counts those below it
	// that it does not hold. Nothing can be deleted from it, so each was lost.
	Last, Gone uint64
	// Newest is when the last message was stored, by the clock of then.
	Newest time.Time
	// Messages counts those of each conversation, strangers' among them.
	Messages map[domain.Key]uint64
}

// Survey counts what the log holds without reading it.
func (j *JetStream) Survey(ctx context.Context) (Holding, error) {
	s, err := j.js.Stream(ctx, StreamEvents)
	if err != nil {
		return Holding{}, fmt.Errorf("survey the log: %w", err)
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(prefixEvents+">"))
	if err != nil {
		return Holding{}, fmt.Errorf("survey the log: %w", err)
	}
	h := Holding{Last: info.State.LastSeq, Newest: info.State.LastTime, Messages: map[domain.Key]uint64{}}
	h.Gone = h.Last - min(h.Last, info.State.Msgs)
	for subject, n := range info.State.Subjects {
		if key, err := ParseEventSubject(subject); err == nil {
			h.Messages[key] = n
		}
	}
	return h, nil
}
