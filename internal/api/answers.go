package api

import (
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// answers hands the nodes' answers to the requests that wait for them. One
// subscription serves all: it stands before any command is published, also
// when the store publishes on another connection.
type answers struct {
	sub    *nats.Subscription
	prefix string

	mu      sync.Mutex
	next    uint64
	waiting map[string]chan *rollcallv1.Answer
}

func listenForAnswers(nc *nats.Conn) (*answers, error) {
	a := &answers{prefix: nc.NewRespInbox() + ".", waiting: make(map[string]chan *rollcallv1.Answer)}
	sub, err := nc.Subscribe(a.prefix+"*", a.take)
	if err != nil {
		return nil, fmt.Errorf("listen for answers: %w", err)
	}
	if err := nc.Flush(); err != nil {
		return nil, fmt.Errorf("listen for answers: %w", err)
	}
	a.sub = sub
	return a, nil
}

// expect opens a place for one answer and returns its subject. done closes it.
func (a *answers) expect() (subject string, answer <-chan *rollcallv1.Answer, done func()) {
	ch := make(chan *rollcallv1.Answer, 1)
	a.mu.Lock()
	a.next++
	token := fmt.Sprint(a.next)
	a.waiting[token] = ch
	a.mu.Unlock()
	return a.prefix + token, ch, func() {
		a.mu.Lock()
		delete(a.waiting, token)
		a.mu.Unlock()
	}
}

func (a *answers) take(m *nats.Msg) {
	got := new(rollcallv1.Answer)
	if err := proto.Unmarshal(m.Data, got); err != nil {
		return
	}
	a.mu.Lock()
	ch := a.waiting[strings.TrimPrefix(m.Subject, a.prefix)]
	a.mu.Unlock()
	select {
	case ch <- got: // a nil channel: nobody waits any more
	default: // an answer given twice, after a redelivery
	}
}

func (a *answers) close() {
	// The connection may be gone already, which ends the subscription too.
	_ = a.sub.Unsubscribe()
}
