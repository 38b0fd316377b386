package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// turns gives each agent so many messages, the next one when the last turn is
// durable, with so many turns in flight over all.
func (b *bench) turns(ctx context.Context, p *process, agents, messages, inFlight int) (figures, error) {
	names := agentNames(agents)
	if _, err := p.post(ctx, "/agents", request{Agents: names}); err != nil {
		return nil, err
	}
	if err := b.warmUp(ctx, p); err != nil {
		return nil, err
	}
	calls, before := b.stub.calls(), p.use()
	var mu sync.Mutex
	var toCall, whole []float64
	slots := make(chan struct{}, inFlight)
	begun := time.Now()
	err := each(names, len(names), func(agent string) error {
		for i := range messages {
			id := fmt.Sprintf("%s.%d", agent, i)
			slots <- struct{}{}
			sent := time.Now()
			err := p.turn(ctx, agent, id)
			took := time.Since(sent)
			<-slots
			asked, ok := b.stub.at(id)
			if err == nil && !ok {
				err = fmt.Errorf("nobody asked the model about %s", id)
			}
			if err != nil {
				return err
			}
			mu.Lock()
			toCall, whole = append(toCall, ms(asked.Sub(sent))), append(whole, ms(took))
			mu.Unlock()
		}
		return nil
	})
	wall := time.Since(begun)
	if err != nil {
		return nil, err
	}
	after, n := p.use(), float64(len(whole))
	return figures{
		"turns/s":                n / wall.Seconds(),
		"message to call p50 ms": percentile(toCall, 50), "message to call p99 ms": percentile(toCall, 99),
		"turn p50 ms": percentile(whole, 50), "turn p99 ms": percentile(whole, 99),
		"CPU ms/turn": ms(after.cpu-before.cpu) / n, "disk B/turn": float64(after.disk-before.disk) / n,
		"PSS MiB": float64(after.pss) / (1 << 20), "request B": b.stub.promptBytes(),
		"faults: calls too many": float64(b.stub.calls()-calls) - n,
	}, nil
}

// warmUp has the code and the connections used once.
func (b *bench) warmUp(ctx context.Context, p *process) error {
	var names []string
	for i := range b.of(20) {
		names = append(names, fmt.Sprintf("warm%d", i))
	}
	if _, err := p.post(ctx, "/agents", request{Agents: names}); err != nil {
		return err
	}
	for i := range b.of(5) {
		for _, name := range names {
			if err := p.turn(ctx, name, fmt.Sprintf("%s.%d", name, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// isFault reports whether a figure must be zero.
func isFault(name string) bool { return strings.HasPrefix(name, "faults:") }
