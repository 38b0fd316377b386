package eventstore

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The store speaks JetStream's API itself where it must know more than the
// client library tells: who answered (only a leader answers STREAM.MSG.GET, any
// replica answers DIRECT.GET), and exactly when something was sent again.

// tryTimeout bounds one request; whoever may repeats it.
const tryTimeout = 3 * time.Second

// request sends one request and waits for its answer, at most tryTimeout.
func (j *JetStream) request(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	try, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	answer, err := j.nc.RequestMsgWithContext(try, m)
	if err != nil && ctx.Err() == nil && try.Err() != nil {
		err = nats.ErrTimeout
	}
	return answer, err
}

// publish stores one message and waits for the acknowledgement. It never
// repeats by itself.
func (j *JetStream) publish(ctx context.Context, m *nats.Msg) (*jetstream.PubAck, error) {
	answer, err := j.request(ctx, m)
	if err != nil {
		return nil, err
	}
	var ack struct {
		jetstream.PubAck
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return nil, fmt.Errorf("acknowledgement %q: %w", answer.Data, err)
	}
	if ack.Error != nil {
		return nil, ack.Error
	}
	if ack.Sequence == 0 {
		return nil, fmt.Errorf("acknowledgement %q is none", answer.Data)
	}
	return &ack.PubAck, nil
}

// stored is a message as a stream holds it.
type stored struct {
	subject string
	seq     uint64
	time    time.Time
	header  nats.Header
	data    []byte
}

type getRequest struct {
	Seq     uint64 `json:"seq,omitempty"`
	LastFor string `json:"last_by_subj,omitempty"`
	NextFor string `json:"next_by_subj,omitempty"`
	// LastForAll asks for the last message of each matching subject.
	LastForAll []string `json:"multi_last,omitempty"`
	Batch      int      `json:"batch,omitempty"`
	MaxBytes   int      `json:"max_bytes,omitempty"`
}

// leaderGet reads one message from the stream's leader. It reports false when
// there is none.
func (j *JetStream) leaderGet(ctx context.Context, stream string, q getRequest) (stored, bool, error) {
	if j.auditAPI != "" {
		return stored{}, false, nil
	}
	body, err := json.Marshal(q)
	if err != nil {
		return stored{}, false, err
	}
	answer, err := j.request(ctx, &nats.Msg{Subject: "$JS.API.STREAM.MSG.GET." + stream, Data: body})
	if err != nil {
		return stored{}, false, fmt.Errorf("read from the leader of %s: %w", stream, err)
	}
	var got struct {
		Message *struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &got); err != nil {
		return stored{}, false, fmt.Errorf("read from the leader of %s: %w", stream, err)
	}
	switch {
	case got.Error != nil && got.Error.ErrorCode == codeNoMessage:
		return stored{}, false, nil
	case got.Error != nil:
		return stored{}, false, fmt.Errorf("read from the leader of %s: %w", stream, got.Error)
	case got.Message == nil:
		return stored{}, false, fmt.Errorf("read from the leader of %s: empty answer", stream)
	}
	m := got.Message
	s := stored{subject: m.Subject, seq: m.Seq, time: m.Time, data: m.Data}
	if len(m.Header) > 0 {
		if s.header, err = nats.DecodeHeadersMsg(m.Header); err != nil {
			return stored{}, false, fmt.Errorf("read from the leader of %s: message %d: %w", stream, m.Seq, err)
		}
	}
	return s, true, nil
}

// persist repeats a step while its error is passing, until ctx ends.
func persist(ctx context.Context, step func() error) error {
	for wait := newBackoff(); ; {
		err := step()
		if err == nil || !passing(err) || ctx.Err() != nil {
			return err
		}
		if wait.sleep(ctx) != nil {
			return err
		}
	}
}

// backoff grows from 10 ms to a second, with jitter.
type backoff struct{ next time.Duration }

func newBackoff() *backoff { return &backoff{10 * time.Millisecond} }

func (b *backoff) sleep(ctx context.Context) error {
	t := time.NewTimer(b.next/2 + rand.N(b.next))
	defer t.Stop()
	b.next = min(b.next*2, time.Second)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// oneLine makes a text fit for a header.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return strings.ToValidUTF8(s[:min(len(s), 4096)], "")
}
