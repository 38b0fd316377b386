package eventstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// HeaderReason says on a dead letter why it could never succeed.
const HeaderReason = "Rollcall-Reason"

// headerInboxSeq is where the dead letter stood in the inbox.
const headerInboxSeq = "Rollcall-Inbox-Seq"

// Publish implements Inbox. It does not repeat what may have been stored: the
// publisher's Rollcall-Id makes that harmless, and only the publisher knows it.
func (j *JetStream) Publish(ctx context.Context, e Envelope) (seq uint64, duplicate bool, err error) {
	if err := e.Check(); err != nil {
		return 0, false, err
	}
	m := &nats.Msg{Subject: InboxSubject(e.Key, e.To), Header: toHeader(e.Header), Data: e.Data}
	var ack *jetstream.PubAck
	for wait := newBackoff(); ; {
		ack, err = j.publish(ctx, m)
		// Nobody answered: nobody stored it either.
		if !errors.Is(err, nats.ErrNoResponders) || wait.sleep(ctx) != nil {
			break
		}
	}
	switch {
	case err == nil:
		return ack.Sequence, ack.Duplicate, nil
	case full(err):
		err = fmt.Errorf("%w: %w", ErrInboxFull, err)
	case hasCode(err, codeTooLarge), errors.Is(err, nats.ErrMaxPayload):
		err = fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	return 0, false, fmt.Errorf("publish to %s.%s: %w", e.Key, e.To, err)
}

// full recognises a stream at its limit; the server has one code for all that
// its store refuses.
func full(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && strings.Contains(api.Description, "maximum bytes exceeded")
}

// DeadLetters implements Inbox: the newest first.
func (j *JetStream) DeadLetters(ctx context.Context, limit int) ([]DeadLetter, error) {
	s, err := j.js.Stream(ctx, StreamDead)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	state := s.CachedInfo().State
	var all []DeadLetter
	next := max(state.FirstSeq, state.LastSeq-min(state.LastSeq, uint64(limit))+1)
	for next <= state.LastSeq {
		n, err := j.directGet(ctx, StreamDead, getRequest{Seq: next, NextFor: prefixDead + ">", Batch: batchMessages}, func(m stored) error {
			next = m.seq + 1
			e, _ := parseDead(m.subject)
			e.Header, e.Data = fromHeader(m.header), m.data
			reason := e.Header[HeaderReason]
			delete(e.Header, HeaderReason)
			delete(e.Header, headerInboxSeq)
			all = append([]DeadLetter{{Envelope: e, Reason: reason, Time: m.time}}, all...)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list dead letters: %w", err)
		}
		if n == 0 {
			break
		}
	}
	return all, nil
}

// bury stores a dead letter. Its id is its place in the inbox, so that a
// repetition is dropped.
func (j *JetStream) bury(ctx context.Context, e Envelope, seq uint64, reason string) error {
	h := toHeader(e.Header)
	h.Set(HeaderMsgID, "dead-"+strconv.FormatUint(seq, 10))
	h.Set(HeaderReason, oneLine(reason))
	h.Set(headerInboxSeq, strconv.FormatUint(seq, 10))
	return persist(ctx, func() error {
		_, err := j.publish(ctx, &nats.Msg{Subject: deadSubject(e), Header: h, Data: e.Data})
		return err
	})
}

func toHeader(h map[string]string) nats.Header {
	out := make(nats.Header, len(h))
	for k, v := range h {
		out.Set(k, v)
	}
	return out
}

// fromHeader keeps what the publisher set: the server's own headers are not
// part of the envelope.
func fromHeader(h nats.Header) map[string]string {
	out := make(map[string]string, len(h))
	for k, v := range h {
		if len(v) > 0 && (k == HeaderMsgID || !strings.HasPrefix(k, "Nats-")) {
			out[k] = v[0]
		}
	}
	return out
}

// purge removes the messages of one subject.
func (j *JetStream) purge(ctx context.Context, stream, subject string) error {
	body, err := json.Marshal(map[string]string{"filter": subject})
	if err != nil {
		return err
	}
	return persist(ctx, func() error {
		answer, err := j.request(ctx, &nats.Msg{Subject: "$JS.API.STREAM.PURGE." + stream, Data: body})
		if err != nil {
			return err
		}
		var got struct {
			Error *jetstream.APIError `json:"error"`
		}
		if err := json.Unmarshal(answer.Data, &got); err != nil {
			return err
		}
		if got.Error != nil {
			return got.Error
		}
		return nil
	})
}
