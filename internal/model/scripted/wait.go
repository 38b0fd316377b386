package scripted

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// wait keeps a request as long as its rule says: at its hold, then for its
// delay. It is false when the client, or the server, went away meanwhile.
func (s *Server) wait(ctx context.Context, n int, r rule) bool {
	if r.Hold != "" {
		h := s.enter(r.Hold, n)
		select {
		case <-h.open:
		case <-ctx.Done():
		}
		s.leave(h, n)
	}
	if r.DelayMS > 0 {
		timer := time.NewTimer(time.Duration(r.DelayMS) * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

func (s *Server) enter(name string, n int) *hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hold(name)
	h.at = append(h.at, n)
	s.change()
	return h
}

func (s *Server) leave(h *hold, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.at = slices.DeleteFunc(h.at, func(m int) bool { return m == n })
	s.change()
}

// hold is the hold of that name; s.mu is held.
func (s *Server) hold(name string) *hold {
	h := s.holds[name]
	if h == nil {
		h = &hold{open: make(chan struct{})}
		s.holds[name] = h
	}
	return h
}

// change wakes all that wait for the record; s.mu is held.
func (s *Server) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Release opens a hold of the script for those who wait there and for all who
// come later.
func (s *Server) Release(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hold(name)
	select {
	case <-h.open:
	default:
		close(h.open)
	}
}

// WaitFor returns the first request, past or to come, that match accepts. It
// is called again when a request has ended. The error is that of ctx and lists
// what came instead.
func (s *Server) WaitFor(ctx context.Context, match func(Request) bool) (Request, error) {
	for {
		s.mu.Lock()
		requests, changed := slices.Clone(s.requests), s.changed
		s.mu.Unlock()
		if i := slices.IndexFunc(requests, match); i >= 0 {
			return requests[i], nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Request{}, fmt.Errorf("wait for a model request: %w; there were %s", ctx.Err(), listOf(requests))
		}
	}
}

// WaitHeld returns the first request that waits at a hold of the script.
func (s *Server) WaitHeld(ctx context.Context, name string) (Request, error) {
	for {
		s.mu.Lock()
		at, changed := s.hold(name).at, s.changed
		var r Request
		if len(at) > 0 {
			r = s.requests[at[0]-1]
		}
		requests := slices.Clone(s.requests)
		s.mu.Unlock()
		if r.N > 0 {
			return r, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Request{}, fmt.Errorf("wait for a request at hold %s: %w; there were %s", name, ctx.Err(), listOf(requests))
		}
	}
}

// listOf names requests by member and step, for messages of tests.
func listOf(requests []Request) string {
	if len(requests) == 0 {
		return "none"
	}
	var s string
	for i, r := range requests {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprintf("%s %s.%s", r.Member, r.Run, r.Step)
		switch {
		case r.Refused != "":
			s += " (refused: " + r.Refused + ")"
		case r.Rule > 0:
			s += fmt.Sprintf(" (rule %d)", r.Rule)
		}
	}
	return s
}
