package natsd

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/natsd/scrub"
)

// scrubbed deals with damage before the server opens its streams.
func scrubbed(cfg Config) error {
	look := scrub.Streams
	if cfg.Cluster != nil {
		look = scrub.Replicas
	}
	found, err := look(StreamsDir(cfg.Dir), DamagedDir(cfg.Dir))
	var alone *scrub.AloneError
	switch {
	case errors.As(err, &alone):
		return replicaDamaged(cfg.Dir, alone)
	case err != nil:
		return unusable(cfg.Dir, err)
	case cfg.Log == nil:
		return nil
	}
	for _, d := range found {
		if d.Fetched {
			cfg.Log.Error("a copy of a stream is damaged and was put aside; the copies of the other servers are fetched", "damage", d.String(), "kept", d.Kept)
			continue
		}
		cfg.Log.Error("a damaged part of the storage was cut out; what it held is gone", "damage", d.String(), "kept", d.Kept)
	}
	return nil
}

func replicaDamaged(dir string, why *scrub.AloneError) error {
	return domain.Refuse("replica-damaged", "this server does not join its cluster with a damaged copy", why.Error(),
		fmt.Sprintf("while the other servers run, move %s away and keep it, then start this server again: it copies everything from them (docs/cluster.md)", dir))
}

// Stored is how many messages of a stream this server itself holds, whatever
// the other servers of its cluster do.
func (s *Server) Stored(stream string) (uint64, error) {
	js, err := s.inner.Jsz(&server.JSzOptions{Accounts: true, Streams: true})
	if err != nil {
		return 0, fmt.Errorf("ask the server for its copy of %s: %w", stream, err)
	}
	for _, account := range js.AccountDetails {
		for _, st := range account.Streams {
			if st.Name == stream {
				return st.State.Msgs, nil
			}
		}
	}
	return 0, fmt.Errorf("the server has no copy of %s", stream)
}
