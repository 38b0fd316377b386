package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
)

// behind tells whether the read models show what the log holds.
func (d *doctor) behind(ctx context.Context) api.Check {
	c := api.Check{Name: "read models", Level: api.OK}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	last, err := d.store.LastSeq(ctx)
	if err == nil {
		err = d.views.CatchUp(ctx, last)
	}
	if err != nil {
		c.Level, c.Found = api.Fail, "behind the log: ls and show tell the past ("+err.Error()+")"
		c.Fix = "look at the node's log; rollcall log and verify read the log itself"
		return c
	}
	c.Found = fmt.Sprintf("show all %d messages of the log", last)
	return c
}

// maxAhead is how far the log may be ahead of the clock without a word: clocks
// are corrected by a little all the time.
const maxAhead = 2 * time.Second

// log looks for what is gone from the log without reading it: a stream from
// which nothing can be deleted has no holes, and a conversation has at least
// as many messages as it ever had versions.
func (d *doctor) log(ctx context.Context, concerns func(domain.Key) bool) api.Check {
	c := api.Check{Name: "log", Level: api.OK}
	fail := func(found, fix string) api.Check {
		return api.Check{Name: c.Name, Level: api.Fail, Found: found, Fix: fix}
	}
	restore := "rollcall verify says what each lacks; restore the data directory from a backup, and keep the damaged one"
	if d.footing == inCluster {
		restore = "rollcall verify on each server says what each lacks; where another server has it all, stop this node, move its data directory away and keep it, and start it again while the others run: it copies everything from them (one server at a time; docs/cluster.md); where none has, restore a backup"
	}
	// The views first: what is committed meanwhile must not look lost.
	known, err := d.views.Tails(ctx)
	if err != nil {
		return fail(err.Error(), "look at the node's log")
	}
	held, err := d.store.Survey(ctx)
	if err != nil {
		return fail(err.Error(), "look at the node's log")
	}
	var short []string
	for key, version := range known {
		if have := held.Messages[key]; have < version && concerns(key) {
			short = append(short, fmt.Sprintf("%s had %d versions and has %d", key.Conversation, version, have))
		}
	}
	switch {
	case len(short) > 0:
		return fail(fmt.Sprintf("%d conversations lost commits: %s", len(short), strings.Join(short, "; ")), restore)
	case held.Gone > 0:
		return fail(fmt.Sprintf("%d messages of %d are gone from %s", held.Gone, held.Last, eventstore.StreamEvents), restore)
	}
	if ahead := time.Until(held.Newest); ahead > maxAhead {
		c.Level = api.Warn
		c.Found = fmt.Sprintf("whole, and its newest message is %v ahead of this clock, which was set back", ahead.Round(time.Second))
		c.Fix = "nothing has to be done: order never follows the clock; until then times in the log fall"
		return c
	}
	c.Found = fmt.Sprintf("%d messages of %d conversations, none is gone", held.Last, len(held.Messages))
	return c
}
