package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A part of an answer comes after a while.
type part struct {
	after time.Duration
	text  string
}

// slow is a server that answers each request with parts, in fake time. The
// last part without text leaves the answer open for ever.
type slow struct {
	id     atomic.Int64
	mu     sync.Mutex
	sent   []time.Time
	status int
	header http.Header
	head   time.Duration
	parts  []part
	// answer, if set, decides for each request, numbered from 1.
	answer func(n int) (int, http.Header)
}

func (s *slow) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.sent = append(s.sent, time.Now())
	status, header := s.status, s.header
	if s.answer != nil {
		status, header = s.answer(len(s.sent))
	}
	s.mu.Unlock()
	if err := rest(req.Context(), s.head); err != nil {
		return nil, err
	}
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Header: header, Request: req, Body: &slowBody{ctx: req.Context(), parts: s.parts}}, nil
}

type slowBody struct {
	ctx   context.Context
	parts []part
	text  string
}

func (b *slowBody) Close() error { return nil }

func (b *slowBody) Read(p []byte) (int, error) {
	for b.text == "" {
		if len(b.parts) == 0 {
			return 0, io.EOF
		}
		if err := rest(b.ctx, b.parts[0].after); err != nil {
			return 0, err
		}
		if b.text = b.parts[0].text; b.text == "" {
			<-b.ctx.Done()
			return 0, b.ctx.Err()
		}
		b.parts = b.parts[1:]
	}
	n := copy(p, b.text)
	b.text = b.text[n:]
	return n, nil
}

func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// client is one of an account of the server's own: fake time begins anew in
// every test, and gates stay.
func (s *slow) client(cfg Config) *OpenAI {
	s.id.CompareAndSwap(0, stubs.Add(1))
	cfg.HTTPClient = &http.Client{Transport: s}
	cfg.BaseURL = fmt.Sprintf("http://%d.test/v1", s.id.Load())
	return New(cfg)
}

func TestTimeouts(t *testing.T) {
	cfg := Config{FirstByte: 10 * time.Minute, Idle: time.Minute, Total: time.Hour}
	keepAlive := part{9 * time.Minute, ": wait\n\n"}
	for name, c := range map[string]struct {
		head  time.Duration
		parts []part
		took  time.Duration
		why   string // "" for a good answer
	}{
		"no headers":                   {head: 11 * time.Minute, took: 10 * time.Minute, why: "nothing for 10m0s"},
		"slow headers":                 {head: 9 * time.Minute, parts: []part{{9 * time.Minute, events(hi, stop)}}, took: 18 * time.Minute},
		"silent body":                  {parts: []part{{}}, took: 10 * time.Minute, why: "nothing for 10m0s"},
		"keep-alives before":           {parts: []part{keepAlive, keepAlive, keepAlive, {9 * time.Minute, events(hi, stop)}}, took: 36 * time.Minute},
		"blank lines before json":      {parts: []part{{9 * time.Minute, "\n"}, {9 * time.Minute, "\n"}, {9 * time.Minute, `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`}}, took: 27 * time.Minute},
		"keep-alives for ever":         {parts: []part{keepAlive, keepAlive, keepAlive, keepAlive, keepAlive, keepAlive, keepAlive, keepAlive}, took: time.Hour, why: "not finished after 1h0m0s"},
		"stall":                        {parts: []part{{time.Second, events(hi)}, {}}, took: 61 * time.Second, why: "no data for 1m0s"},
		"keep-alives in the middle":    {parts: []part{{time.Second, events(hi)}, {50 * time.Second, ": wait\n\n"}, {50 * time.Second, events(stop)}}, took: 61 * time.Second, why: "no data for 1m0s"},
		"pings in the middle":          {parts: []part{{time.Second, events(hi)}, {50 * time.Second, events(`{"type":"ping"}`)}, {50 * time.Second, events(stop)}}, took: 61 * time.Second, why: "no data for 1m0s"},
		"slow drip":                    {parts: []part{{time.Second, events(hi)}, {50 * time.Second, events(hi)}, {50 * time.Second, events(hi)}, {50 * time.Second, events(stop)}}, took: 151 * time.Second},
		"a long event in pieces":       {parts: []part{{time.Second, `data: {"choices":[{"delta":{"content":"` + strings.Repeat("x", 2000)}, {50 * time.Second, "x"}, {50 * time.Second, `"},"finish_reason":"stop"}]}` + "\n\n"}}, took: 101 * time.Second},
		"a byte now and then":          {parts: []part{{time.Second, events(hi)}, {50 * time.Second, "d"}, {50 * time.Second, "a"}}, took: 61 * time.Second, why: "no data for 1m0s"},
		"open after the finish":        {parts: []part{{time.Second, events(hi, stop)}, {}}, took: 6 * time.Second},
		"usage right after the finish": {parts: []part{{time.Second, events(hi, stop)}, {4 * time.Second, events(usageChunk)}, {}}, took: 6 * time.Second},
		"open after the end":           {parts: []part{{time.Second, events(hi, stop, done)}, {}}, took: 1200 * time.Millisecond},
		"more after the finish":        {parts: []part{{time.Second, events(hi, stop, hi)}, {40 * time.Second, events(stop)}}, took: 41 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &slow{status: 200, head: c.head, parts: c.parts}
				start := time.Now()
				_, err := s.client(cfg).Call(t.Context(), caller, question, nil)
				if took := time.Since(start); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if c.why == "" {
					if err != nil {
						t.Fatal(err)
					}
					return
				}
				if e := wantError(t, err, CodeTimeout); !e.Transient || !strings.Contains(e.Why, c.why) {
					t.Error(e)
				}
			})
		})
	}
}

// TestCancel ends a call at once, wherever it is.
func TestCancel(t *testing.T) {
	for name, s := range map[string]*slow{
		"before headers":   {status: 200, head: time.Hour},
		"before data":      {status: 200, parts: []part{{}}},
		"in the stream":    {status: 200, parts: []part{{0, events(hi)}, {}}},
		"after the finish": {status: 200, parts: []part{{9 * time.Second, events(hi, stop)}, {}}},
		"in a refusal":     {status: 500, parts: []part{{}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				start := time.Now()
				_, err := s.client(Config{}).Call(ctx, caller, question, nil)
				if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 10*time.Second {
					t.Errorf("%v after %v", err, time.Since(start))
				}
			})
		})
	}
}

// TestCancelLeavesNothing interrupts real calls: TestMain looks for goroutines.
func TestCancelLeavesNothing(t *testing.T) {
	gone := make(chan struct{}, 100)
	client := stub(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, events(hi))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		gone <- struct{}{}
	})
	for range cap(gone) {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := client.Call(ctx, caller, question, func(string) { cancel() })
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		<-gone
	}
}

// TestGate is B41: one member is told to wait, so all of them wait, and they
// do not come back together.
func TestGate(t *testing.T) {
	for name, c := range map[string]struct {
		header   http.Header
		min, max time.Duration // of the hold
	}{
		"seconds":   {http.Header{"Retry-After": {"7"}}, 7 * time.Second, 7 * time.Second},
		"date":      {http.Header{"Retry-After": {"Sat, 01 Jan 2000 00:00:07 GMT"}}, 7 * time.Second, 7 * time.Second},
		"missing":   {nil, 500 * time.Millisecond, 1500 * time.Millisecond},
		"zero":      {http.Header{"Retry-After": {"0"}}, 500 * time.Millisecond, 1500 * time.Millisecond},
		"very long": {http.Header{"Retry-After": {"999999"}}, maxHold, maxHold},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				s := &slow{head: 10 * time.Millisecond, parts: []part{{0, events(hi, stop)}}, answer: func(n int) (int, http.Header) {
					if n == 1 {
						return 429, c.header
					}
					return 200, nil
				}}
				first := s.client(Config{Key: "k"})
				_, err := ask(t, first)
				wantError(t, err, CodeRateLimited)
				if held := first.Held(); held < c.min-20*time.Millisecond || held > c.max {
					t.Errorf("held for %v, want %v to %v", held, c.min, c.max)
				}
				var wg sync.WaitGroup
				for range 6 {
					member := s.client(Config{Key: "k"}) // each its own client: the gate is the process's
					wg.Go(func() {
						if err := member.Pass(t.Context()); err != nil {
							t.Error(err)
						}
						if _, err := member.Call(t.Context(), caller, question, nil); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if n := len(s.sent); n != 7 {
					t.Fatalf("%d requests, want 7", n)
				}
				for i, at := range s.sent[1:] {
					if at.Sub(start) < c.min {
						t.Errorf("request %d was sent after %v", i+1, at.Sub(start))
					}
					if i > 0 && at.Sub(s.sent[i]) < firstSpacing/2 {
						t.Errorf("request %d was sent %v after the one before", i+1, at.Sub(s.sent[i]))
					}
				}
				if first.Held() != 0 {
					t.Errorf("still held for %v", first.Held())
				}
			})
		})
	}
}

// sendAt passes the gate and says when that was.
func sendAt(t *testing.T, g *gate) time.Time {
	if err := g.pass(t.Context()); err != nil {
		t.Error(err)
	}
	return time.Now()
}

// TestGateGrows: told again and again without a wish, the holds grow; one good
// answer forgets them. Members told together count once.
func TestGateGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := new(gate)
		var last time.Duration
		for range 12 {
			passed := sendAt(t, g)
			for range 6 {
				g.limited(passed, 0)
			}
			held := g.left()
			if last == 0 && held > 3*firstHold/2 {
				t.Fatalf("six refusals at once held for %v", held)
			}
			if held < last/3 || held > lastHold*5/4 {
				t.Fatalf("held for %v after %v", held, last)
			}
			last = held
		}
		if last < lastHold/2 {
			t.Errorf("the last hold is %v", last)
		}
		for range 12 {
			passed := sendAt(t, g)
			g.answered(passed)
		}
		start := time.Now()
		for range 100 {
			sendAt(t, g)
		}
		if time.Since(start) != 0 {
			t.Errorf("an open gate took %v", time.Since(start))
		}
	})
}

// TestGateMoves: who stands in line when a new hold begins waits for it too.
func TestGateMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := new(gate)
		passed := sendAt(t, g)
		g.limited(passed, 5*time.Second)
		start := time.Now()
		done := make(chan time.Duration)
		go func() {
			sendAt(t, g)
			done <- time.Since(start)
		}()
		synctest.Wait()
		g.busy(9 * time.Second)
		if waited := <-done; waited < 9*time.Second {
			t.Errorf("passed after %v", waited)
		}
	})
}

func TestGateCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := new(gate)
		passed := sendAt(t, g)
		g.limited(passed, time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if err := g.pass(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// TestGatesApart: another key, or another server, is another account.
func TestGatesApart(t *testing.T) {
	a, b, c := gateFor("http://a", "k"), gateFor("http://a", "l"), gateFor("http://b", "k")
	if a == b || a == c || a != gateFor("http://a", "k") {
		t.Error("gates are mixed up")
	}
}
