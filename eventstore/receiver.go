package eventstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// One pull: how long it waits, and how often the server says that it is still
// there.
const (
	pullExpires   = 15 * time.Second
	pullHeartbeat = 5 * time.Second
	// pullHeartbeatR3 is more often: a server that leads a consumer can be lost,
	// and the pull with it, while the connection to another one stands.
	pullHeartbeatR3 = 2 * time.Second
	// pullStalled is how long a pull that finds messages waiting may bring none.
	pullStalled = 5 * time.Second
)

// receiver pulls a partition's messages, one pull at a time. It does so itself
// because the client library takes a message without a body for a word of the
// server when it has a Status header, and anybody may publish one: here only
// what comes without an acknowledgement subject is the server's.
type receiver struct {
	j     *JetStream
	lease Lease
	sub   *nats.Subscription
	msgs  chan *nats.Msg
	// inbox is the prefix of the subjects on which the server speaks.
	inbox string
	// status tells of reconnects: a pull does not survive one.
	status chan nats.Status
	closed chan struct{}
	close  sync.Once
	// expires, heartbeat and stalled are the constants of those names.
	expires, heartbeat, stalled time.Duration

	// mu keeps Next to one at a time.
	mu sync.Mutex
	// left is how many messages the open pull may still bring.
	left  int
	pulls int
	lost  error
	// odd is how the consumer stood at odds, when it had messages that it did not
	// bring; nil when it had none.
	odd   *standing
	oddAt time.Time

	// count guards unsettled, the messages handed out and not acknowledged.
	count     sync.Mutex
	unsettled map[uint64]bool
}

func newReceiver(j *JetStream, l Lease) (*receiver, error) {
	r := &receiver{
		j: j, lease: l, inbox: j.nc.NewInbox() + ".",
		// Twice over: a pull believed to be lost may still answer.
		msgs: make(chan *nats.Msg, 4*batchMessages), closed: make(chan struct{}),
		unsettled: make(map[uint64]bool),
		expires:   pullExpires, heartbeat: pullHeartbeat, stalled: pullStalled,
	}
	if j.replicated {
		r.heartbeat = pullHeartbeatR3
	}
	var err error
	if r.sub, err = j.nc.ChanSubscribe(r.inbox+"*", r.msgs); err != nil {
		return nil, err
	}
	r.status = j.nc.StatusChanged(nats.CONNECTED)
	return r, nil
}

// Close implements Receiver.
func (r *receiver) Close() {
	r.close.Do(func() {
		_ = r.sub.Unsubscribe()
		r.j.nc.RemoveStatusListener(r.status)
		close(r.closed)
	})
}

// Next implements Receiver. Calls take turns.
func (r *receiver) Next(ctx context.Context) (Delivery, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for wait := newBackoff(); r.lost == nil; {
		d, err := r.step(ctx)
		switch {
		case d != nil:
			return d, nil
		case err == nil:
			wait = newBackoff()
			continue
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !passing(err):
			return nil, fmt.Errorf("receive partition %d: %w", r.lease.Partition, err)
		}
		// The pull is over, or nothing was heard of it.
		r.left = 0
		if err := r.check(ctx); err != nil && r.lost == nil && wait.sleep(ctx) != nil {
			return nil, ctx.Err()
		}
	}
	return nil, r.lost
}

// step waits for one message or word of the server. It returns a passing error
// when a new pull is needed and the consumer is to be looked at first.
func (r *receiver) step(ctx context.Context) (Delivery, error) {
	if r.left == 0 {
		if err := r.pull(); err != nil {
			return nil, err
		}
	}
	patience := 2*r.heartbeat + time.Second // without a sign of life the pull was lost
	if r.odd != nil {
		patience = time.Until(r.oddAt.Add(r.stalled))
	}
	silence := time.NewTimer(patience)
	defer silence.Stop()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.closed:
		r.lose("the receiver was closed")
		return nil, nil
	case <-silence.C:
		return nil, nats.ErrTimeout
	case <-r.status:
		return nil, nats.ErrTimeout
	case m := <-r.msgs:
		if m.Reply == "" {
			return nil, r.heard(m)
		}
		return r.deliver(ctx, m)
	}
}

func (r *receiver) pull() error {
	body, err := json.Marshal(map[string]any{
		"batch": batchMessages, "max_bytes": batchBytes,
		"expires": r.expires, "idle_heartbeat": min(r.heartbeat, r.expires/3),
	})
	if err != nil {
		return err
	}
	r.pulls++
	r.left = batchMessages
	subject := "$JS.API.CONSUMER.MSG.NEXT." + StreamInbox + "." + consumerName(r.lease)
	return r.j.nc.PublishRequest(subject, r.inbox+strconv.Itoa(r.pulls), body)
}

// heard takes a word of the server: a heartbeat, or the end of a pull and how
// many messages it will not bring. The others may still be on their way.
func (r *receiver) heard(m *nats.Msg) error {
	status, text := m.Header.Get("Status"), m.Header.Get("Description")
	if status == "409" && strings.Contains(text, "Consumer Deleted") {
		r.lose("its consumer was deleted")
		return nil
	}
	if status == "100" || m.Subject != r.inbox+strconv.Itoa(r.pulls) {
		return nil // or about an earlier pull
	}
	never, err := strconv.Atoi(m.Header.Get("Nats-Pending-Messages"))
	if err != nil {
		r.j.log.Debug("a pull failed", "partition", r.lease.Partition, "status", status, "text", text)
		return nats.ErrTimeout
	}
	r.left = max(r.left-never, 0)
	if status == "408" && r.left == 0 {
		return nats.ErrTimeout // an idle partition: time to look
	}
	return nil
}

func (r *receiver) lose(why string) {
	r.lost = fmt.Errorf("partition %d at epoch %d: %w: %s", r.lease.Partition, r.lease.Epoch, ErrPartitionLost, why)
}

// deliver hands a message out. One that names no conversation goes to the dead
// letters here: no owner could do anything else with it.
func (r *receiver) deliver(ctx context.Context, m *nats.Msg) (Delivery, error) {
	r.left = max(r.left-1, 0)
	r.odd = nil
	meta, err := m.Metadata()
	if err != nil {
		return nil, err
	}
	e, bad := parseCommand(m.Subject)
	e.Header, e.Data = fromHeader(m.Header), m.Data
	d := &delivery{r: r, reply: m.Reply, envelope: e, seq: meta.Sequence.Stream, time: meta.Timestamp}
	r.count.Lock()
	r.unsettled[d.seq] = true
	r.count.Unlock()
	if bad != nil {
		return nil, d.Dead(ctx, bad.Error())
	}
	return d, nil
}

func (r *receiver) settled(seq uint64) {
	r.count.Lock()
	defer r.count.Unlock()
	delete(r.unsettled, seq)
}
