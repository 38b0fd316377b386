package api

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

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
