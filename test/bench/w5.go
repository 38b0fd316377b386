package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// crash kills the process while every agent is in a model call, with further
// accepted messages waiting, and counts what the next process makes of it.
func (b *bench) crash(ctx context.Context, p *process) (figures, error) {
	names, messages := agentNames(b.of(100)), 3
	if _, err := p.post(ctx, "/agents", request{Agents: names}); err != nil {
		return nil, err
	}
	if err := each(names, 50, func(agent string) error { return p.turn(ctx, agent, agent+".before") }); err != nil {
		return nil, err
	}
	b.stub.delay.Store(int64(time.Hour))
	accepted := map[string]bool{}
	for _, agent := range names {
		for i := range messages {
			id := fmt.Sprintf("%s.%d", agent, i)
			if _, err := p.post(ctx, "/send", request{Agent: agent, Text: textOf(id)}); err != nil {
				return nil, err
			}
			accepted[id] = true
		}
	}
	if err := until(ctx, func() bool { return b.stub.inFlight.Load() == int64(len(names)) }); err != nil {
		return nil, err
	}
	p.kill()
	if err := until(ctx, func() bool { return b.stub.inFlight.Load() == 0 }); err != nil {
		return nil, err
	}
	b.stub.delay.Store(int64(500 * time.Millisecond))

	begun := time.Now()
	if err := p.start(); err != nil {
		return nil, err
	}
	f := figures{"ready ms": ms(time.Since(begun))}
	counts, disorder, err := b.recovered(ctx, p, names, accepted)
	if err != nil {
		return nil, err
	}
	f["all answered ms"] = ms(time.Since(begun))
	f["messages asked twice"] = float64(b.stub.repeated())
	f["faults: out of order"] = float64(disorder)
	for _, id := range slices.Collect(maps.Keys(accepted)) {
		switch n := counts[id]; {
		case n == 0:
			f["faults: lost"]++
		case n > 1:
			f["faults: doubled"]++
		}
	}
	f["faults: asked twice without need"] = max(0, f["messages asked twice"]-float64(len(names)))
	b.stub.delay.Store(0)
	err = each(names, 50, func(agent string) error { return p.turn(ctx, agent, agent+".after") })
	if err != nil {
		return nil, fmt.Errorf("an agent is stuck: %w", err)
	}
	return f, nil
}

// recovered waits until every accepted message is answered, or nothing has
// happened for so long that some never will be.
func (b *bench) recovered(ctx context.Context, p *process, names []string, accepted map[string]bool) (counts map[string]int, disorder int, err error) {
	err = until(ctx, func() bool {
		counts, disorder = map[string]int{}, 0
		for _, agent := range names {
			ids, failed := p.answered(ctx, agent)
			if failed != nil {
				err = failed
				return true
			}
			if i := slices.Index(ids, agent+".before"); i != 0 || !slices.IsSorted(ids[1:]) {
				disorder++
			}
			for _, id := range ids {
				counts[id]++
			}
		}
		have := 0
		for id := range accepted {
			have += min(1, counts[id])
		}
		return have == len(accepted) || b.stub.quiet() > 15*time.Second
	})
	return counts, disorder, errors.Join(err, ctx.Err())
}
