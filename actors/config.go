package actors

import (
	"log/slog"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/model"
	"github.com/rollcall-dev/rollcall/internal/tool"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Config is what a node runs on. Store, Models and Rules are required.
type Config struct {
	// Node is the node's lasting name; a restarted node has the same one.
	Node  string
	Store eventstore.Store
	// Models answers every model call.
	Models model.Client
	// Tools are the external tools; Rules.Tools are their definitions.
	Tools []tool.Tool
	Rules *domain.Rules
	// Answer sends an answer to the subject that asked; nil drops answers.
	Answer func(subject string, a *rollcallv1.Answer)
	// Feed gets live commits and text; nil: nobody listens.
	Feed Feed
	Log  *slog.Logger

	// Life tells this process from an earlier one with the node's name; Place is
	// where it runs, and Version its program's. They are for others to read.
	Life, Place, Version string
	// ReadsOnly: the node answers, and takes no partition: it has no model to ask.
	ReadsOnly bool
	// Alone: no other node can be there, because the store is this node's own.
	Alone bool

	// Partitions to work on; nil: all.
	Partitions []int
	// MaxRuns bounds the model calls in flight on this node; 0: 64.
	MaxRuns int
	// WarmMembers bounds the members rebuilt in the background at start; 0: 20,000.
	WarmMembers int
	// PassivateAfter is how long a quiescent conversation stays in memory; 0: 10 minutes.
	PassivateAfter time.Duration
	// SnapshotEvery is the number of commits between snapshots; 0: 200.
	SnapshotEvery uint64
	// ToolTimeout bounds one external tool call; 0: 10 minutes.
	ToolTimeout time.Duration
	// DrainTimeout bounds a good-ordered stop; 0: 10 seconds.
	DrainTimeout time.Duration
}

// Feed hears what happens while it happens. Calls come from many goroutines
// and must not block.
type Feed interface {
	// Committed is called after the commit is durable.
	Committed(eventstore.Recorded)
	// Text is called with each piece of a model's text as it streams.
	Text(from model.Caller, member, text string)
}

func (c Config) withDefaults() Config {
	def := func(v, d time.Duration) time.Duration {
		if v == 0 {
			return d
		}
		return v
	}
	c.PassivateAfter = def(c.PassivateAfter, 10*time.Minute)
	c.ToolTimeout = def(c.ToolTimeout, 10*time.Minute)
	c.DrainTimeout = def(c.DrainTimeout, 10*time.Second)
	if c.MaxRuns == 0 {
		c.MaxRuns = 64
	}
	if c.WarmMembers == 0 {
		c.WarmMembers = 20_000
	}
	if c.SnapshotEvery == 0 {
		c.SnapshotEvery = 200
	}
	if c.Partitions == nil {
		for p := range domain.Partitions {
			c.Partitions = append(c.Partitions, p)
		}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Answer == nil {
		c.Answer = func(string, *rollcallv1.Answer) {}
	}
	if c.Feed == nil {
		c.Feed = silent{}
	}
	return c
}

type silent struct{}

func (silent) Committed(eventstore.Recorded)     {}
func (silent) Text(model.Caller, string, string) {}
