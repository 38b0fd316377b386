package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/rollcall-dev/rollcall/domain"
)

// Subjects of the installation's operators, and between nodes. Clients have no
// way to them: only the account of the nodes has.
const (
	prefixAdmin = "rollcall.admin."
	prefixNode  = "rollcall.node."
)

// alone is a cluster of one.
type alone struct{}

func (alone) Peers() []string                           { return nil }
func (alone) Nodes(context.Context) ([]NodeLine, error) { return nil, nil }
func (alone) Drain(context.Context, string, bool) error { return nil }

// serveNodes adds what is not for clients.
func (s *Server) serveNodes() error {
	if s.cfg.Node == "" {
		return nil // nobody knows it by a name
	}
	for _, v := range []verb{
		{name: "nodes", whose: operators, impact: "read", about: "list the nodes", read: reader(s.nodes)},
		{name: "doctor-all", subject: "doctor", whose: operators, impact: "read", about: "named checks of this installation, of all tenants", read: reader(s.doctor)},
		{name: "drain", whose: operators, impact: "write", about: "have a node hand over all it works on", read: reader(s.drain)},
		{name: "roll-here", whose: nodes, impact: "read", about: "the roll of this node's members", read: reader(s.rollHere)},
		{name: "doctor-here", whose: nodes, impact: "read", about: "checks of this node", read: reader(s.doctorHere)},
	} {
		subject := prefixAdmin + cmp.Or(v.subject, v.name)
		if v.whose == nodes {
			subject = prefixNode + s.cfg.Node + ".*." + v.name
		}
		err := s.service.AddEndpoint(v.name, s.handler(v), micro.WithEndpointSubject(subject),
			micro.WithEndpointMetadata(map[string]string{"impact": v.impact, "about": v.about}))
		if err != nil {
			return fmt.Errorf("serve %s: %w", subject, err)
		}
	}
	return nil
}

// hereRequest asks a node for its part of an answer.
type hereRequest struct {
	// Conversation id; empty: all of the tenant.
	Conversation string `json:"conversation,omitempty"`
	Partitions   []int  `json:"partitions,omitempty"`
	// Everybody: of all tenants.
	Everybody bool `json:"everybody,omitempty"`
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

func (s *Server) doctor(ctx context.Context, tenant string, _ ReadRequest) (any, error) {
	peers := s.cfg.Cluster.Peers()
	slices.Sort(peers)
	theirs := make([][]Check, len(peers))
	var asking sync.WaitGroup
	for i, peer := range peers {
		asking.Go(func() {
			theirs[i] = s.doctorThere(ctx, tenant, peer)
		})
	}
	checks, err := s.cfg.Doctor.Diagnose(ctx, tenant, true)
	asking.Wait()
	all := append([]Check{}, checks...)
	for _, more := range theirs {
		all = append(all, more...)
	}
	return DoctorAnswer{Node: s.cfg.Node, Checks: all}, err
}

// maxSkew is how far the clocks of nodes may differ without a word. Nothing
// rests on them: they only tell times.
const maxSkew = 2 * time.Second

func (s *Server) doctorThere(ctx context.Context, tenant, peer string) []Check {
	before := time.Now()
	req := hereRequest{Everybody: tenant == ""}
	if req.Everybody {
		tenant = anyTenant
	}
	a, err := ask[doctorHereAnswer](ctx, s, peer, tenant, "doctor-here", req)
	if err != nil {
		return []Check{{Name: "node", Level: Fail, Node: peer, Found: "does not answer", Fix: "rollcall node ls shows whether it is still there; look at its log"}}
	}
	if off := max(before.Sub(a.Time), time.Until(a.Time)); off > maxSkew {
		a.Checks = append(a.Checks, Check{
			Name: "clock", Level: Warn, Node: peer, Found: fmt.Sprintf("differs by %v from that of node %s: times in the log do too", off.Round(time.Second), s.cfg.Node),
			Fix: "let all machines keep time with NTP",
		})
	}
	return a.Checks
}

// anyTenant stands in the subject where a request is for all of them.
const anyTenant = "main"

type doctorHereAnswer struct {
	Checks []Check   `json:"checks"`
	Time   time.Time `json:"time"`
}

func (s *Server) doctorHere(ctx context.Context, tenant string, r hereRequest) (any, error) {
	if r.Everybody {
		tenant = ""
	}
	checks, err := s.cfg.Doctor.Diagnose(ctx, tenant, false)
	return doctorHereAnswer{Checks: checks, Time: time.Now()}, err
}

// NodesAnswer lists the nodes of an installation.
type NodesAnswer struct {
	Nodes []NodeLine `json:"nodes"`
}

func (s *Server) nodes(ctx context.Context, _ string, _ hereRequest) (any, error) {
	list, err := s.nodeLines(ctx)
	return NodesAnswer{Nodes: list}, err
}

// nodeLines reads who is there. A list without the node that asks, which tells
// of itself all the time, comes from servers that take nothing in any more: it
// says nothing of the others either.
func (s *Server) nodeLines(ctx context.Context) ([]NodeLine, error) {
	list, err := s.cfg.Cluster.Nodes(ctx)
	if err != nil {
		return nil, inTime("it is not known which nodes there are", err)
	}
	here := false
	for i := range list {
		if list[i].Partitions == nil {
			list[i].Partitions = []int{}
		}
		here = here || list[i].Name == s.cfg.Node && list[i].Status != "gone"
	}
	if !here {
		return nil, domain.Refuse(unavailable, "it is not known which nodes there are", "NATS does not even know of the node that answers, "+s.cfg.Node, tryLater)
	}
	return list, nil
}

type drainRequest struct {
	Node string `json:"node"`
	Off  bool   `json:"off,omitempty"`
}

func (s *Server) drain(ctx context.Context, _ string, r drainRequest) (any, error) {
	list, err := s.nodeLines(ctx)
	if err != nil {
		return nil, err
	}
	others := 0
	there := false
	for _, n := range list {
		there = there || n.Name == r.Node
		if n.Name != r.Node && n.Status == "up" && !n.Drained {
			others++
		}
	}
	switch {
	case !there:
		return nil, domain.Refuse("node-not-found", "there is no node "+quote(r.Node), "none of that name is there, holds anything or is drained", "rollcall node ls lists them")
	case !r.Off && others == 0:
		return nil, domain.Refuse("node-is-last", "node "+r.Node+" cannot be drained", "no other node is up to take its work", "start another first, or stop this one: what it works on waits for the next")
	}
	if err := s.cfg.Cluster.Drain(ctx, r.Node, !r.Off); err != nil {
		return nil, inTime("the wish for node "+r.Node+" could not be stored", err)
	}
	return s.nodes(ctx, "", hereRequest{})
}

// ask reads a part of an answer from another node.
func ask[Answer any](ctx context.Context, s *Server, node, tenant, verb string, req any) (Answer, error) {
	var out Answer
	data, err := Marshal(req)
	if err != nil {
		return out, err
	}
	body, err := s.peers.try(ctx, prefixNode+node+"."+tenant+"."+verb, data, false)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return out, fmt.Errorf("read the answer of node %s to %s: %w", node, verb, err)
	}
	return out, nil
}
