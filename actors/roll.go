package actors

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Present is one member's answer to the roll, from its own actor.
type Present struct {
	Conversation string `json:"conversation"`
	Member       string `json:"id"`
	Name         string `json:"name"`
	Status       string `json:"status"`
	Unread       int    `json:"unread"`
	Node         string `json:"node"`
	// Version of the conversation that the member was rebuilt at.
	Version uint64 `json:"version"`
	// StateHash covers all that the state holds of the member: the same log
	// gives the same hash on any node.
	StateHash string `json:"state_hash"`
}

func (p Present) answeredBy(id string) Present {
	p.Member = id
	return p
}

// roll collects the answers of one conversation. Its actor alone touches it.
type roll struct {
	out     chan<- []Present
	missing int
	answers []Present
}

// add takes the answer of the member at that place of the roster.
func (r *roll) add(place int, p Present) {
	r.answers[place] = p
	if r.missing--; r.missing == 0 {
		r.out <- r.answers
	}
}

// callRoll asks every member that is not shut down, through its actor.
func (c *conversation) callRoll(a actor.Context) {
	if c.state == nil {
		if c.box.quarantine != nil {
			c.rollNone()
		}
		return
	}
	for _, call := range c.rolls {
		members := c.roster()
		r := &roll{out: call.out, missing: len(members), answers: make([]Present, len(members))}
		if r.missing == 0 {
			r.out <- nil
			continue
		}
		for i, m := range members {
			a.Send(c.member(a, m.ID).pid, &answerRoll{call: r, place: i, as: c.present(m)})
		}
	}
	c.rolls = nil
}

// roster is every member that is not shut down.
func (c *conversation) roster() []*domain.Member {
	return slices.DeleteFunc(slices.Clone(c.state.Members), func(m *domain.Member) bool {
		return m.Status == rollcallv1.MemberStatus_MEMBER_STATUS_SHUTDOWN
	})
}

func (c *conversation) present(m *domain.Member) Present {
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // plain data
	}
	sum := sha256.Sum256(data)
	return Present{
		Conversation: c.box.key.Conversation, Member: m.ID, Name: m.Name, Status: domain.Word(m.Status), Unread: len(m.Unread),
		Node: c.Node, Version: c.state.Version, StateHash: hex.EncodeToString(sum[:8]),
	}
}

func (c *conversation) rollNone() {
	for _, call := range c.rolls {
		call.out <- nil
	}
	c.rolls = nil
}

// warmMembers gives every member its actor, so that it can answer the roll.
func (c *conversation) warmMembers(a actor.Context) {
	for _, m := range c.roster() {
		if c.members[m.ID] != nil || c.warmed.Load() >= int64(c.WarmMembers) {
			continue
		}
		c.warmed.Add(1)
		c.warm++
		c.member(a, m.ID)
	}
}

// isWarm lets the partition go on to the next.
func (c *conversation) isWarm(a actor.Context) {
	if c.warming {
		c.warming = false
		a.Send(c.parent, &warmedUp{})
	}
}

// Roll calls the roll of one conversation, or of all conversations of the
// tenant on this node when key.Conversation is empty. Cold conversations are
// rebuilt from the log. No model is called for it. Only the given partitions are
// asked, by default all, and not those of other nodes: see Elsewhere.
func (n *Node) Roll(ctx context.Context, key domain.Key, partitions ...int) ([]Present, error) {
	if partitions == nil {
		partitions = n.Partitions
	}
	keys := []domain.Key{key}
	if key.Conversation == "" {
		n.replays.settled(ctx)
		all, err := n.Store.Conversations(ctx, partitions)
		if err != nil {
			return nil, fmt.Errorf("roll: %w", err)
		}
		keys = slices.DeleteFunc(all, func(k domain.Key) bool { return k.Tenant != key.Tenant })
	}
	keys = slices.DeleteFunc(keys, func(k domain.Key) bool {
		return !slices.Contains(partitions, k.Partition()) || n.peers.elsewhere(k.Partition())
	})
	n.busy()
	out, err := n.askAll(ctx, keys)
	if err != nil {
		return out, err
	}
	slices.SortStableFunc(out, func(a, b Present) int { return strings.Compare(a.Conversation, b.Conversation) })
	return out, nil
}

// rollAtOnce is how many conversations are asked at a time: those that work
// must not wait behind thousands that are rebuilt to answer.
const rollAtOnce = 64

// askAll gives the answers of every conversation, in any order.
func (n *Node) askAll(ctx context.Context, keys []domain.Key) ([]Present, error) {
	var out []Present
	var failed error
	var mu sync.Mutex
	var asking sync.WaitGroup
	next := make(chan domain.Key)
	for range min(rollAtOnce, len(keys)) {
		asking.Go(func() {
			for k := range next {
				answer := make(chan []Present, 1)
				n.askRoll(k, answer)
				got, err := n.awaitRoll(ctx, k, answer)
				mu.Lock()
				out = append(out, got...)
				if err != nil && failed == nil {
					failed = fmt.Errorf("roll of %s: %w", k, err)
				}
				mu.Unlock()
			}
		})
	}
	for _, k := range keys {
		if ctx.Err() != nil {
			break
		}
		next <- k
	}
	close(next)
	asking.Wait()
	return out, cmp.Or(failed, ctx.Err())
}

func (n *Node) askRoll(k domain.Key, out chan []Present) {
	if pid := n.partitions[k.Partition()]; pid != nil {
		n.system.Root.Send(pid, &rollCall{key: k, out: out})
		return
	}
	out <- nil // not ours
}

// rollAgain is how long a conversation may take to answer before it is asked
// again: what was asked of an actor that ended is lost.
const rollAgain = 2 * time.Second

// Elsewhere reports whether another node was last seen to own the partition.
func (n *Node) Elsewhere(partition int) bool { return n.peers.elsewhere(partition) }

// awaitRoll asks again while the partition is between two leases.
func (n *Node) awaitRoll(ctx context.Context, k domain.Key, answer chan []Present) ([]Present, error) {
	for !n.peers.elsewhere(k.Partition()) {
		select {
		case got, held := <-answer:
			if held {
				return got, nil
			}
		case <-time.After(rollAgain):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		pause(ctx, 50*time.Millisecond)
		answer = make(chan []Present, 1)
		n.askRoll(k, answer)
	}
	return nil, nil
}
