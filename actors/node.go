package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/tool"
)

// Node runs the conversations of its partitions. It owns all goroutines of
// this package; Close ends them.
type Node struct {
	*runtime
	partitions map[int]*actor.PID
	owners     sync.WaitGroup
	stop       context.CancelFunc
	// forget ends what tells the others of this node, when it holds nothing more.
	forget context.CancelFunc
	told   sync.WaitGroup
}

// runtime is what all actors of a node share.
type runtime struct {
	Config
	system *actor.ActorSystem
	tools  map[string]tool.Tool
	// slots bounds the model calls in flight.
	slots chan struct{}
	// warmed counts members rebuilt in the background.
	warmed atomic.Int64
	// active counts conversations that are not quiescent.
	active atomic.Int64
	// lastBusy is the unix time in nanoseconds when something last happened.
	lastBusy atomic.Int64
	// replays rebuilds conversations when partitions are gained.
	replays *replays
	peers   *peers
	// steps counts goroutines of members, loads and appends.
	steps sync.WaitGroup

	mu          sync.Mutex
	quarantined map[domain.Key]error
}

// Start makes a node and begins to claim its partitions. It returns at once;
// ctx bounds only the start.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	cfg = cfg.withDefaults()
	if cfg.Store == nil || cfg.Models == nil || cfg.Rules == nil || cfg.Node == "" {
		return nil, errors.New("start node: node name, store, models and rules are required")
	}
	rt := &runtime{
		Config:      cfg,
		tools:       map[string]tool.Tool{},
		slots:       make(chan struct{}, cfg.MaxRuns),
		quarantined: map[domain.Key]error{},
		system: actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
			return slog.New(slog.DiscardHandler)
		})),
	}
	for _, t := range cfg.Tools {
		rt.tools[t.Definition().GetName()] = t
	}
	rt.busy()
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	telling, forget := context.WithCancel(context.WithoutCancel(ctx))
	rt.peers = newPeers(rt)
	rt.replays = newReplays(run, rt)
	n := &Node{runtime: rt, partitions: map[int]*actor.PID{}, stop: stop, forget: forget}
	root := rt.system.Root
	for _, p := range cfg.Partitions {
		props := actor.PropsFromProducer(func() actor.Actor { return newPartition(rt, p) }, supervisor(cfg.Log))
		pid, err := root.SpawnNamed(props, fmt.Sprintf("partition-%d", p))
		if err != nil {
			stop()
			forget()
			return nil, fmt.Errorf("start node: partition %d: %w", p, err)
		}
		n.partitions[p] = pid
		n.owners.Go(func() { (&owner{runtime: rt, partition: p, pid: pid}).run(run) })
	}
	n.told.Go(func() { rt.peers.run(telling) })
	return n, nil
}

// Close drains: it tells the other nodes, suspends open runs, lets go of the
// partitions and stops every actor. It returns when all goroutines have ended
// or ctx ends.
func (n *Node) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		n.peers.leave(ctx)
		n.stop()
		n.owners.Wait()
		n.forget()
		n.told.Wait()
		n.peers.gone()
		var stopped []actor.Future
		for _, pid := range n.partitions {
			stopped = append(stopped, n.system.Root.StopFuture(pid))
		}
		for _, f := range stopped {
			_ = f.Wait()
		}
		n.steps.Wait()
		n.system.Shutdown()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close node: %w", ctx.Err())
	}
}

// Quiet reports since when nothing has been going on; false while work is due.
func (n *Node) Quiet() (since time.Time, quiet bool) {
	return time.Unix(0, n.lastBusy.Load()), n.active.Load() == 0
}

// Touch marks the node as in use now.
func (n *Node) Touch() { n.busy() }

// Quarantined lists the conversations that were set aside, with the reason.
func (rt *runtime) Quarantined() map[domain.Key]error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return maps.Clone(rt.quarantined)
}

// SetAside lists the conversations that this node and, as last heard, the
// others set aside, with the reason.
func (n *Node) SetAside() map[domain.Key]string {
	out := map[domain.Key]string{}
	for _, peer := range n.peers.cluster().Nodes {
		for key, why := range peer.Quarantined {
			tenant, conversation, _ := strings.Cut(key, ".")
			out[domain.Key{Tenant: tenant, Conversation: conversation}] = why
		}
	}
	for key, err := range n.Quarantined() {
		out[key] = err.Error()
	}
	return out
}

// Cluster is who else is there and who works on what, as last seen.
func (n *Node) Cluster() eventstore.Cluster { return n.peers.cluster() }

func (rt *runtime) busy() { rt.lastBusy.Store(time.Now().UnixNano()) }

func (rt *runtime) setAside(key domain.Key, err error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if err == nil {
		delete(rt.quarantined, key)
		return
	}
	rt.quarantined[key] = err
	rt.Log.Error("conversation quarantined; its messages are held", "conversation", key.String(), "reason", err)
}

// stamp identifies the next commit of a lease.
func (rt *runtime) stamp(l eventstore.Lease, id string) domain.Stamp {
	return domain.Stamp{Time: time.Now().UTC(), Node: l.Node, Epoch: l.Epoch, CommitID: id}
}
