package actors_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/actors"
	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/faulty"
	"github.com/rollcall-dev/rollcall/internal/model"
	"github.com/rollcall-dev/rollcall/internal/tool"
	"github.com/rollcall-dev/rollcall/internal/tool/files"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// cluster is a world with several nodes at once, and what each of them asked the
// model.
type cluster struct {
	*world
	mu    sync.Mutex
	spans []*span
	// seen are what the nodes see of the storage; nil: the world's disk.
	seen func(name string) eventstore.Store
	// whole: the nodes share all partitions, and not only that of key.
	whole bool
	// change is done to every node's settings.
	change func(*actors.Config)
}

// span is a call of the model as it went on at one node.
type span struct {
	node       string
	from       model.Caller
	body       string
	began, end time.Time // end is zero while it is open
}

func newCluster(t *testing.T, think func(context.Context, model.Caller, request) (model.Reply, error)) *cluster {
	return &cluster{world: newWorld(t, think)}
}

// peer is one of the nodes. Its store is what it sees of the world; its link is
// what a test does to that.
type peer struct {
	*actors.Node
	c     *cluster
	name  string
	store *faulty.Store
	link  *link
	once  sync.Once
}

// up starts a node.
func (c *cluster) up(name string, faults ...faulty.Fault) *peer {
	c.t.Helper()
	var disk eventstore.Store = c.disk
	if c.seen != nil {
		disk = c.seen(name)
	}
	p := &peer{c: c, name: name, link: &link{Store: disk}}
	p.store = faulty.New(p.link, faults...)
	tools := append(files.New(p.store), c.extra...)
	rules := &domain.Rules{Contracts: contract.All(), DefaultModel: "test", Limits: domain.Limits{IdenticalCalls: domain.Off}}
	for _, t := range tools {
		rules.Tools = append(rules.Tools, t.Definition())
	}
	level := slog.LevelError + 1
	if os.Getenv("ROLLCALL_TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	cfg := actors.Config{
		Node: name, Store: p.store, Models: &seat{brain: c.brain, c: c, node: name}, Tools: tools, Rules: rules,
		Log: slog.New(slog.NewTextHandler(c.t.Output(), &slog.HandlerOptions{Level: level})).With("node", name),
		Answer: func(subject string, a *rollcallv1.Answer) {
			_ = p.store.Do(faulty.Reply, func() error {
				c.world.mu.Lock()
				defer c.world.mu.Unlock()
				select {
				case c.answers[subject] <- a:
				default: // nobody waits, or it was answered before
				}
				return nil
			})
		},
		SnapshotEvery: c.snapshotEvery, WarmMembers: c.warm,
	}
	if !c.whole {
		cfg.Partitions = []int{key.Partition()}
	}
	if c.change != nil {
		c.change(&cfg)
	}
	n, err := actors.Start(c.t.Context(), cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	p.Node = n
	return p
}

// down stops the node in good order, or what is left of it when it crashed.
func (p *peer) down() {
	p.once.Do(func() { p.c.close(p.Node) })
}

// owner is the node that holds the partition of key.
func (c *cluster) owner() string {
	c.t.Helper()
	found, err := c.disk.Cluster(context.Background())
	if err != nil {
		c.t.Fatal(err)
	}
	return found.Owners[key.Partition()].Node
}

// owns waits until the node holds the partition of key.
func (c *cluster) owns(name string) {
	c.t.Helper()
	c.until(name+" owns the partition", func(*domain.State) bool { return c.owner() == name })
}

// pair is two nodes: the one that owns the partition, and one that stands by.
func (c *cluster) pair() (first, second *peer) {
	c.t.Helper()
	first, second = c.up("n1"), c.up("n2")
	c.until("one owns the partition", func(*domain.State) bool { return c.owner() != "" })
	if c.owner() == second.name {
		first, second = second, first
	}
	return first, second
}

// calls of the model that were made, and what is open, by node.
func (c *cluster) called(node string) (n int) {
	for _, s := range c.asked() {
		if s.node == node {
			n++
		}
	}
	return n
}

func (c *cluster) asked() (all []span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		all = append(all, *s)
	}
	return all
}

// seat is the model as one node reaches it.
type seat struct {
	*brain
	c    *cluster
	node string
}

func (s *seat) Call(ctx context.Context, from model.Caller, req model.Request, onText func(string)) (model.Reply, error) {
	body, err := model.Encode(req)
	if err != nil {
		return model.Reply{}, err
	}
	call := &span{node: s.node, from: from, body: string(body), began: time.Now()}
	s.c.mu.Lock()
	s.c.spans = append(s.c.spans, call)
	s.c.mu.Unlock()
	defer func() {
		s.c.mu.Lock()
		call.end = time.Now()
		s.c.mu.Unlock()
	}()
	return s.brain.Call(ctx, from, req, onText)
}

// link stands between a node and the storage, in the hands of a test.
type link struct {
	eventstore.Store
	mu sync.Mutex
	// renew stands in the way of renewals; nil: nothing does.
	renew func(context.Context, eventstore.Lease) error
	// claimed is when the node last claimed.
	claimed time.Time
	// alone: claims, announcements and looks at the other nodes fail.
	alone bool
	// before is called before the n-th append, counted from 1.
	before func(n int)
	// late is how long an append is under way, whoever still waits for it.
	late    time.Duration
	appends int
	// believes is what a deluded node goes on to see of the nodes; it has the
	// messages of its inbox from ghosts.
	believes *eventstore.Cluster
	ghosts   chan eventstore.Envelope
}

func (l *link) set(change func(*link)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

func (l *link) Append(ctx context.Context, k domain.Key, after eventstore.Position, c *rollcallv1.Commit) (eventstore.Recorded, error) {
	l.mu.Lock()
	l.appends++
	n, before, late := l.appends, l.before, l.late
	l.mu.Unlock()
	if before != nil {
		before(n)
	}
	if late > 0 {
		<-time.After(late)
		ctx = context.WithoutCancel(ctx)
	}
	return l.Store.Append(ctx, k, after, c)
}

func (l *link) Renew(ctx context.Context, lease eventstore.Lease) error {
	l.mu.Lock()
	renew := l.renew
	l.mu.Unlock()
	if renew != nil {
		return renew(ctx, lease)
	}
	return l.Store.Renew(ctx, lease)
}

// cut takes the leases and the other nodes from the node, and nothing else.
func (l *link) cut(renew func(context.Context, eventstore.Lease) error) {
	l.set(func(l *link) { l.renew, l.alone = renew, true })
}

// mend gives them back.
func (l *link) mend() { l.set(func(l *link) { l.renew, l.alone = nil, false }) }

// claimedAt is when the node last claimed.
func (l *link) claimedAt() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.claimed
}

func (l *link) isAlone() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.alone {
		return faulty.ErrFault
	}
	return nil
}

func (l *link) Claim(ctx context.Context, node string, partition int) (eventstore.Lease, error) {
	if err := l.isAlone(); err != nil {
		return eventstore.Lease{}, err
	}
	lease, err := l.Store.Claim(ctx, node, partition)
	if err == nil {
		l.set(func(l *link) { l.claimed = time.Now() })
	}
	return lease, err
}

func (l *link) Announce(ctx context.Context, n eventstore.NodeInfo) (time.Duration, error) {
	if err := l.isAlone(); err != nil {
		return 0, err
	}
	return l.Store.Announce(ctx, n)
}

func (l *link) Cluster(ctx context.Context) (eventstore.Cluster, error) {
	l.mu.Lock()
	believes := l.believes
	l.mu.Unlock()
	if believes != nil {
		seen := *believes
		seen.Nodes = maps.Clone(seen.Nodes)
		return seen, nil
	}
	if err := l.isAlone(); err != nil {
		return eventstore.Cluster{}, err
	}
	return l.Store.Cluster(ctx)
}

// delude lets the node go on to believe that it holds its partitions: nothing is
// renewed any more, and it is told otherwise.
func (l *link) delude(t *testing.T) {
	t.Helper()
	now, err := l.Store.Cluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.set(func(l *link) {
		l.believes, l.ghosts = &now, make(chan eventstore.Envelope, 100)
		l.renew = func(context.Context, eventstore.Lease) error { return nil }
	})
}

func (l *link) Receive(ctx context.Context, lease eventstore.Lease) (eventstore.Receiver, error) {
	r, err := l.Store.Receive(ctx, lease)
	if err != nil {
		return nil, err
	}
	return &haunted{r, l}, nil
}

// haunted is the inbox of a node that may be deluded.
type haunted struct {
	eventstore.Receiver
	link *link
}

func (h *haunted) Next(ctx context.Context) (eventstore.Delivery, error) {
	d, err := h.Receiver.Next(ctx)
	h.link.mu.Lock()
	ghosts := h.link.ghosts
	h.link.mu.Unlock()
	if ghosts == nil || !errors.Is(err, eventstore.ErrPartitionLost) {
		return d, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case e := <-ghosts:
		return &ghost{e, time.Now()}, nil
	}
}

// ghost is a message that another node has, too.
type ghost struct {
	envelope eventstore.Envelope
	came     time.Time
}

func (g *ghost) Envelope() eventstore.Envelope      { return g.envelope }
func (g *ghost) Seq() uint64                        { return uint64(g.came.UnixNano()) } //nolint:gosec // a time of the test
func (g *ghost) Time() time.Time                    { return g.came }
func (g *ghost) Ack(context.Context) error          { return nil }
func (g *ghost) Hold() error                        { return nil }
func (g *ghost) Dead(context.Context, string) error { return nil }

// hang keeps renewals until whoever asks gives up.
func hang(ctx context.Context, _ eventstore.Lease) error {
	<-ctx.Done()
	return ctx.Err()
}

// stateHash is a member's part of the state, as the roll hashes it.
func stateHash(t *testing.T, m *domain.Member) string {
	t.Helper()
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// fenced: the log has no commit of a claim after one of a newer claim, and every
// claim is one node's.
func (w *world) fenced(t *testing.T) {
	t.Helper()
	var epoch uint64
	of := map[uint64]string{}
	err := w.disk.Load(t.Context(), key, eventstore.Position{}, func(r eventstore.Recorded) error {
		c := r.Commit
		if c.GetEpoch() < epoch {
			t.Errorf("version %d is of %s at epoch %d, after epoch %d", c.GetVersion(), c.GetNode(), c.GetEpoch(), epoch)
		}
		epoch = max(epoch, c.GetEpoch())
		if by := of[c.GetEpoch()]; by != "" && by != c.GetNode() {
			t.Errorf("epoch %d is of %s and of %s", c.GetEpoch(), by, c.GetNode())
		}
		of[c.GetEpoch()] = c.GetNode()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// apart: no two nodes asked the model for one member at a time, unless the first
// of them was lost.
func (c *cluster) apart(t *testing.T, lost ...string) {
	t.Helper()
	all := c.asked()
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.from.Key != b.from.Key || a.from.Member != b.from.Member || b.began.Before(a.began) {
				continue
			}
			if (a.end.IsZero() || b.began.Before(a.end)) && !contains(lost, a.node) {
				t.Errorf("%s asks the model for %s, run %s step %d, while %s does, for run %s step %d", b.node, b.from.Member, b.from.Run, b.from.Step, a.node, a.from.Run, a.from.Step)
			}
		}
	}
}

func contains(all []string, s string) bool {
	for _, one := range all {
		if one == s {
			return true
		}
	}
	return false
}

var _ tool.Tool = (*device)(nil)
