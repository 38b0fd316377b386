package actors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/actors"
	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/faulty"
	"github.com/rollcall-dev/rollcall/internal/model"
	"github.com/rollcall-dev/rollcall/internal/tool"
	"github.com/rollcall-dev/rollcall/internal/tool/files"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// begin starts a node on the world's storage whose settings are changed first.
func (w *world) begin(change func(*actors.Config), faults ...faulty.Fault) (*actors.Node, *faulty.Store) {
	w.t.Helper()
	store := faulty.New(w.disk, faults...)
	tools := append(files.New(store), w.extra...)
	rules := &domain.Rules{Contracts: contract.All(), DefaultModel: "test"}
	if w.wrap != nil {
		rules.Contracts = map[string]domain.Contract{"mailbox": w.wrap(contract.All()["mailbox"])}
	}
	for _, t := range tools {
		rules.Tools = append(rules.Tools, t.Definition())
	}
	cfg := actors.Config{
		Node: "n1", Store: store, Models: w.brain, Tools: tools, Rules: rules, Partitions: []int{key.Partition()}, Log: slog.New(slog.DiscardHandler),
		Answer: func(subject string, a *rollcallv1.Answer) {
			_ = store.Do(faulty.Reply, func() error {
				w.mu.Lock()
				defer w.mu.Unlock()
				select {
				case w.answers[subject] <- a:
				default: // nobody waits, or it was answered before
				}
				return nil
			})
		},
	}
	change(&cfg)
	n, err := actors.Start(w.t.Context(), cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return n, store
}

// publishTo puts a command into the inbox of a conversation; nobody waits for its
// answer.
func (w *world) publishTo(k domain.Key, cmd *rollcallv1.Command) {
	data, err := proto.Marshal(cmd)
	if err == nil {
		_, _, err = w.disk.Publish(context.Background(), eventstore.Envelope{
			Key: k, To: "_", Data: data, Header: map[string]string{eventstore.HeaderContentType: "application/protobuf", eventstore.HeaderID: cmd.GetId()},
		})
	}
	if err != nil {
		w.t.Error(err)
	}
}

// heard waits for an answer, but not for ever.
func (w *world) heard(answer <-chan *rollcallv1.Answer) *rollcallv1.Answer {
	w.t.Helper()
	select {
	case a := <-answer:
		return a
	case <-time.After(time.Hour):
		w.t.Fatalf("no answer\n%s", w.story())
		return nil
	}
}

// strictly holds a request to what the strictest server asks of calls and
// results: every call is answered, at once, in order, with nothing between.
func strictly(r model.Request) error {
	var open []string
	used := map[string]bool{}
	last := ""
	for i, m := range r.Messages {
		if m.Role != "tool" && len(open) > 0 {
			return fmt.Errorf("message %d, of %s, comes before the results of %v", i, m.Role, open)
		}
		if m.Role == "tool" {
			if len(open) == 0 || open[0] != m.CallID {
				return fmt.Errorf("message %d answers the call %q, open are %v", i, m.CallID, open)
			}
			open = open[1:]
		}
		for _, c := range m.Calls {
			if m.Role != "assistant" || c.GetId() == "" || used[c.GetId()] {
				return fmt.Errorf("message %d, of %s, has the call %q", i, m.Role, c.GetId())
			}
			used[c.GetId()] = true
			open = append(open, c.GetId())
		}
		last = m.Role
	}
	if len(open) > 0 || last != "user" && last != "tool" {
		return fmt.Errorf("it ends with %s, unanswered are %v", last, open)
	}
	return nil
}

// strict is a model that refuses what strictly finds, as servers do for ever.
func strict(t *testing.T, think func(context.Context, model.Caller, request) (model.Reply, error)) func(context.Context, model.Caller, request) (model.Reply, error) {
	return func(ctx context.Context, from model.Caller, r request) (model.Reply, error) {
		if err := strictly(r.Request); err != nil {
			t.Errorf("request of %s, run %s, step %d: %v\n%s", from.Member, from.Run, from.Step, err, r.text())
			return model.Reply{}, &model.Error{Code: "model-refused", What: err.Error()}
		}
		return think(ctx, from, r)
	}
}

// device is a tool under a test's hand: it says when a call begins and ends it
// when it is told to. One that is stubborn does not heed that it is stopped.
type device struct {
	name       string
	idempotent bool
	stubborn   bool
	// takes is how long a call lasts that nobody ends.
	takes time.Duration

	mu      sync.Mutex
	began   []string // ids of the calls, in order
	stopped int
	gate    chan tool.Outcome
}

func newDevice(name string) *device { return &device{name: name, gate: make(chan tool.Outcome)} }

func (d *device) Definition() *rollcallv1.ToolDefinition {
	return &rollcallv1.ToolDefinition{Name: d.name, Description: "a device", Schema: `{"type":"object"}`, Idempotent: d.idempotent}
}

func (d *device) Call(ctx context.Context, p domain.ToolPlan, _ json.RawMessage) (tool.Outcome, error) {
	d.mu.Lock()
	d.began = append(d.began, p.Call.GetId())
	d.mu.Unlock()
	var end <-chan time.Time
	if d.takes > 0 {
		end = time.After(d.takes)
	}
	stop := ctx.Done()
	if d.stubborn {
		stop = nil
	}
	select {
	case out := <-d.gate:
		if out.Output == crashes {
			panic(d.name + " crashed")
		}
		return out, nil
	case <-end:
		return tool.Outcome{Output: d.name + " is done"}, nil
	case <-stop:
		d.mu.Lock()
		d.stopped++
		d.mu.Unlock()
		return tool.Outcome{}, ctx.Err()
	}
}

// calls that began so far.
func (d *device) calls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.began...)
}

// end lets the open call come to something.
func (d *device) end(output string) { d.gate <- tool.Outcome{Output: output} }

// crash lets the open call panic.
func (d *device) crash() { d.end(crashes) }

const crashes = "\x00crash"

// lastRequest is the last request of a member as a server reads it.
func lastRequest(t *testing.T, w *world, member string) []struct{ Role, Content string } {
	t.Helper()
	var body struct {
		Messages []struct{ Role, Content string } `json:"messages"`
	}
	if err := json.Unmarshal([]byte(lastOf(w, member)), &body); err != nil {
		t.Fatal(err)
	}
	return body.Messages
}
