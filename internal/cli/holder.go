package cli

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
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

// checkScript refuses a script that no node could serve, before one is started
// for it.
func (s *session) checkScript() error {
	file, ok := strings.CutPrefix(s.cfg.Model, "scripted:")
	if !ok {
		return nil
	}
	if _, err := scripted.Load(file); err != nil {
		return domain.Refuse("script-invalid", "the script of the model cannot be served", err.Error(), "mend the line and column it names, or choose another with --model")
	}
	return nil
}
