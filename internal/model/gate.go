package model

import (
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// Without a wish of the server's, the first hold is firstHold and each
	// further one twice the last, up to lastHold.
	firstHold = time.Second
	lastHold  = time.Minute
	// maxHold bounds what a server can wish for.
	maxHold = time.Hour
	// After a hold, callers pass one by one. The distance grows with each hold
	// and shrinks with each answer; under minSpacing it is none.
	firstSpacing = 200 * time.Millisecond
	maxSpacing   = 5 * time.Second
	minSpacing   = 20 * time.Millisecond
)

// A gate holds back all callers of one account (base URL and key) in this
// process while the server asks for it, and lets them through one by one
// afterwards, so that they do not run into the limit together again.
type gate struct {
	mu sync.Mutex
	// shut is the time before which nobody passes.
	shut time.Time
	// slot is the next free place in the line behind shut.
	slot    time.Time
	spacing time.Duration
	// held is when the last hold began, strikes how many were made in a row
	// without a wish of the server's.
	held    time.Time
	strikes int
}

var gates = struct {
	mu sync.Mutex
	by map[[sha256.Size]byte]*gate
}{by: map[[sha256.Size]byte]*gate{}}

// gateFor is the process's gate of an account. Accounts are few, so gates stay.
func gateFor(baseURL, key string) *gate {
	id := sha256.Sum256([]byte(baseURL + "\x00" + key))
	gates.mu.Lock()
	defer gates.mu.Unlock()
	g := gates.by[id]
	if g == nil {
		g = new(gate)
		gates.by[id] = g
	}
	return g
}

// pass waits until the caller may send. The error is that of ctx.
func (g *gate) pass(ctx context.Context) error {
	place := g.place(time.Now())
	for {
		now := time.Now()
		if err := ctx.Err(); err != nil {
			return err
		}
		if wait := place.Sub(now); wait > 0 {
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return ctx.Err()
			}
			continue
		}
		// A hold may have begun while the caller stood in line.
		if next, moved := g.replace(place, now); moved {
			place = next
			continue
		}
		return nil
	}
}

func (g *gate) place(now time.Time) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.take(now)
}

func (g *gate) replace(place, now time.Time) (time.Time, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !place.Before(g.shut) {
		return place, false
	}
	return g.take(now), true
}

// take gives the next place in the line.
func (g *gate) take(now time.Time) time.Time {
	if g.spacing == 0 && !now.Before(g.shut) {
		return now
	}
	place := later(later(now, g.shut), g.slot)
	g.slot = place.Add(jitter(g.spacing))
	return place
}

// limited shuts the gate: a caller that sent at the given time was told that
// there are too many. wish is the server's, 0 when it has none.
func (g *gate) limited(sent time.Time, wish time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	// Callers that were under way together are told so together: that is one
	// hold, not many.
	if sent.After(g.held) {
		g.held = now
		g.strikes++
		g.spacing = min(max(2*g.spacing, firstSpacing), maxSpacing)
	} else if wish <= 0 {
		return
	}
	if wish <= 0 {
		hold := min(firstHold<<min(g.strikes-1, 10), lastHold)
		wish = hold/2 + jitter(hold/2)
	}
	g.hold(now, wish)
}

// hold shuts the gate for as long as the server wishes.
func (g *gate) hold(now time.Time, wish time.Duration) {
	g.shut = later(g.shut, now.Add(min(wish, maxHold)))
	g.slot = later(g.slot, g.shut)
}

// busy shuts the gate for a server that is overloaded and says for how long.
func (g *gate) busy(wish time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spacing = max(g.spacing, firstSpacing)
	g.hold(time.Now(), wish)
}

// answered notes a good answer to a caller that sent at the given time.
func (g *gate) answered(sent time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !sent.After(g.held) {
		return
	}
	g.strikes = 0
	if g.spacing /= 2; g.spacing < minSpacing {
		g.spacing = 0
	}
}

// left is how long the gate stays shut.
func (g *gate) left() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(0, time.Until(g.shut))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// jitter is between half of d and one and a half of it.
func jitter(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return d/2 + rand.N(d)
}
