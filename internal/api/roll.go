package api

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
)

func (s *Server) roll(ctx context.Context, tenant string, r ReadRequest) (any, error) {
	key := domain.Key{Tenant: tenant}
	if r.Conversation != "" {
		var err error
		if key, err = s.resolve(ctx, tenant, r.Conversation); err != nil {
			return nil, err
		}
		if err := s.mustExist(ctx, key); err != nil {
			return nil, err
		}
		if err := s.await(ctx, key, r.AtLeast); err != nil {
			return nil, err
		}
	}
	members, err := s.rollOfAll(ctx, key)
	slices.SortFunc(members, func(a, b MemberRoll) int {
		return cmp.Or(cmp.Compare(a.Conversation, b.Conversation), cmp.Compare(ordinal(a.ID), ordinal(b.ID)))
	})
	return RollAnswer{Members: members}, err
}

type rollHereAnswer struct {
	Members []MemberRoll `json:"members"`
	// Partitions that the node answered for.
	Partitions []int `json:"partitions"`
}

func (s *Server) rollHere(ctx context.Context, tenant string, r hereRequest) (any, error) {
	members, covered, err := s.cfg.Roller.Roll(ctx, domain.Key{Tenant: tenant, Conversation: r.Conversation}, r.Partitions)
	return rollHereAnswer{Members: members, Partitions: covered}, err
}

// rollOfAll has every node call the roll of its partitions, again while some
// partition is on its way from one node to another.
func (s *Server) rollOfAll(ctx context.Context, key domain.Key) ([]MemberRoll, error) {
	missing := make([]int, 0, domain.Partitions)
	for p := range domain.Partitions {
		if key.Conversation == "" || p == key.Partition() {
			missing = append(missing, p)
		}
	}
	members := []MemberRoll{}
	for {
		answers, err := s.askRolls(ctx, key, missing)
		for _, a := range answers {
			for _, m := range a.Members {
				// Two nodes may both have held a partition while they were asked.
				if slices.Contains(missing, (domain.Key{Tenant: key.Tenant, Conversation: m.Conversation}).Partition()) {
					members = append(members, m)
				}
			}
			missing = slices.DeleteFunc(missing, func(p int) bool { return slices.Contains(a.Partitions, p) })
		}
		if err != nil || len(missing) == 0 {
			return members, err
		}
		select {
		case <-ctx.Done():
			return members, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// askRolls asks this node and all others at once. A node that does not answer
// is left out: it may be gone.
func (s *Server) askRolls(ctx context.Context, key domain.Key, partitions []int) ([]rollHereAnswer, error) {
	var out []rollHereAnswer
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, peer := range s.cfg.Cluster.Peers() {
		asking.Go(func() {
			a, err := ask[rollHereAnswer](ctx, s, peer, key.Tenant, "roll-here", hereRequest{Conversation: key.Conversation, Partitions: partitions})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				out = append(out, a)
			}
		})
	}
	members, covered, err := s.cfg.Roller.Roll(ctx, key, partitions)
	asking.Wait()
	return append(out, rollHereAnswer{Members: members, Partitions: covered}), err
}
