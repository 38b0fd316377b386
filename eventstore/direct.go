package eventstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// Bounds of one batch: what the connection holds at a time.
const (
	batchMessages = 256
	batchBytes    = 4 << 20
)

// directGet reads messages from any replica: those of q.NextFor from q.Seq on,
// at most a batch of them. It returns how many there were; a replica that lags
// may have fewer than the leader. There is no consumer behind it.
func (j *JetStream) directGet(ctx context.Context, stream string, q getRequest, fn func(stored) error) (int, error) {
	n, _, err := j.directBatch(ctx, stream, q, fn)
	return n, err
}

// directBatch is directGet; it also tells how many messages there are behind
// the batch.
func (j *JetStream) directBatch(ctx context.Context, stream string, q getRequest, fn func(stored) error) (n int, more uint64, err error) {
	q.MaxBytes = batchBytes
	body, err := json.Marshal(q)
	if err != nil {
		return 0, 0, err
	}
	l, err := j.listen()
	if err != nil {
		return 0, 0, err
	}
	reply := l.reply()
	if err := j.nc.PublishRequest(cmp.Or(j.auditAPI, "$JS.API")+".DIRECT.GET."+stream, reply, body); err != nil {
		j.drop(l)
		return 0, 0, err
	}
	for {
		m, err := j.nextMsg(ctx, l.sub)
		if err != nil {
			j.drop(l)
			return n, 0, fmt.Errorf("read from %s: %w", stream, err)
		}
		if m.Subject != reply {
			continue
		}
		s, end, err := parseDirect(m)
		if end {
			j.keep(l)
			if pending := m.Header.Get("Nats-Num-Pending"); pending != "" && err == nil {
				more, err = strconv.ParseUint(pending, 10, 64)
			}
			return n, more, err
		}
		n++
		if err == nil {
			err = fn(s)
		}
		if err != nil {
			j.drop(l) // the rest of the batch is still coming
			return n, 0, err
		}
	}
}

// listener is a subscription for answers, kept for the next request: making
// one costs the server more than the answer.
type listener struct {
	sub   *nats.Subscription
	inbox string
	asked int
}

// reply is a subject of the listener that no earlier answer came by.
func (l *listener) reply() string {
	l.asked++
	return l.inbox + strconv.Itoa(l.asked)
}

// maxListeners is how many are kept while nobody asks.
const maxListeners = 16

func (j *JetStream) listen() (*listener, error) {
	j.mu.Lock()
	if n := len(j.listeners); n > 0 {
		l := j.listeners[n-1]
		j.listeners = j.listeners[:n-1]
		j.mu.Unlock()
		return l, nil
	}
	j.mu.Unlock()
	l := &listener{inbox: j.nc.NewInbox() + "."}
	var err error
	l.sub, err = j.nc.SubscribeSync(l.inbox + "*")
	return l, err
}

func (j *JetStream) keep(l *listener) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.listeners) < maxListeners {
		j.listeners = append(j.listeners, l)
		return
	}
	j.drop(l)
}

func (j *JetStream) drop(l *listener) { _ = l.sub.Unsubscribe() }

// nextMsg waits for a message, at most tryTimeout.
func (j *JetStream) nextMsg(ctx context.Context, sub *nats.Subscription) (*nats.Msg, error) {
	try, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	m, err := sub.NextMsgWithContext(try)
	if err != nil && ctx.Err() == nil && try.Err() != nil {
		err = nats.ErrTimeout
	}
	return m, err
}

// parseDirect reads one answer of a direct get. end is set by the one that
// says that there is no more. The server appends its headers behind those of
// the message, so the last one of a name is the server's.
func parseDirect(m *nats.Msg) (s stored, end bool, err error) {
	seq := lastHeader(m.Header, "Nats-Sequence")
	if seq == "" {
		switch status := m.Header.Get("Status"); status {
		case "204", "404":
			return stored{}, true, nil
		case "503":
			return stored{}, true, nats.ErrNoResponders
		default:
			return stored{}, true, fmt.Errorf("direct get: status %s %s", status, m.Header.Get("Description"))
		}
	}
	s = stored{subject: lastHeader(m.Header, "Nats-Subject"), header: m.Header, data: m.Data}
	if s.seq, err = strconv.ParseUint(seq, 10, 64); err != nil {
		return stored{}, true, fmt.Errorf("direct get: sequence %q: %w", seq, err)
	}
	if s.time, err = time.Parse(time.RFC3339Nano, lastHeader(m.Header, "Nats-Time-Stamp")); err != nil {
		return stored{}, true, fmt.Errorf("direct get: %w", err)
	}
	return s, false, nil
}

// directHeaders are what a direct get adds to a message's own headers.
var directHeaders = []string{"Nats-Stream", "Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp", "Nats-Num-Pending", "Nats-Last-Sequence", "Nats-UpTo-Sequence"}

// OwnHeaders are the headers of a message without those that the server adds
// to a direct get.
func OwnHeaders(h map[string][]string) map[string][]string {
	own := maps.Clone(h)
	for _, name := range directHeaders {
		delete(own, name)
	}
	return own
}

func lastHeader(h nats.Header, name string) string {
	v := h.Values(name)
	if len(v) == 0 {
		return ""
	}
	return v[len(v)-1]
}
