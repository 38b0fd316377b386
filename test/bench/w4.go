package main

import (
	"context"
	"fmt"
	"time"
)

// restart makes ten thousand agents of ten turns, kills the process and times
// what the next one needs: until it answers, until an agent has answered a
// message, and until every agent has been heard, each from its actor.
func (b *bench) restart(ctx context.Context, p *process) (figures, error) {
	agents, turns := b.of(10_000), b.of(10)
	empty := p.use()
	if err := b.populate(ctx, p, agents, turns); err != nil {
		return nil, err
	}
	f := figures{"disk KiB an agent": float64(p.use().disk-empty.disk) / 1024 / float64(agents)}
	p.kill()
	b.stub.reset()

	begun := time.Now()
	if err := p.start(); err != nil {
		return nil, err
	}
	f["ready ms"] = ms(time.Since(begun))
	if err := p.turn(ctx, agentNames(agents)[agents/2], "first"); err != nil {
		return nil, err
	}
	f["first answer ms"] = ms(time.Since(begun))
	all, err := p.post(ctx, "/all", request{})
	if err != nil {
		return nil, err
	}
	f["all heard ms"] = ms(time.Since(begun))
	f["faults: agents and turns missing"] = float64(agents-all.Agents) + float64(agents*turns+1-all.Turns)
	// Whoever would work without being asked has had time to.
	quiet := func() bool { return b.stub.quiet() > time.Second }
	if err := until(ctx, quiet); err != nil {
		return nil, err
	}
	f["faults: spurious calls"] = float64(b.stub.calls() - 1)
	f["PSS KiB an agent"] = float64(p.use().pss-empty.pss) / 1024 / float64(agents)
	var cold []float64
	for i := range b.of(50) {
		sent := time.Now()
		if err := p.turn(ctx, fmt.Sprintf("a%d", (i*197+13)%agents), fmt.Sprintf("later%d", i)); err != nil {
			return nil, err
		}
		cold = append(cold, ms(time.Since(sent)))
	}
	f["turn of a rested agent p50 ms"] = percentile(cold, 50)
	return f, nil
}

// populate makes the agents in steps, so that no request is long.
func (b *bench) populate(ctx context.Context, p *process, agents, turns int) error {
	for done := 0; done < agents; {
		done = min(done+1000, agents)
		if _, err := p.post(ctx, "/seed", request{N: done, Turns: turns}); err != nil {
			return err
		}
	}
	_, err := p.post(ctx, "/all", request{})
	return err
}

// until waits for a condition.
func until(ctx context.Context, ok func() bool) error {
	for !ok() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
