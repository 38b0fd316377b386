package api_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
)

// A request whose answer is lost with its connection is asked again at once,
// not when its time is over.
func TestAskedAgainAfterReconnect(t *testing.T) {
	server := natsdtest.Start(t)
	node, operator := natsdtest.Connect(t, server), natsdtest.Connect(t, server)
	asked := make(chan *nats.Msg, 8)
	sub, err := node.ChanSubscribe("rollcall.api.main.info", asked)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := node.Flush(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := api.NewClient(operator, "main")
	c.Patience = 0
	answered := make(chan error, 1)
	go func() {
		_, err := c.Info(ctx)
		answered <- err
	}()
	<-asked // and its answer is never given
	began := time.Now()
	if err := operator.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	again := <-asked
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it was asked again after %v", took)
	}
	if err := again.Respond([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
}
