package api

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// LogRequest asks for a page of the log.
type LogRequest struct {
	ReadRequest
	// From is the first version wanted; 0 is 1.
	From uint64 `json:"from,omitempty"`
	// Limit is the most commits wanted; 0: as many as fit.
	Limit uint32 `json:"limit,omitempty"`
	// Raw asks for the sealed bytes too.
	Raw bool `json:"raw,omitempty"`
}

// LogAnswer is a page of the log in JSON. In protobuf it is a LogPage.
type LogAnswer struct {
	Conversation string        `json:"conversation"`
	Tenant       string        `json:"tenant"`
	Commits      []CommitEntry `json:"commits"`
	// More is true when the log goes on; ask again from the next version.
	More bool `json:"more"`
}

// CommitEntry is one commit.
type CommitEntry struct {
	Version uint64      `json:"version"`
	Events  []EventLine `json:"events"`
	// Raw is the commit as it is stored (base64), to check its hash.
	Raw []byte `json:"raw,omitempty"`
	// Seq and Headers of the message in the log's stream; with Raw only.
	Seq     uint64              `json:"seq,omitempty"`
	Headers map[string][]string `json:"headers,omitempty"`
}

// pageBytes is how many sealed bytes one answer carries at most; a single
// commit is below it.
const pageBytes = 800 << 10

func (s *Server) log(ctx context.Context, c call) (any, error) {
	if !c.binary {
		var r LogRequest
		if err := decodeJSON(c.data, &r); err != nil {
			return nil, err
		}
		return s.logJSON(ctx, c.tenant, r)
	}
	r := new(rollcallv1.LogRequest)
	if err := proto.Unmarshal(c.data, r); err != nil {
		return nil, badProtobuf("rollcall.v1.LogRequest", err)
	}
	key, err := s.resolve(ctx, c.tenant, r.GetConversation())
	if err != nil {
		return nil, err
	}
	if err := s.await(ctx, key, r.GetAtLeast()); err != nil {
		return nil, err
	}
	out := &rollcallv1.LogPage{Conversation: key.Conversation, Tenant: key.Tenant}
	out.More, err = s.page(ctx, key, r.GetFrom(), r.GetLimit(), pageBytes, func(rec eventstore.Recorded) {
		out.Commits = append(out.Commits, rec.Raw)
	})
	return out, err
}

func (s *Server) logJSON(ctx context.Context, tenant string, r LogRequest) (any, error) {
	key, err := s.resolve(ctx, tenant, r.Conversation)
	if err != nil {
		return nil, err
	}
	if err := s.await(ctx, key, r.AtLeast); err != nil {
		return nil, err
	}
	names := Names{}
	// JSON swells: escapes in texts, base64 of the raw bytes, and both at once.
	budget := pageBytes / 2
	if r.Raw {
		budget = pageBytes / 4
	}
	if err := s.namesBefore(ctx, key, r.From, names); err != nil {
		return nil, err
	}
	out := LogAnswer{Conversation: key.Conversation, Tenant: key.Tenant, Commits: []CommitEntry{}}
	out.More, err = s.page(ctx, key, r.From, r.Limit, budget, func(rec eventstore.Recorded) {
		names.Add(rec.Commit)
		e := CommitEntry{Version: rec.Commit.GetVersion(), Events: Render(key.Conversation, rec.Commit, names.Of)}
		if r.Raw {
			e.Raw, e.Seq, e.Headers = rec.Raw, rec.Seq, eventstore.OwnHeaders(rec.Header)
		}
		out.Commits = append(out.Commits, e)
	})
	return out, err
}

// namesBefore gives the display names of members who joined before a page.
func (s *Server) namesBefore(ctx context.Context, key domain.Key, from uint64, names Names) error {
	if from <= 1 {
		return nil
	}
	return s.folds.use(ctx, key, 0, func(f *fold) error {
		for id, name := range f.names {
			names[id] = name
		}
		return nil
	})
}

// page hands out commits from a version on until the budget of bytes is used;
// at least one. It reports whether the log goes on.
func (s *Server) page(ctx context.Context, key domain.Key, from uint64, limit uint32, budget int, take func(eventstore.Recorded)) (bool, error) {
	from = max(from, 1)
	var after eventstore.Position
	if from > 1 {
		var err error
		if after, err = s.folds.position(ctx, key, from-1); err != nil {
			return false, err
		}
		if after.Version < from-1 {
			return false, nil // nothing there yet
		}
	}
	taken, bytes := uint32(0), 0
	err := s.cfg.Store.Load(ctx, key, after, func(r eventstore.Recorded) error {
		if taken > 0 && (bytes+len(r.Raw) > budget || limit > 0 && taken >= limit) {
			return errEnough
		}
		taken++
		bytes += len(r.Raw)
		take(r)
		return nil
	})
	if errors.Is(err, errEnough) {
		return true, nil
	}
	if err = logError(key, err); err != nil {
		if _, refused := errors.AsType[*domain.Refusal](err); refused && taken > 0 {
			return true, nil // what is sound is handed out; who asks on is told
		}
		return false, err
	}
	if taken == 0 && from == 1 {
		return false, s.confirmed(ctx, key, conversationUnknown(key.Conversation))
	}
	return false, nil
}
