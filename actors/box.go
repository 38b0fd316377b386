package actors

import (
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
)

// box is what a conversation must not lose when its actor crashes: commands
// not yet durable, and inbox messages not yet acknowledged. Only the
// conversation's actor touches it after it was made.
type box struct {
	key domain.Key
	// queue holds commands in order; the first ones may be in an append.
	queue []*item
	// held are deliveries covered by the log but not acknowledged. The newest
	// is the anchor while work is due.
	held []eventstore.Delivery
	// seen counts messages from the partition.
	seen uint64
	// crashes since the last durable commit.
	crashes int
	// quarantine is why the conversation is set aside, if it is.
	quarantine error
}

// maxCrashes in a row set a conversation aside.
const maxCrashes = 3

// cover notes that the log covers a delivery.
func (b *box) cover(d eventstore.Delivery) {
	if d != nil {
		b.held = append(b.held, d)
	}
}

// release returns the deliveries that may be acknowledged: all of them when
// nothing is due, otherwise all but the newest, the highest in the stream.
func (b *box) release(due bool) []eventstore.Delivery {
	if len(b.held) == 0 {
		return nil
	}
	if !due {
		out := b.held
		b.held = nil
		return out
	}
	newest := 0
	for i, d := range b.held {
		if d.Seq() > b.held[newest].Seq() {
			newest = i
		}
	}
	anchor := b.held[newest]
	out := append(b.held[:newest:newest], b.held[newest+1:]...)
	b.held = []eventstore.Delivery{anchor}
	return out
}

// resuming are the runs that a queued command takes up.
func (b *box) resuming() map[string]bool {
	runs := map[string]bool{}
	for _, it := range b.queue {
		if r := it.command.GetResumeRun(); r != nil && !r.GetWaited() {
			runs[r.GetRun()] = true
		}
	}
	return runs
}

// front puts items before all others.
func (b *box) front(items ...*item) {
	b.queue = append(append(make([]*item, 0, len(items)+len(b.queue)), items...), b.queue...)
}
