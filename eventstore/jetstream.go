package eventstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/domain"
)

// Config says how the store uses its NATS server. The zero value is usable.
type Config struct {
	// Replicas of every stream: 1 by default; 3 in a cluster.
	Replicas int
	// InboxBytes is the inbox's size limit, InboxBytes by default.
	InboxBytes int64
	// CacheBytes bounds the recent commits kept in memory, 32 MiB by default.
	CacheBytes int
	// LeaseTTL is how long a claim of a partition lasts without renewal,
	// LeaseTTL by default. Where no other node can be, a long one spares the
	// disk and forgives a busy machine.
	LeaseTTL time.Duration
	// OnDisk names streams whose messages lie on the server's disk: one that the
	// server does not know, because its settings are damaged, has them again when
	// it is made again.
	OnDisk []string
	// EveryEpoch has provisioning look at every conversation's epoch, not only
	// at the newest commit's: for a log and a bucket of nodes that may come from
	// different backups.
	EveryEpoch bool
	// Log takes what is odd but harmless, such as a corrupt snapshot; nil drops it.
	Log *slog.Logger
}

// JetStream is the event store on NATS JetStream. It is safe for concurrent
// use. It starts no goroutine of its own: Follow runs in its caller's, and a
// Receiver waits in its reader's.
type JetStream struct {
	nc  *nats.Conn
	js  jetstream.JetStream
	log *slog.Logger

	// auditAPI is the prefix of JetStream's API for an auditor, who may not ask
	// the leader of a stream; empty for a node.
	auditAPI string

	// replicated is set when the streams have more than one replica.
	replicated bool

	// leaseTTL of the claims of this store.
	leaseTTL time.Duration

	recent *recent

	mu sync.Mutex
	// renewed holds the revision of each lease of this process.
	renewed map[Lease]uint64
	// listeners are subscriptions that nobody uses at the moment.
	listeners []*listener
}

var _ Store = (*JetStream)(nil)

// Open binds a provisioned installation. The connection stays the caller's.
// Without streams it returns a *domain.Refusal; see Provision.
func Open(ctx context.Context, nc *nats.Conn, cfg Config) (*JetStream, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("open the event store: %w", err)
	}
	if limit := nc.MaxPayload(); limit < MaxCommit+headroom {
		return nil, domain.Refuse("nats-payload", "cannot use this NATS server",
			fmt.Sprintf("its max_payload is %d bytes, a commit may have %d", limit, MaxCommit),
			"set max_payload to 1MB, its default")
	}
	replicated := false
	for _, want := range Streams(cfg) {
		s, err := js.Stream(ctx, want.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil, domain.Refuse("installation-missing", "cannot use this NATS server",
				"stream "+want.Name+" does not exist", "rollcall node init sets the streams up; rollcall up does it on its own server")
		}
		if err != nil {
			return nil, fmt.Errorf("open the event store: stream %s: %w", want.Name, err)
		}
		if _, err := checkStream(s.CachedInfo().Config); err != nil {
			return nil, err
		}
		replicated = replicated || s.CachedInfo().Config.Replicas > 1
	}
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &JetStream{
		nc: nc, js: js, log: log, replicated: replicated,
		leaseTTL: cmp.Or(cfg.LeaseTTL, LeaseTTL),
		recent:   newRecent(cmp.Or(cfg.CacheBytes, 32<<20)),
		renewed:  make(map[Lease]uint64),
	}, nil
}
