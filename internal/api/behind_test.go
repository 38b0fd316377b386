package api_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
)

// cutOff is a store whose servers are away, or among which one is left that
// believes it leads.
type cutOff struct {
	eventstore.Store
	last, current error
}

func (c *cutOff) LastSeq(ctx context.Context) (uint64, error) {
	if c.last != nil {
		return 0, c.last
	}
	return c.Store.LastSeq(ctx)
}

func (c *cutOff) Current(context.Context) error { return c.current }

// A node that could not read what the log holds never says that a conversation
// is not there; and its list says that it is old.
func TestWhatCannotBeReadIsNotSaidToBeMissing(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]*cutOff{
		"no leader":         {last: nats.ErrNoResponders, current: context.DeadlineExceeded},
		"no answer":         {last: context.DeadlineExceeded, current: context.DeadlineExceeded},
		"a leader cut off":  {current: context.DeadlineExceeded},
		"all that is there": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			known := w.open("harbor")
			if err := w.server.Close(); err != nil {
				t.Fatal(err)
			}
			store.Store = w.store
			w.serve(api.Config{Store: store})
			want := "jetstream-unavailable"
			if store.current == nil {
				want = "conversation-not-found"
			}
			for _, verb := range []string{"show", "log", "roll", "mail", "pause"} {
				for _, ref := range []string{"kite", "ki", "01hzzzzzzzzzzzzzzzzzzzzzzz"} {
					_, refused := w.ask(verb, `{"conversation":"`+ref+`"}`)
					if refused == nil || refused.Code != want {
						t.Errorf("%s %s: got %+v, want %s", verb, ref, refused, want)
					}
				}
			}
			if _, refused := w.ask("show", `{"conversation":"harbor"}`); refused != nil {
				t.Errorf("what is known is refused: %+v", refused)
			}
			list, refused := w.ask("ls", `{}`)
			if refused != nil || list["behind"] != nil != (store.last != nil) || len(list["conversations"].([]any)) != 1 {
				t.Errorf("ls: %v, %+v; of %s", list, refused, known)
			}
		})
	}
}

// crowd are nodes as the bucket tells of them.
type crowd []api.NodeLine

func (c crowd) Peers() []string                               { return nil }
func (c crowd) Nodes(context.Context) ([]api.NodeLine, error) { return c, nil }
func (c crowd) Drain(context.Context, string, bool) error     { return nil }

// A bucket that does not even know of the node that asks has no leader, and
// tells nothing of the others. A node without work has an empty list.
func TestNodesThatCannotBeKnown(t *testing.T) {
	t.Parallel()
	for name, there := range map[string]crowd{
		"nobody":   nil,
		"the rest": {{Name: "n-other", Status: "up"}, {Name: "n-test", Status: "gone", Partitions: []int{1}}},
		"all":      {{Name: "n-other", Status: "up"}, {Name: "n-test", Status: "up"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if err := w.server.Close(); err != nil {
				t.Fatal(err)
			}
			w.serve(api.Config{Cluster: there})
			w.client.Patience = 50 * time.Millisecond
			_, err := w.client.Drain(w.context(), "n-other", false)
			if name != "all" {
				refused(t, err, "jetstream-unavailable", "n-test")
				_, err = w.client.Nodes(w.context())
				refused(t, err, "jetstream-unavailable", "n-test")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			m, err := w.nc.Request("rollcall.admin.nodes", []byte(`{}`), patience)
			if err != nil {
				t.Fatal(err)
			}
			var raw struct {
				Nodes []struct{ Partitions json.RawMessage }
			}
			if err := json.Unmarshal(m.Data, &raw); err != nil || len(raw.Nodes) != 2 || string(raw.Nodes[0].Partitions) != "[]" {
				t.Errorf("%v in %s", err, m.Data)
			}
		})
	}
}
