package node

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/auth"
	"github.com/rollcall-dev/rollcall/internal/natsd"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
)

// footing is whose NATS server a node stands on.
type footing int

const (
	// onOwn: its own server, and no other.
	onOwn footing = iota
	// inCluster: its own server is one of several.
	inCluster
	// onOthers: servers that it does not run.
	onOthers
)

// ground is the NATS that a node stands on, ready for its event store.
type ground struct {
	nc    *nats.Conn
	store eventstore.Config
	// alone: no other node can be there.
	alone   bool
	footing footing
}

// stand finds or makes the ground, and names the node.
func (n *Node) stand(ctx context.Context, cfg Config) (ground, error) {
	switch url := cfg.Settings.NATS.URL; {
	case cfg.Cluster != "":
		return n.cluster(ctx, cfg)
	case cfg.Join:
		to := cfg.Settings.NATS
		return n.join(ctx, cfg, nodefile.Info{
			URL: to.URL, Token: to.Token.Reveal(), User: to.User, Password: to.Password.Reveal(),
			Creds: to.Creds, NKey: to.NKey, CA: to.CA, Cert: to.Cert, Key: to.Key,
		})
	case url != "":
		return ground{}, domain.Refuse("nats-elsewhere", "cannot start a node with its own NATS server beside "+url,
			"NATS_URL or a context names another one", "rollcall up --join "+url+" starts a node on it; without NATS_URL and NATS_CONTEXT one is started here")
	}
	return n.embed(ctx, cfg)
}

// embed starts a server in the data directory, for this node alone.
func (n *Node) embed(ctx context.Context, cfg Config) (ground, error) {
	set := cfg.Settings
	n.address.Token = rand.Text()
	server, err := natsd.Start(natsd.Config{Dir: set.Data, Port: -1, Token: n.address.Token, SyncAlways: set.SyncAlways, Log: cfg.Log})
	if err != nil {
		return ground{}, err
	}
	n.onClose(func(context.Context) error { server.Shutdown(); return nil })
	n.address.URL = server.URL
	n.watch(server, set.Data)
	if n.name, err = lastingName(set.Data); err != nil {
		return ground{}, err
	}
	nc, err := n.connect(server.Connect)
	if err != nil {
		return ground{}, err
	}
	g := ground{nc: nc, alone: true, store: eventstore.Config{LeaseTTL: aloneTTL, OnDisk: natsd.OnDisk(set.Data), Log: cfg.Log}}
	return g, eventstore.Provision(ctx, nc, g.store)
}

// join connects to servers that are not this node's.
func (n *Node) join(ctx context.Context, cfg Config, at nodefile.Info) (ground, error) {
	set := cfg.Settings
	lock, err := natsd.LockDir(set.Data)
	if err != nil {
		return ground{}, err
	}
	n.onClose(func(context.Context) error { return lock.Release() })
	if n.name, err = lastingName(set.Data); err != nil {
		return ground{}, err
	}
	n.address = at
	n.address.Joined = true
	nc, err := n.connect(func(o ...nats.Option) (*nats.Conn, error) { return api.Dial(api.At(n.address), "", o...) })
	if err != nil {
		return ground{}, err
	}
	g := ground{nc: nc, footing: onOthers, store: eventstore.Config{Log: cfg.Log}}
	return g, eventstore.Ready(ctx, nc, g.store)
}

// starting are the refusals of a cluster whose servers are not all there yet, or
// have not looked at their accounts.
var starting = []string{"nats-unreachable", "installation-missing", "jetstream-unavailable", "jetstream-missing", "replicas-too-many"}

// joinLater waits for the cluster, which may be starting too.
func (n *Node) joinLater(ctx context.Context, cfg Config, at nodefile.Info) (ground, error) {
	for told, before := false, len(n.undo); ; told = true {
		g, err := n.join(ctx, cfg, at)
		refused, ok := errors.AsType[*domain.Refusal](err)
		if !ok || !slices.Contains(starting, refused.Code) || ctx.Err() != nil {
			return g, err
		}
		if !told {
			n.log.Info("waiting for the cluster", "because", refused.What+": "+refused.Why)
		}
		_ = n.undoTo(ctx, before) // what the attempt left: the lock, a connection
		wait(ctx, time.Second)
	}
}

// cluster runs a server of the cluster that the folder is of, or joins it where
// the folder names none.
func (n *Node) cluster(ctx context.Context, cfg Config) (ground, error) {
	set := cfg.Settings
	bundle, err := auth.Load(cfg.Cluster)
	if err != nil {
		return ground{}, err
	}
	at := nodefile.Info{URL: bundle.URL(), Creds: bundle.Creds(), CA: bundle.CA()}
	if bundle.Server() == nil {
		return n.joinLater(ctx, cfg, at)
	}
	conf := bundle.NATS(set.Data, cfg.Log)
	conf.SyncAlways = set.SyncAlways
	server, err := natsd.Start(conf)
	if err != nil {
		return ground{}, err
	}
	n.onClose(func(context.Context) error { server.Shutdown(); return nil })
	n.watch(server, set.Data)
	n.name, n.address = bundle.Server().Name, at
	n.address.Joined = true
	err = server.WaitCluster(ctx, bundle.Others(), func(missing []string) {
		if len(missing) > 0 {
			n.log.Info("waiting for the other servers of the cluster", "missing", strings.Join(missing, ", "))
		}
	})
	if err != nil {
		return ground{}, err
	}
	nc, err := n.connect(server.Connect)
	if err != nil {
		return ground{}, err
	}
	g := ground{nc: nc, footing: inCluster, store: eventstore.Config{Replicas: bundle.Replicas(), Log: cfg.Log}}
	return g, n.provision(ctx, nc, g.store, bundle.Auditors())
}

// provision waits for as many servers as there shall be copies: the first time
// two of three are not enough.
func (n *Node) provision(ctx context.Context, nc *nats.Conn, cfg eventstore.Config, auditors []auth.Auditor) error {
	for told := false; ; told = true {
		err := eventstore.Provision(ctx, nc, cfg)
		for _, a := range auditors {
			if err == nil {
				_, err = eventstore.PrepareAuditor(ctx, nc, a.Name, a.Tenant)
			}
		}
		refused, ok := errors.AsType[*domain.Refusal](err)
		if !ok || !slices.Contains(starting, refused.Code) {
			return err
		}
		if !told {
			n.log.Info("the streams wait for more servers of the cluster", "because", refused.Why)
		}
		wait(ctx, 500*time.Millisecond)
		if ctx.Err() != nil {
			return err
		}
	}
}

// connect makes the node's connection. One that is closed for good, while the
// node is not, fails the node.
func (n *Node) connect(dial func(...nats.Option) (*nats.Conn, error)) (*nats.Conn, error) {
	closed := make(chan struct{})
	ending := make(chan struct{})
	nc, err := dial(
		nats.Name("rollcall node "+n.name),
		nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				n.log.Warn("the connection to NATS broke; it is made again", "error", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) { n.log.Info("connected to NATS again", "server", nc.ConnectedAddr()) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { n.log.Warn("nats", "error", err) }),
		nats.ClosedHandler(func(nc *nats.Conn) {
			select {
			case <-ending:
			default:
				n.fail(domain.Refuse("nats-closed", "NATS does not take this node any more", lastError(nc), "mend that, then start the node again: it goes on from what was acknowledged"))
			}
			close(closed)
		}),
	)
	if err != nil {
		return nil, err
	}
	n.onClose(func(context.Context) error { close(ending); nc.Close(); <-closed; return nil })
	return nc, nil
}

// pingInterval finds a connection that went dead without a word before a lease
// on it lapses twice.
const pingInterval = 2 * time.Second

func lastError(nc *nats.Conn) string {
	if err := nc.LastError(); err != nil {
		return err.Error()
	}
	return "it closed the connection"
}

// place is the machine and data directory, for others to tell lives of one name
// apart.
func place(dir string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + ":" + dir
}

// wait rests for a while, or less when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
