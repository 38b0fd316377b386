package eventstore_test

import (
	"context"
	"os"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/storetest"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveEnv); dir != "" {
		serve(dir)
	}
	if url := os.Getenv(clientEnv); url != "" {
		client(url)
		return
	}
	natsdtest.VerifyTestMain(m)
}

// store is a JetStream store whose log a stranger can write to.
type store struct {
	*eventstore.JetStream
	nc *nats.Conn
}

func (s store) Inject(ctx context.Context, key domain.Key, raw []byte, claims bool) (uint64, error) {
	m := &nats.Msg{Subject: eventstore.EventSubject(key), Data: raw, Header: nats.Header{}}
	if claims {
		m.Header.Set("Rollcall-Version", "1")
	}
	js, err := jetstream.New(s.nc)
	if err != nil {
		return 0, err
	}
	ack, err := js.PublishMsg(ctx, m)
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

func TestOneReplica(t *testing.T) {
	s, nc := natsdtest.Store(t)
	storetest.Run(t, func(*testing.T) storetest.Store { return store{s, nc} })
}

func TestThreeReplicas(t *testing.T) {
	servers := natsdtest.Cluster(t, 3)
	natsdtest.Open(t, natsdtest.Connect(t, servers[0]), eventstore.Config{Replicas: 3})
	var n atomic.Int64
	storetest.Run(t, func(t *testing.T) storetest.Store {
		nc := natsdtest.Connect(t, servers[n.Add(1)%3])
		return store{natsdtest.Open(t, nc, eventstore.Config{Replicas: 3}), nc}
	})
}
