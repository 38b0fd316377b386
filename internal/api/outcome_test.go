package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
)

// mute is a store whose inbox answers nothing but this.
type mute struct {
	eventstore.Store
	says []error
}

func (m *mute) Publish(context.Context, eventstore.Envelope) (uint64, bool, error) {
	err := m.says[0]
	if len(m.says) > 1 {
		m.says = m.says[1:]
	}
	return 0, false, fmt.Errorf("publish to main.01xyz._: %w", err)
}

// Only a command that surely did not get through is said not to be stored, and
// nobody is told of subjects and contexts.
func TestTheFateOfACommandIsToldAsItIs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		says []error
		code string
	}{
		"nobody there":            {[]error{nats.ErrNoResponders}, "jetstream-unavailable"},
		"not acknowledged":        {[]error{context.DeadlineExceeded}, "outcome-unknown"},
		"once, then nobody there": {[]error{nats.ErrTimeout, nats.ErrNoResponders}, "outcome-unknown"},
		"once, then the inbox is full": {
			[]error{nats.ErrTimeout, eventstore.ErrInboxFull}, "outcome-unknown",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if err := w.server.Close(); err != nil {
				t.Fatal(err)
			}
			w.serve(api.Config{Store: &mute{w.store, test.says}, Patience: 100 * time.Millisecond})
			_, refused := w.ask("open", `{"name":"kite","contract":"mailbox","objective":"Fly it."}`)
			if refused == nil || refused.Code != test.code || refused.Exit != api.ExitUnreachable {
				t.Fatalf("got %+v, want %s", refused, test.code)
			}
			if said := fmt.Sprint(*refused); strings.Contains(said, "publish to") || strings.Contains(said, "context") {
				t.Errorf("it speaks of what is inside: %s", said)
			}
		})
	}
}

// A command that a node took, and never answered, may have been stored.
func TestACommandThatWasTakenMayBeStored(t *testing.T) {
	t.Parallel()
	server := natsdtest.Start(t)
	node, operator := natsdtest.Connect(t, server), natsdtest.Connect(t, server)
	taken := make(chan *nats.Msg, 8)
	sub, err := node.ChanSubscribe("rollcall.api.main.pause", taken)
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Flush(); err != nil {
		t.Fatal(err)
	}
	c := api.NewClient(operator, "main")
	c.Patience = 50 * time.Millisecond
	ended := make(chan error, 1)
	go func() {
		_, err := c.Pause(t.Context(), "x")
		ended <- err
	}()
	<-taken
	if err := sub.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	if err := node.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := operator.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	refused(t, <-ended, "outcome-unknown", "rollcall ls")
	_, err = c.Pause(t.Context(), "x") // nobody was there to take it
	refused(t, err, "node-unreachable")
}
