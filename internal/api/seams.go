package api

import (
	"context"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/projections"
)

// Store is what the service needs of the event store.
type Store interface {
	eventstore.Inbox
	eventstore.Log
	eventstore.Blobs
}

// Views are the read models; *projections.DB is one.
type Views interface {
	Conversations(ctx context.Context, tenant string) ([]projections.Conversation, error)
	Conversation(ctx context.Context, key domain.Key) (projections.Detail, error)
	Mail(ctx context.Context, key domain.Key, member string, limit int, onlyUnread bool) ([]projections.Message, error)
	Files(ctx context.Context, key domain.Key, member string) ([]projections.File, error)
	// Resolve finds the conversation that an id, a name or a unique prefix means.
	Resolve(ctx context.Context, tenant, ref string) (domain.Key, error)
	Usage(ctx context.Context, key domain.Key) (projections.UsageReport, error)
	// CatchUp returns when the views have seen a message of the log's stream.
	CatchUp(ctx context.Context, seq uint64) error
	// WaitFor returns when the views show the version of the conversation.
	WaitFor(ctx context.Context, key domain.Key, version uint64) error
}

var _ Views = (*projections.DB)(nil)

// Roller has members answer from their actors, without a model call.
type Roller interface {
	// Roll answers for one conversation, or for all of the tenant when the
	// key's Conversation is empty: for those of the partitions that are this
	// node's. covered says which of them it answered for.
	Roll(ctx context.Context, key domain.Key, partitions []int) (members []MemberRoll, covered []int, err error)
}

// Doctor runs a node's own checks.
type Doctor interface {
	// Diagnose looks at this node and, if whole, at what all nodes share.
	Diagnose(ctx context.Context, tenant string, whole bool) ([]Check, error)
}

// Cluster knows the nodes on the NATS of this one.
type Cluster interface {
	// Peers are the names of the others, as last seen.
	Peers() []string
	Nodes(ctx context.Context) ([]NodeLine, error)
	// Drain asks a node to have no partition, or takes that back.
	Drain(ctx context.Context, name string, on bool) error
}

// NodeLine is one node as node ls shows it.
type NodeLine struct {
	Name string `json:"name"`
	// Status is up, no model (it only reads, and takes no work), leaving, or gone:
	// what is gone still holds what has not lapsed.
	Status string `json:"status"`
	// Drained: an operator wants it to have nothing.
	Drained bool `json:"drained"`
	// Partitions that it works on.
	Partitions []int `json:"partitions"`
	// Place is its machine and data directory.
	Place   string     `json:"place,omitempty"`
	Version string     `json:"version,omitempty"`
	Started *time.Time `json:"started,omitempty"`
}

// MemberRoll is a member's own answer to the roll.
type MemberRoll struct {
	Conversation string `json:"conversation"`
	ID           string `json:"id"`
	Name         string `json:"name"`
	Status       string `json:"status"`
	Unread       int    `json:"unread"`
	// Node that hosts the actor.
	Node string `json:"node"`
	// Version and StateHash of the state that the actor answered from.
	Version   uint64 `json:"version"`
	StateHash string `json:"state_hash"`
}

// Check is one named finding of doctor.
type Check struct {
	Name string `json:"name"`
	// Level is ok, warn or fail.
	Level string `json:"level"`
	Found string `json:"found"`
	// Fix says what to do; empty when all is well.
	Fix string `json:"fix,omitempty"`
	// Node that looked; empty for the command line itself.
	Node string `json:"node,omitempty"`
}

// Levels of a Check.
const (
	OK   = "ok"
	Warn = "warn"
	Fail = "fail"
)
