package node

import (
	"context"
	"fmt"
	"strings"

	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
)

// log looks for what is gone from the log without reading it: a stream from
// which nothing can be deleted has no holes, and a conversation has at least
// as many messages as it ever had versions.
func (d *doctor) log(ctx context.Context) api.Check {
	c := api.Check{Name: "log", Level: api.OK}
	fail := func(found, fix string) api.Check {
		return api.Check{Name: c.Name, Level: api.Fail, Found: found, Fix: fix}
	}
	const restore = "rollcall verify says what each lacks; restore the data directory from a backup, and keep the damaged one"
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
		if have := held.Messages[key]; have < version {
			short = append(short, fmt.Sprintf("%s had %d versions and has %d", key.Conversation, version, have))
		}
	}
	switch {
	case len(short) > 0:
		return fail(fmt.Sprintf("%d conversations lost commits: %s", len(short), strings.Join(short, "; ")), restore)
	case held.Gone > 0:
		return fail(fmt.Sprintf("%d messages of %d are gone from %s", held.Gone, held.Last, eventstore.StreamEvents), restore)
	}
	c.Found = fmt.Sprintf("%d messages of %d conversations, none is gone", held.Last, len(held.Messages))
	return c
}
