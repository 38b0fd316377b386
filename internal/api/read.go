package api

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/projections"
)

// ReadRequest are the fields that every read of one conversation takes.
type ReadRequest struct {
	// Conversation is an id, a name or a unique prefix.
	Conversation string `json:"conversation,omitempty"`
	// Member is an id, a display name or a unique prefix; empty: all.
	Member string `json:"member,omitempty"`
	// At reads the conversation as it stood at this version; 0: as it stands.
	At uint64 `json:"at,omitempty"`
	// AtLeast waits until the conversation has this version.
	AtLeast uint64 `json:"at_least,omitempty"`
}

// reading is one conversation, found and waited for.
type reading struct {
	key   domain.Key
	views Views
	// version that views show.
	version uint64
	// member is the id of the member asked for; empty: all.
	member string
}

// read finds the conversation of a request and calls fn with views of it that
// show at least what the log held when the request came. about, if not nil,
// sees the state at that point.
func (s *Server) read(ctx context.Context, tenant string, r ReadRequest, about func(*fold) error, fn func(reading) error) error {
	key, err := s.resolve(ctx, tenant, r.Conversation)
	if err != nil {
		return err
	}
	if err := s.await(ctx, key, r.AtLeast); err != nil {
		return err
	}
	got := reading{key: key, views: s.cfg.Views}
	err = s.folds.use(ctx, key, r.At, func(f *fold) error {
		got.version = f.state.Version
		if r.Member != "" {
			var err error
			if got.member, err = f.member(r.Member); err != nil {
				return err
			}
		}
		if about == nil {
			return nil
		}
		return about(f)
	})
	if err != nil {
		return s.confirmed(ctx, key, err)
	}
	if r.At > 0 {
		return s.past(ctx, key, r.At, func(v Views) error {
			got.views = v
			return fn(got)
		})
	}
	if err := s.cfg.Views.WaitFor(ctx, key, got.version); err != nil {
		return err
	}
	return fn(got)
}

// await waits until the log holds the version.
func (s *Server) await(ctx context.Context, key domain.Key, version uint64) error {
	if version == 0 {
		return nil
	}
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 250*time.Millisecond) {
		_, err := s.cfg.Store.At(ctx, key, []uint64{version})
		if err == nil {
			return nil
		}
		if !errors.Is(err, eventstore.ErrNotFound) {
			return logError(key, err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return domain.Refuse("version-not-found", fmt.Sprintf("conversation %s has not reached version %d", key.Conversation, version),
				"the wait for it ran out", "ask again later, or without at_least")
		}
	}
}

func (s *Server) list(ctx context.Context, tenant string, r ReadRequest) (any, error) {
	if r.AtLeast > 0 {
		if err := s.read(ctx, tenant, r, nil, func(reading) error { return nil }); err != nil {
			return nil, err
		}
	}
	behind := s.catchUp(ctx)
	all, err := s.cfg.Views.Conversations(ctx, tenant)
	return ListAnswer{List: projections.List{Conversations: all}, Behind: behind != nil}, err
}

func (s *Server) show(ctx context.Context, tenant string, r ReadRequest) (any, error) {
	d := Detail{Teams: []Team{}, Approvals: []Approval{}, Waits: []Wait{}}
	err := s.read(ctx, tenant, r, func(f *fold) error {
		d.describe(f)
		if r.Member == "" {
			return nil
		}
		var err error
		d.Toolset, err = s.toolsetOf(f, r.Member, r.At > 0)
		return err
	}, func(got reading) (err error) {
		if d.Detail, err = got.views.Conversation(ctx, got.key); err == nil && got.member != "" {
			d.only(got.member)
		}
		return err
	})
	return d, err
}

// only leaves one member and its runs.
func (d *Detail) only(member string) {
	d.Members = slices.DeleteFunc(d.Members, func(m projections.MemberDetail) bool { return m.ID != member })
	d.Runs = slices.DeleteFunc(d.Runs, func(r projections.Run) bool { return r.MemberID != member })
	if len(d.Runs) == 0 {
		return
	}
	d.Tools = d.bindings[d.Runs[len(d.Runs)-1].AgentHash]
}

func (d *Detail) describe(f *fold) {
	d.Verdict = VerdictOf(f.state)
	d.Budget = budgetOf(f.state)
	d.Approvals = approvalsOf(f.state)
	d.Waits = waitsOf(f.state)
	d.Guards = maps.Clone(f.state.Guards)
	d.Hash, d.StateHash = hex.EncodeToString(f.state.LastHash), f.state.Hash()
	d.bindings = map[string][]Tool{}
	for hash, b := range f.state.Bindings {
		for _, t := range b.Tools {
			tool := Tool{Name: t.GetName(), Description: t.GetDescription(), Source: "node", Idempotent: t.GetIdempotent(), NeedsApproval: t.GetNeedsApproval()}
			if t.GetCoordination() {
				tool.Source = "contract"
			}
			d.bindings[hash] = append(d.bindings[hash], tool)
		}
	}
	for _, t := range f.state.Teams {
		d.Teams = append(d.Teams, Team{ID: t.ID, Name: t.Name, Goal: t.Goal, Active: t.Active})
	}
}

func budgetOf(s *domain.State) Budget {
	return Budget{Tokens: s.Budget.Tokens, Cost: Units(s.Budget.CostMicros), Steps: s.Budget.Steps}
}

// ordinal is the place of a member in the order of joining: lead, m1, m2, ...
func ordinal(id string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(id, "m")) // the Lead: 0
	return n
}

// MailRequest asks for messages.
type MailRequest struct {
	ReadRequest
	// Limit is the number of messages wanted, the newest ones; 0: 200.
	Limit int `json:"limit,omitempty"`
	// Unread leaves out what was consumed.
	Unread bool `json:"unread,omitempty"`
}

const defaultMail = 200

func (s *Server) mail(ctx context.Context, tenant string, r MailRequest) (any, error) {
	if r.Limit <= 0 {
		r.Limit = defaultMail
	}
	var out MailAnswer
	toUser := r.Member == domain.User || r.Member == domain.Operator
	if toUser {
		r.Member = ""
	}
	err := s.read(ctx, tenant, r.ReadRequest, nil, func(got reading) (err error) {
		if toUser {
			got.member = domain.User
		}
		out = MailAnswer{Conversation: got.key.Conversation, Version: got.version}
		out.Messages, err = got.views.Mail(ctx, got.key, got.member, r.Limit, r.Unread)
		return err
	})
	return out, err
}

func (s *Server) files(ctx context.Context, tenant string, r ReadRequest) (any, error) {
	var out FilesAnswer
	err := s.read(ctx, tenant, r, nil, func(got reading) (err error) {
		out = FilesAnswer{Conversation: got.key.Conversation, Version: got.version}
		out.Files, err = got.views.Files(ctx, got.key, got.member)
		return err
	})
	return out, err
}

func (s *Server) usage(ctx context.Context, tenant string, r ReadRequest) (any, error) {
	var out UsageAnswer
	err := s.read(ctx, tenant, r, func(f *fold) error {
		out.Budget = budgetOf(f.state)
		return nil
	}, func(got reading) (err error) {
		out.Conversation, out.Version = got.key.Conversation, got.version
		out.UsageReport, err = got.views.Usage(ctx, got.key)
		return err
	})
	return out, err
}

func (s *Server) info(_ context.Context, tenant string, _ ReadRequest) (any, error) {
	return InfoAnswer{
		Node: s.cfg.Node, Version: s.cfg.Version, Tenant: tenant, Settings: s.cfg.Settings,
		Time: time.Now().UTC().Format(time.RFC3339Nano), MaxText: MaxText, MaxFile: MaxFile,
	}, nil
}
