package model

import (
	"net/http"
	"testing"
	"time"
)

// FuzzWish: whatever a server writes of how long it wants to be left alone, it
// is no time below 0, and what holds everybody back is bounded.
func FuzzWish(f *testing.F) {
	for _, s := range []string{"1", "1.5s", "-1", "NaN", "1e400", "Wed, 21 Oct 2015 07:28:00 GMT", "soon", "\xff", "1h"} {
		f.Add(429, s, "0", s, "Please try again in 1m2.5s")
		f.Add(503, "", "", "", "retry in "+s)
	}
	f.Fuzz(func(t *testing.T, status int, after, left, reset, words string) {
		h := http.Header{}
		for name, value := range map[string]string{
			"Retry-After": after, "Retry-After-Ms": reset, "Date": words, "X-Ratelimit-Remaining-Requests": left, "X-Ratelimit-Reset-Requests": reset,
		} {
			h.Set(name, value)
		}
		now := time.Unix(1_700_000_000, 0)
		wish := wishOf(h, status, words, now)
		if wish < 0 {
			t.Fatalf("the wish is %v", wish)
		}
		g := new(gate)
		g.busy(wish)
		if until := time.Until(g.shut); until > maxHold {
			t.Fatalf("the gate is shut for %v", until)
		}
	})
}
