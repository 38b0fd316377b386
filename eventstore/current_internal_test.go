package eventstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A replica that has no leader answers in its place, with itself among the
// replicas and with others that were active at 0: never.
func TestWhoIsHeard(t *testing.T) {
	at := func(active ...time.Duration) (all []*jetstream.PeerInfo) {
		for _, a := range active {
			all = append(all, &jetstream.PeerInfo{Active: a})
		}
		return all
	}
	const within = time.Second
	for name, test := range map[string]struct {
		cluster *jetstream.ClusterInfo
		heard   bool
	}{
		"alone":                   {nil, true},
		"a leader":                {&jetstream.ClusterInfo{Leader: "a", Replicas: at(time.Minute, within/2)}, true},
		"a leader, cut off":       {&jetstream.ClusterInfo{Leader: "a", Replicas: at(time.Minute, within)}, false},
		"a leader, just started":  {&jetstream.ClusterInfo{Leader: "a", Replicas: at(0, 0)}, false},
		"no leader":               {&jetstream.ClusterInfo{Replicas: at(3*time.Second, 0, 0)}, false},
		"no leader, but the rest": {&jetstream.ClusterInfo{Replicas: at(within/2, within/2, within/2)}, false},
	} {
		if got := heard(test.cluster, within); got != test.heard {
			t.Errorf("%s: heard is %v", name, got)
		}
	}
}

type leaderless struct{ Store }

func (leaderless) Led(context.Context) error { return errLeaderless }

// The guarded store, which nodes use, passes it on.
func TestAGuardedLogIsAskedWhoLeads(t *testing.T) {
	l, ok := Guard(leaderless{}, nil, nil).(interface{ Led(context.Context) error })
	if !ok || !errors.Is(l.Led(t.Context()), errLeaderless) {
		t.Error("nobody hears that the log has no leader")
	}
}
