package actors

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
)

// errMoved ends a session on a partition that another node should work on.
var errMoved = errors.New("the partition moves to another node")

// peers knows which nodes are there, and by that which partitions this one
// should work on. What it knows is a hint; claims decide.
type peers struct {
	*runtime
	self eventstore.NodeInfo
	// every is the time between two looks.
	every time.Duration

	mu sync.Mutex
	// news: something of self changed that the others should hear at once.
	news  bool
	known *view
	// changed is closed and replaced at every look.
	changed chan struct{}
	// holding are the sessions on partitions, to be ended when they move.
	holding map[int]func(error)
	// working counts the steps under way on a partition; moving is since when it
	// should have moved, but for them.
	working map[int]int
	moving  map[int]time.Time
	// failed are the nodes that did not take a partition meant for them.
	failed map[int]failed
}

// failed is a node that left a partition free for the time of a lease: for a
// while others are meant to have it.
type failed struct {
	node  string
	until time.Time
}

// view is what a look found.
type view struct {
	cluster eventstore.Cluster
	// wanted is the node that should work on each partition.
	wanted map[int]string
	// free is since when a partition was found without an owner, and meant for
	// the same node.
	free map[int]time.Time
	// away counts the looks in a row that wanted a partition of ours elsewhere:
	// one look may be at the past.
	away map[int]int
	// settled: whoever is there had the time to say so. Nodes that start
	// together, or that NATS could not hear for a while, shall see each other
	// before one claims what is meant for another.
	settled bool
}

const (
	// looks are how often a lease's time is looked around.
	looks = 20
	// settles is how many looks it takes until all who are there have said so.
	settles = 6
	// movePatience is how long a partition that only evens the nodes out waits for
	// a moment in which no step is under way.
	movePatience = time.Minute
	// failedFor is how many leases' time a node that did not take a partition is
	// not meant to have it: if it were, the partition would go to and fro.
	failedFor = 6
	// movesAfter is how many looks in a row must want a partition elsewhere.
	movesAfter = 2
	// firstLook is the time between looks until the time of a lease is known.
	firstLook = 100 * time.Millisecond
	// maxTold bounds the conversations set aside that a node tells the others of.
	maxTold = 50
)

func newPeers(rt *runtime) *peers {
	return &peers{
		runtime: rt, every: firstLook, changed: make(chan struct{}), holding: map[int]func(error){}, failed: map[int]failed{},
		working: map[int]int{}, moving: map[int]time.Time{},
		self: eventstore.NodeInfo{Name: rt.Node, Life: rt.Life, Place: rt.Place, Version: rt.Version, Started: time.Now().UTC(), Schema: domain.EvolveVersion, ReadsOnly: rt.ReadsOnly},
	}
}

// run announces the node and looks around until ctx ends.
func (p *peers) run(ctx context.Context) {
	var ttl time.Duration
	var next, last, since time.Time
	for ; ctx.Err() == nil; pause(ctx, p.every) {
		if now := time.Now(); p.hasNews() || !now.Before(next) {
			if got, err := p.announce(ctx); err == nil {
				ttl = got
				next = now.Add(ttl / 3)
				p.every = max(ttl/looks, time.Millisecond)
				if now.Sub(last) > ttl*2/3 { // the others may have been as silent
					since = now
				}
				last = now
			} else if ctx.Err() == nil {
				p.Log.Warn("the other nodes cannot be told that this one is there", "error", err)
			}
		}
		if ttl == 0 {
			continue
		}
		try, cancel := context.WithTimeout(ctx, ttl/3)
		c, err := p.Store.Cluster(try)
		cancel()
		if err == nil {
			now := time.Now()
			p.look(c, now, ttl, p.Alone || now.Sub(since) >= ttl*settles/looks)
		} else if ctx.Err() == nil {
			p.Log.Debug("look for other nodes", "error", err)
		}
	}
}

// announce gives up before the next one is due.
func (p *peers) announce(ctx context.Context) (time.Duration, error) {
	try, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	p.mu.Lock()
	info := p.self
	p.mu.Unlock()
	for key, err := range p.Quarantined() {
		if info.Quarantined == nil {
			info.Quarantined = map[string]string{}
		}
		if len(info.Quarantined) == maxTold {
			break
		}
		info.Quarantined[key.String()] = err.Error()
	}
	return p.Store.Announce(try, info)
}

const announceTimeout = time.Second

// hasNews reports, once, that the others should hear of this node at once.
func (p *peers) hasNews() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	news := p.news
	p.news = false
	return news
}

// leave tells the others that this node lets go of everything, so that they
// take it at once.
func (p *peers) leave(ctx context.Context) {
	p.mu.Lock()
	p.self.Leaving = true
	p.mu.Unlock()
	if _, err := p.announce(ctx); err != nil {
		p.Log.Warn("the other nodes cannot be told that this one leaves", "error", err)
	}
}

// gone takes the announcement back.
func (p *peers) gone() {
	ctx, cancel := context.WithTimeout(context.Background(), announceTimeout)
	defer cancel()
	if err := p.Store.Withdraw(ctx, p.Node); err != nil {
		p.Log.Debug("withdraw", "error", err)
	}
}

// look takes in what was found at a time, and ends the sessions on partitions
// that another node should have.
func (p *peers) look(c eventstore.Cluster, now time.Time, ttl time.Duration, settled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.Nodes[p.Node] = p.self
	understood := understands(c)
	able := func(node string, partition int) bool {
		f, marked := p.failed[partition]
		return understood(node, partition) && !(marked && f.node == node && now.Before(f.until))
	}
	nodes := takers(c)
	if p.Alone {
		nodes = []string{p.Node}
	}
	v := &view{cluster: c, wanted: place(nodes, p.Partitions, able), free: map[int]time.Time{}, away: map[int]int{}, settled: settled}
	for _, q := range p.Partitions {
		if c.Owners[q].Node == "" {
			v.free[q] = now
			if k := p.known; settled && k != nil && k.settled && k.wanted[q] == v.wanted[q] && !k.free[q].IsZero() {
				v.free[q] = k.free[q]
			}
			if now.Sub(v.free[q]) > ttl {
				p.failed[q] = failed{node: v.wanted[q], until: now.Add(ttl * failedFor)}
			}
		}
		end := p.holding[q]
		if end == nil || v.wanted[q] == p.Node {
			delete(p.moving, q)
			continue
		}
		v.away[q] = 1
		if p.known != nil {
			v.away[q] += p.known.away[q]
		}
		if v.away[q] < movesAfter {
			continue
		}
		if _, asked := p.moving[q]; !asked {
			p.moving[q] = now
		}
		// To even out is no reason to make a model call twice: wait for a moment
		// between two, but not for ever.
		if p.working[q] == 0 || !takes(c, p.Node) || !able(p.Node, q) || now.Sub(p.moving[q]) > movePatience {
			end(errMoved)
		}
	}
	p.known = v
	close(p.changed)
	p.changed = make(chan struct{})
}

// works counts a step of the partition that begins, or with -1 ends.
func (p *peers) works(partition, by int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.working[partition] += by
	if _, moves := p.moving[partition]; moves && p.working[partition] == 0 && p.holding[partition] != nil {
		p.holding[partition](errMoved)
	}
}

// turn waits until this node should claim the partition, which it held last at
// the given epoch; false when ctx ended before.
func (p *peers) turn(ctx context.Context, partition int, last uint64) bool {
	return p.await(ctx, func(v *view) bool {
		switch owner := v.cluster.Owners[partition]; {
		case owner.Node == p.Node && owner.Epoch > last && takes(v.cluster, p.Node):
			return true // of an earlier life: nobody else can before it lapses
		default:
			return owner.Node == "" && v.settled && v.wanted[partition] == p.Node
		}
	})
}

// settle waits until the node may claim what is meant for it.
func (p *peers) settle(ctx context.Context) {
	p.await(ctx, func(v *view) bool { return v.settled })
}

// await waits for a look that is as it must be; false when ctx ended before.
func (p *peers) await(ctx context.Context, ok func(*view) bool) bool {
	for ctx.Err() == nil {
		p.mu.Lock()
		v, changed := p.known, p.changed
		p.mu.Unlock()
		if v != nil && ok(v) {
			return true
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	return false
}

// next waits for the next look.
func (p *peers) next(ctx context.Context) {
	p.mu.Lock()
	changed := p.changed
	p.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-changed:
	}
}

// holds says that the node works on the partition; end is called when another
// should. Without end it does not work on it any more.
func (p *peers) holds(partition int, end func(error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if end == nil {
		delete(p.holding, partition)
		delete(p.moving, partition)
		return
	}
	p.holding[partition] = end
}

// elsewhere reports whether another node was last seen to own the partition.
func (p *peers) elsewhere(partition int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || p.holding[partition] != nil {
		return false
	}
	owner := p.known.cluster.Owners[partition].Node
	return owner != "" && owner != p.Node
}

// cluster is what the last look found.
func (p *peers) cluster() eventstore.Cluster {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		return eventstore.Cluster{Nodes: map[string]eventstore.NodeInfo{p.Node: p.self}}
	}
	c := p.known.cluster
	return eventstore.Cluster{Nodes: maps.Clone(c.Nodes), Owners: maps.Clone(c.Owners), Drained: maps.Clone(c.Drained)}
}
