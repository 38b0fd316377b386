package main

import (
	"context"
	"fmt"
	"time"
)

// pingPong has two members take turns, each answer a model call.
func (b *bench) pingPong(ctx context.Context, p *process) (figures, error) {
	n := b.of(2000)
	if _, err := p.post(ctx, "/pingpong", request{Run: "warm", N: 2}); err != nil {
		return nil, err
	}
	calls, before, begun := b.stub.calls(), p.use(), time.Now()
	if _, err := p.post(ctx, "/pingpong", request{Run: "r", N: n}); err != nil {
		return nil, err
	}
	wall, after := time.Since(begun), p.use()
	return figures{
		"round trips/s":          float64(n) / 2 / wall.Seconds(),
		"CPU ms/message":         ms(after.cpu-before.cpu) / float64(n),
		"disk B/message":         float64(after.disk-before.disk) / float64(n),
		"faults: calls too many": float64(b.stub.calls() - calls - n),
	}, nil
}

// diamonds time a lead, fifty members at once, and the lead again: with a model
// that answers at once, and with one that takes 100 ms.
func (b *bench) diamonds(ctx context.Context, p *process) (figures, error) {
	members, rounds := b.of(50), b.of(5)
	tasks := float64(members + 2)
	f := figures{}
	run := 0
	one := func() (time.Duration, error) {
		run++
		begun := time.Now()
		_, err := p.post(ctx, "/dag", request{Run: fmt.Sprintf("r%d", run), Members: members})
		return time.Since(begun), err
	}
	if _, err := one(); err != nil { // the team is made
		return nil, err
	}
	calls := b.stub.calls()
	for _, delay := range []time.Duration{0, 100 * time.Millisecond} {
		b.stub.delay.Store(int64(delay))
		var walls []float64
		for range rounds {
			wall, err := one()
			if err != nil {
				return nil, err
			}
			walls = append(walls, ms(wall))
		}
		name := fmt.Sprintf("model %v: ", delay)
		f[name+"wall ms"] = percentile(walls, 50)
		f[name+"ms over a task"] = (percentile(walls, 50) - 3*ms(delay)) / tasks
	}
	f["faults: calls too many"] = float64(b.stub.calls()-calls) - 2*float64(rounds)*tasks
	return f, nil
}
