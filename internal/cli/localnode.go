package cli

import (
	"context"
	"path/filepath"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
)

// awaitHolder waits for the node that holds the data directory: one that starts,
// stops or is slow is no reason to start another. Without such a node it gives
// neither a client nor an error.
func (s *session) awaitHolder(ctx context.Context) (*api.Client, error) {
	deadline := time.Now().Add(startWait)
	for {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !nodefile.Held(s.cfg.Data) {
			return nil, nil
		}
		if time.Now().After(deadline) {
			return nil, domain.Refuse("node-unreachable", "the node that runs here does not answer", holder(s.nodeInfo())+" holds "+s.cfg.Data,
				"look into "+filepath.Join(s.cfg.Data, nodefile.LOG)+", or stop that process")
		}
		if c, ok := s.reach(ctx); ok {
			return c, nil
		}
		_ = rest(ctx, 20*time.Millisecond) // its error is looked at above
	}
}

func holder(process string) string {
	if process == "" {
		return "a process"
	}
	return process
}
