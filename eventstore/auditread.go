package eventstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/domain"
)

const (
	// auditBatch is how many commits are on the way at a time.
	auditBatch = 64
	// auditDisturbed is how often the consumer may be moved by somebody else
	// without our getting a single commit further.
	auditDisturbed = 20
)

// Read calls fn with every commit whose stream sequence is at least from and,
// unless until is 0, at most until, in the stream's order, up to the end as it
// was when the reading began. Hashes are the caller's to check: a commit that
// cannot be opened comes as Raw alone. What is no commit is passed over.
func (a *AuditLog) Read(ctx context.Context, from, until uint64, fn func(Recorded) error) error {
	r := &auditReading{AuditLog: a, next: max(from, 1), until: until, fn: fn}
	err := r.run(ctx)
	if errors.Is(err, errPassed) {
		return nil
	}
	return err
}

// errPassed ends a reading at its last sequence.
var errPassed = errors.New("the end of the reading")

// auditReading is one Read.
type auditReading struct {
	*AuditLog
	// next is the first sequence not yet read, left how many are to come.
	next, until, left uint64
	fn                func(Recorded) error
	// at is the consumer's own count of what it delivered since it was set back.
	at uint64
}

func (r *auditReading) run(ctx context.Context) error {
	begun, err := r.reset(ctx)
	if err != nil {
		return err
	}
	empty, wait := 0, newBackoff()
	for r.left = begun; r.left > 0; {
		n, err := r.pull(ctx)
		if err != nil && !errors.Is(err, errMoved) {
			return err
		}
		if n > 0 {
			empty, wait = 0, newBackoff()
		} else if empty++; empty > auditDisturbed {
			return domain.Refuse("audit-disturbed", "the log cannot be read as "+r.durable, "something else reads by the same consumer, or moves it",
				"wait until it is done; every auditor has a name, and one reader, of its own")
		}
		if err == nil && n > 0 {
			continue
		}
		if wait.sleep(ctx) != nil {
			return ctx.Err()
		}
		// Lost on the way, taken by somebody else, or not there at all.
		pending, err := r.reset(ctx)
		if err != nil {
			return err
		}
		r.left = min(r.left, pending)
	}
	return nil
}

// errMoved: the consumer does not stand where this reading left it.
var errMoved = errors.New("the consumer was moved")

// pull reads one batch, and tells how many commits it got further. What still
// comes of an earlier one, after the consumer was moved, comes to nobody: it
// bears the subject of the log, so only its inbox tells it apart.
func (r *auditReading) pull(ctx context.Context) (n int, err error) {
	want := int(min(r.left, auditBatch))
	body, err := json.Marshal(map[string]any{"batch": want, "no_wait": true})
	if err != nil {
		return 0, err
	}
	sub, err := r.nc.SubscribeSync(r.nc.NewInbox())
	if err == nil {
		defer func() { _ = sub.Unsubscribe() }() // gone with the connection otherwise
		err = r.nc.PublishRequest(r.subject("MSG.NEXT"), sub.Subject, body)
	}
	if err != nil && r.away() {
		return 0, errMoved
	}
	if err != nil {
		return 0, fmt.Errorf("read the log: %w", err)
	}
	for n < want {
		m, err := r.store.nextMsg(ctx, sub)
		switch {
		case errors.Is(err, nats.ErrTimeout):
			return n, errMoved
		case err != nil:
			return n, err
		case m.Header.Get("Status") != "" && len(m.Data) == 0 && !isDelivery(m.Reply):
			return n, nil // no more at the moment
		}
		moved, err := r.take(m)
		if moved {
			n++
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (r *auditReading) take(m *nats.Msg) (moved bool, err error) {
	seq, count, err := delivered(m.Reply)
	if err != nil {
		return false, err
	}
	if count != r.at+1 || seq < r.next {
		return false, errMoved
	}
	if r.until > 0 && seq > r.until {
		return false, errPassed
	}
	r.at, r.next, r.left = count, seq+1, r.left-1
	rec := Recorded{Seq: seq, Raw: m.Data, Header: m.Header}
	if rec.Key, err = ParseEventSubject(m.Subject); err != nil {
		return true, nil //nolint:nilerr // a stranger's message
	}
	rec.Commit, err = openCommit(stored{header: m.Header, data: m.Data})
	if errors.Is(err, domain.ErrNotCommit) {
		return true, nil
	}
	return true, r.fn(rec)
}

const ackPrefix = "$JS.ACK."

func isDelivery(reply string) bool { return strings.HasPrefix(reply, ackPrefix) }

// delivered reads the sequences from the subject by which a delivery would be
// acknowledged: stream, consumer, deliveries, sequence, consumer's count, ...
// A newer server may put domain and account before them.
func delivered(reply string) (seq, count uint64, err error) {
	t := strings.Split(strings.TrimPrefix(reply, ackPrefix), ".")
	if len(t) >= 9 {
		t = t[2:]
	}
	if !isDelivery(reply) || len(t) < 7 {
		return 0, 0, fmt.Errorf("read the log: %q is no delivery of a consumer", reply)
	}
	seq, err1 := strconv.ParseUint(t[3], 10, 64)
	count, err2 := strconv.ParseUint(t[4], 10, 64)
	return seq, count, errors.Join(err1, err2)
}

// reset sets the consumer back to where the reading goes on, and tells how many
// messages there are from there.
func (r *auditReading) reset(ctx context.Context) (pending uint64, err error) {
	body, err := json.Marshal(map[string]uint64{"seq": r.next})
	if err != nil {
		return 0, err
	}
	info, err := r.ask(ctx, "RESET", body)
	if err != nil {
		return 0, r.explain(err)
	}
	r.at = info.Delivered.Consumer
	return info.NumPending, nil
}
