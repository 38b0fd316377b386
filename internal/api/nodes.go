package api

import (
	"cmp"
	"context"
	"fmt"

	"github.com/nats-io/nats.go/micro"

	"github.com/rollcall-dev/rollcall/domain"
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
	return inJSON[Answer](verb+" of node "+node, req, func(data []byte) ([]byte, error) {
		return s.peers.try(ctx, prefixNode+node+"."+tenant+"."+verb, data, false)
	})
}
