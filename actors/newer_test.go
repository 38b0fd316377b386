package actors_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/rollcall-dev/rollcall/actors"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// newer writes a commit as a node of a later version would.
func (w *world) newer() {
	w.t.Helper()
	s, at, err := actors.Load(w.t.Context(), w.disk, key)
	if err == nil {
		_, err = w.disk.Append(w.t.Context(), key, at, &rollcallv1.Commit{
			Node: "n1", Epoch: s.Epoch, EvolveVersion: domain.EvolveVersion + 1, Time: timestamppb.Now(),
			Events: []*rollcallv1.Event{{Kind: &rollcallv1.Event_CommandRefused{CommandRefused: &rollcallv1.CommandRefused{Command: "x"}}}},
		})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// heldBack: the node does nothing with the conversation, keeps what came for it,
// says why, and tells the other nodes.
func (w *world) heldBack(n *actors.Node, version uint64, messages int) {
	w.t.Helper()
	<-time.After(3 * eventstore.AckWait)
	synctest.Wait()
	if why := n.Quarantined()[key]; why == nil || !strings.Contains(why.Error(), "a newer Rollcall wrote in its log") {
		w.t.Errorf("it is set aside because %v", why)
	}
	if got := w.state().Version; got != version {
		w.t.Errorf("the log goes to version %d, want %d\n%s", got, version, w.story())
	}
	if got := w.disk.Pending(key.Partition()); got != messages {
		w.t.Errorf("%d messages are held, want %d", got, messages)
	}
	c, err := w.disk.Cluster(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if info := c.Nodes["n1"]; info.Schema != domain.EvolveVersion || info.Newer[key.Partition()] != domain.EvolveVersion+1 {
		w.t.Errorf("the node says of itself: %+v", info)
	}
}

// A node that meets a commit of a newer program does not decide on that
// conversation, whether it had it in memory, or loads it with work due.
func TestNewerCommitIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(context.Context, model.Caller, request) (model.Reply, error) { return say("ok"), nil })
		n, _ := w.node()
		w.open("go")
		w.quiet()
		other := neighbour()
		w.neighbour(t, other, openIn(other))
		w.newer()
		version := w.state().Version
		answer := w.ask(post("lead", "hello", 0))
		w.heldBack(n, version, 1)
		if len(answer) > 0 {
			t.Errorf("it is answered: %v", <-answer)
		}
		w.neighbour(t, other, post("lead", "and you?", 0))
		// A retry changes nothing: only a newer program helps.
		retry := w.ask(&rollcallv1.Command{Kind: &rollcallv1.Command_RetryMember{RetryMember: &rollcallv1.RetryMember{Member: "lead"}}})
		w.heldBack(n, version, 2)
		if len(retry) > 0 {
			t.Errorf("the retry is answered: %v", <-retry)
		}
		w.close(n)

		n, _ = w.node() // it finds the conversation in the log
		w.heldBack(n, version, 2)
		w.neighbour(t, other, post("lead", "and now?", 0))
		w.close(n)
	})
}

// Work that is due is not done on a state that may lack something.
func TestNewerCommitStopsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(ctx context.Context, _ model.Caller, _ request) (model.Reply, error) {
			<-ctx.Done()
			return model.Reply{}, ctx.Err()
		})
		n, _ := w.node()
		w.open("work")
		w.until("the call", func(*domain.State) bool { return w.brain.count("Lead") == 1 })
		w.close(n)
		w.newer()
		version := w.state().Version
		n, _ = w.node()
		defer w.close(n)
		w.heldBack(n, version, 1)
		if got := w.brain.count("Lead"); got != 1 {
			t.Errorf("the model was called %d times", got)
		}
	})
}
