package eventstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Headers of a commit on the log: readers that only filter need no protobuf.
const (
	// headerVersion is the commit's version. A message that carries it claims
	// to be a commit and fails closed when it is none.
	headerVersion = "Rollcall-Version"
	headerSchema  = "Rollcall-Schema"
	headerTypes   = "Rollcall-Types"
	headerNode    = "Rollcall-Node"
	headerEpoch   = "Rollcall-Epoch"
	// headerActor and headerCorrelation come from the Origin.
	headerActor       = "Rollcall-Actor"
	headerCorrelation = "Rollcall-Correlation"
	headerTrace       = "traceparent"

	headerExpect = "Nats-Expected-Last-Subject-Sequence"

	schema = "rollcall.v1"
)

// Origin says for the headers of a commit where it came from.
type Origin struct {
	// Actor asked: "operator", "framework" or a member id.
	Actor string
	// Correlation is the id of the command that began the causal chain.
	Correlation string
	// Traceparent is the W3C trace context.
	Traceparent string
}

type originKey struct{}

// WithOrigin gives the commits appended under ctx their origin.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// Append implements Log.
func (j *JetStream) Append(ctx context.Context, key domain.Key, after Position, c *rollcallv1.Commit) (Recorded, error) {
	raw, err := SealAfter(key, after, c)
	if err != nil {
		return Recorded{}, err
	}
	if err := ctx.Err(); err != nil {
		return Recorded{}, err
	}
	seq, err := j.append(ctx, EventSubject(key), after.Seq, raw, commitHeader(ctx, c))
	if err != nil {
		return Recorded{}, fmt.Errorf("append version %d to %s: %w", c.GetVersion(), key, err)
	}
	r := Recorded{Key: key, Seq: seq, Commit: c, Raw: raw}
	j.recent.add(r)
	return r, nil
}

// append publishes until the commit is stored, another one is, or ctx ends.
// Every repetition carries the same bytes and the same id.
func (j *JetStream) append(ctx context.Context, subject string, after uint64, raw []byte, header nats.Header) (uint64, error) {
	expect := after
	for wait := newBackoff(); ; {
		header.Set(headerExpect, strconv.FormatUint(expect, 10))
		ack, err := j.publish(ctx, &nats.Msg{Subject: subject, Header: header, Data: raw})
		switch {
		case err == nil && !ack.Duplicate:
			return ack.Sequence, nil
		case errors.Is(err, nats.ErrMaxPayload):
			return 0, fmt.Errorf("%w: %w", ErrTooLarge, err)
		case err == nil || hasCode(err, codeWrongLastSeq, codeWrongLastSeqR3, codeInflightMsgID):
			place, readErr := j.place(ctx, subject, after, raw)
			switch {
			case readErr != nil:
				err = readErr
			case place.ours != 0:
				return place.ours, nil
			case place.taken:
				return 0, ErrConflict
			case err == nil:
				// Acknowledged as a duplicate of something that is not here.
				return 0, fmt.Errorf("%w: its id was used before, for another commit", ErrUnknown)
			default:
				expect = place.last
			}
		case !passing(err) && ctx.Err() == nil:
			return 0, fmt.Errorf("%w: %w", ErrUnknown, err)
		}
		if wait.sleep(ctx) != nil {
			return 0, fmt.Errorf("%w: %w (last answer: %w)", ErrUnknown, ctx.Err(), err)
		}
	}
}

// place is what stands on a subject after a sequence.
type place struct {
	// ours is the sequence of the commit we asked for, 0 if it is not there.
	ours uint64
	// taken is set when another commit stands there, or when what we stood on
	// is gone.
	taken bool
	// last is the last sequence of the subject: that of a message that is no
	// commit, or the one we asked after.
	last uint64
}

// place asks the leader what followed. Nothing at all means that a conflicting
// append is still on its way through the replicas.
func (j *JetStream) place(ctx context.Context, subject string, after uint64, raw []byte) (place, error) {
	p := place{last: after}
	for {
		m, ok, err := j.leaderGet(ctx, StreamEvents, getRequest{Seq: p.last + 1, NextFor: subject})
		if err != nil {
			return p, err
		}
		if !ok {
			break
		}
		if bytes.Equal(m.data, raw) {
			p.ours = m.seq
			return p, nil
		}
		if _, err := openCommit(m); !errors.Is(err, domain.ErrNotCommit) {
			p.taken = true
			return p, nil
		}
		p.last = m.seq
	}
	if p.last == after && after > 0 {
		m, ok, err := j.leaderGet(ctx, StreamEvents, getRequest{LastFor: subject})
		if err != nil {
			return p, err
		}
		p.taken = !ok || m.seq < after
	}
	return p, nil
}

// openCommit unseals a message of the log. Only what does not claim to be a
// commit gives domain.ErrNotCommit: readers pass it over.
func openCommit(m stored) (*rollcallv1.Commit, error) {
	c, err := domain.Unseal(m.data)
	if errors.Is(err, domain.ErrNotCommit) && m.header.Get(headerVersion) != "" {
		return nil, fmt.Errorf("%w: not a sealed commit, though it says so", domain.ErrHash)
	}
	return c, err
}

func commitHeader(ctx context.Context, c *rollcallv1.Commit) nats.Header {
	o, _ := ctx.Value(originKey{}).(Origin)
	if o.Correlation == "" && len(c.GetCommandIds()) > 0 {
		o.Correlation = c.GetCommandIds()[0]
	}
	h := nats.Header{}
	for name, value := range map[string]string{
		HeaderMsgID:       c.GetId(),
		headerVersion:     strconv.FormatUint(c.GetVersion(), 10),
		headerSchema:      schema,
		headerTypes:       strings.Join(typesOf(c), ","),
		headerNode:        c.GetNode(),
		headerEpoch:       strconv.FormatUint(c.GetEpoch(), 10),
		headerActor:       o.Actor,
		headerCorrelation: o.Correlation,
		headerTrace:       o.Traceparent,
	} {
		if value != "" {
			h.Set(name, oneLine(value))
		}
	}
	return h
}

// typesOf names the kinds of events of a commit, each once, in order.
func typesOf(c *rollcallv1.Commit) []string {
	var names []string
	seen := make(map[string]bool)
	for _, e := range c.GetEvents() {
		m := e.ProtoReflect()
		field := m.WhichOneof(m.Descriptor().Oneofs().ByName("kind"))
		if field == nil {
			continue // a kind of a newer version
		}
		if name := string(field.Message().Name()); !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}
