package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/eventstore"
)

// A plan is what is to be broken, in order, each step mended before the next
// begins. It is drawn from the seed before anything starts, so that a seed
// always names the same plan, however fast the machine is.
type plan []step

type step struct {
	kind kind
	// whom it strikes: a process by name, or the leader of the log, whoever that
	// is when the step comes.
	whom string
	// hold is for how long it is broken, rest how long all is well after it.
	hold, rest time.Duration
	// reset: connections that were held up are broken off when it is mended, so
	// that what was under way is lost; otherwise it arrives late.
	reset bool
}

func (s step) String() string {
	text := fmt.Sprintf("%s %s for %v", s.kind, s.whom, s.hold)
	if s.reset {
		text += ", resetting"
	}
	return text
}

func (p plan) String() string {
	var b strings.Builder
	for i, s := range p {
		fmt.Fprintf(&b, "  %d. %v, then rest %v\n", i+1, s, s.rest)
	}
	return b.String()
}

// kind of fault.
type kind string

const (
	kill kind = "kill -9"
	// freeze is SIGSTOP, and SIGCONT after it.
	freeze kind = "freeze"
	// stepDown has the log's leader hand over in good order.
	stepDown kind = "step down the leader through"
	// partition cuts both ways between it and all others.
	partition kind = "partition off"
	// split cuts a server off from the other servers, and not from its clients: it
	// may go on for a while in the belief that it leads.
	split kind = "split off"
	// deafen cuts what comes to it: a node hears no acknowledgement, a server no
	// vote.
	deafen kind = "deafen"
	// silence cuts what it says.
	silence kind = "silence"
	// storm kills a node twice within two seconds, while others claim what it had.
	storm kind = "restart storm of"
	// drain is SIGTERM, and a start after it.
	drain kind = "drain"
)

// theLeader stands for the server that leads the log.
const theLeader = "the leader"

var (
	serverFaults = []kind{kill, freeze, stepDown, split, partition, deafen, silence}
	nodeFaults   = []kind{kill, freeze, storm, partition, deafen, silence, drain}
)

// draw makes a plan of n steps. No kind comes twice before each came once.
func draw(rng *rand.Rand, n int, kinds []kind, whom []string, hold, rest time.Duration) plan {
	var p plan
	for len(p) < n {
		for _, i := range rng.Perm(len(kinds)) {
			p = append(p, step{
				kind: kinds[i], whom: whom[rng.IntN(len(whom))], reset: rng.IntN(2) == 0,
				hold: between(rng, hold/4, hold), rest: between(rng, rest/4, rest),
			})
		}
	}
	return p[:n]
}

func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return (least + time.Duration(rng.Int64N(int64(most-least)+1))).Round(time.Millisecond)
}

// breaker carries plans out.
type breaker struct {
	t       testing.TB
	servers *servers
	// nodes by name; nil where there are none.
	nodes map[string]*node
	// clients are names of other ends of wires.
	clients []string
	// admin asks the servers by wires that no plan cuts.
	admin *nats.Conn
}

func newBreaker(t testing.TB, s *servers) *breaker {
	nc := s.connect("admin", nil)
	t.Cleanup(nc.Close)
	return &breaker{t: t, servers: s, admin: nc}
}

// play plays a plan to its end, or until ctx ends; whatever is broken then is
// mended.
func (b *breaker) play(ctx context.Context, p plan) {
	for _, s := range p {
		if ctx.Err() != nil {
			return
		}
		b.strike(ctx, s)
		rest(ctx, s.rest)
	}
}

func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// strike breaks, holds and mends.
func (b *breaker) strike(ctx context.Context, s step) {
	whom := s.whom
	if whom == theLeader {
		whom = b.leader()
	}
	b.t.Logf("%s: %v (%s)", time.Now().Format("05.000"), s, whom)
	if s.kind == stepDown {
		b.stepDown()
		return
	}
	if n := b.nodes[whom]; n != nil {
		b.strikeNode(ctx, n, s)
		return
	}
	one := b.servers.named(whom)
	if one == nil {
		b.cutting(ctx, whom, b.servers.names(), s)
		return
	}
	switch s.kind {
	case kill:
		one.kill()
		rest(ctx, s.hold)
		one.start()
	case freeze:
		one.proc.stop()
		rest(ctx, s.hold)
		one.proc.cont()
	case split:
		b.cutting(ctx, whom, b.servers.but(whom), s)
	default:
		b.cutting(ctx, whom, b.others(whom), s)
	}
}

// cutting cuts the wires between one and others, and mends them.
func (b *breaker) cutting(ctx context.Context, one string, others []string, s step) {
	net := b.servers.net
	for _, other := range others {
		if s.kind != silence {
			net.cut(other, one)
		}
		if s.kind != deafen {
			net.cut(one, other)
		}
	}
	rest(ctx, s.hold)
	net.mend(one, s.reset)
}

// others are all ends of wires but one, and but those of this process that look on.
func (b *breaker) others(one string) []string {
	all := b.servers.but(one)
	for name := range b.nodes {
		all = append(all, name)
	}
	return append(all, b.clients...)
}

// but are the names of all servers but one.
func (s *servers) but(one string) []string {
	return slices.DeleteFunc(s.names(), func(name string) bool { return name == one })
}

func (s *servers) names() (all []string) {
	for _, one := range s.all {
		all = append(all, one.name)
	}
	return all
}

// leader is the name of the server that leads the log.
func (b *breaker) leader() (name string) {
	b.t.Helper()
	js, err := jetstream.New(b.admin)
	if err != nil {
		b.t.Fatal(err)
	}
	poll(b.t, "the log has a leader", func() bool {
		ctx, cancel := within(2 * time.Second)
		defer cancel()
		s, err := js.Stream(ctx, eventstore.StreamEvents)
		if err != nil || s.CachedInfo().Cluster == nil {
			return false
		}
		name = s.CachedInfo().Cluster.Leader
		return name != ""
	})
	return name
}

func (b *breaker) stepDown() {
	ctx, cancel := within(2 * time.Second)
	defer cancel()
	_, err := b.admin.RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+eventstore.StreamEvents, nil)
	if err != nil {
		b.t.Logf("step down: %v", err) // nobody leads at the moment
	}
}

func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}
