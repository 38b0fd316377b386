package eventstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
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

// The end of the log is what a leader says that most replicas know, and nothing
// that was said before by one who is none.
func TestTheEndOfTheLogIsTheLeaders(t *testing.T) {
	nc, s := alone(t)
	var err error
	if s.js, err = jetstream.NewWithAPIPrefix(nc, "told"); err != nil {
		t.Fatal(err)
	}
	s.replicated = true
	const answer = `{"state":{"messages":%d,"last_seq":%d},"cluster":{"leader":%q,"replicas":[{"name":"b","active":%d},{"name":"c","active":%d}]}}`
	answers := []string{
		fmt.Sprintf(answer, 3, 3, "", 0, 0), // a replica without a leader
		fmt.Sprintf(answer, 4, 4, "a", silentFor, silentFor),
		`{"error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}}`,
		fmt.Sprintf(answer, 7, 7, "a", silentFor, time.Second),
	}
	asked := 0
	sub, err := nc.Subscribe("told.STREAM.INFO."+StreamEvents, func(m *nats.Msg) {
		_ = m.Respond([]byte(answers[asked])) // who asks in vain asks again
		asked++
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if last, err := s.LastSeq(t.Context()); err != nil || last != 7 {
		t.Errorf("the log ends at %d: %v", last, err)
	}
}
