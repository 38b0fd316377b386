package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"
)

// bench runs workloads. A workload gives figures by name; for runs of the same
// one, the medians count.
type bench struct {
	out   io.Writer
	scale float64
	stub  *stub
	dir   string
}

func newBench(out io.Writer, scale float64) (*bench, error) {
	if scale <= 0 || scale > 1 {
		return nil, errors.New("-scale is above 0 and at most 1")
	}
	dir, err := os.MkdirTemp("", "rollcall-bench-")
	if err != nil {
		return nil, err
	}
	s, err := startStub()
	if err != nil {
		return nil, err
	}
	return &bench{out: out, scale: scale, stub: s, dir: dir}, nil
}

func (b *bench) close() {
	b.stub.close()
	_ = os.Remove(b.dir) // unless a failed run left its log there
}

// of is a workload's size: n, scaled, at least one.
func (b *bench) of(n int) int { return max(1, int(math.Round(float64(n)*b.scale))) }

// figures of one run. What must be zero is below faults.
type figures map[string]float64

// workloads by name: they run on a fresh process.
var workloads = map[string]func(*bench, context.Context, *process) (figures, error){
	"w1a": func(b *bench, ctx context.Context, p *process) (figures, error) {
		return b.turns(ctx, p, b.of(100), b.of(20), 50)
	},
	"w1b": func(b *bench, ctx context.Context, p *process) (figures, error) {
		return b.turns(ctx, p, b.of(1000), b.of(5), 50)
	},
	"w1lat": func(b *bench, ctx context.Context, p *process) (figures, error) {
		return b.turns(ctx, p, b.of(10), b.of(30), 1)
	},
	"w2": (*bench).pingPong,
	"w3": (*bench).diamonds,
	"w4": (*bench).restart,
	"w5": (*bench).crash,
}

// all runs and prints everything asked for: a block for each workload and sync
// policy, a column for each system.
func (b *bench) all(ctx context.Context, names, systems, policies []string, runs int) error {
	for _, name := range names {
		if workloads[name] == nil {
			return fmt.Errorf("there is no workload %q", name)
		}
		for _, policy := range policies {
			results := map[string]figures{}
			for _, system := range systems {
				var all []figures
				for range runs {
					f, err := b.run(ctx, name, system, policy)
					if errors.Is(err, errNone) {
						break
					}
					if err != nil {
						return fmt.Errorf("%s of %s, sync %s: %w", name, system, policy, err)
					}
					all = append(all, f)
				}
				results[system] = medians(all)
			}
			b.print(name, policy, systems, results)
		}
	}
	return nil
}

// run runs a workload once, on an empty data directory.
func (b *bench) run(ctx context.Context, name, system, policy string) (f figures, err error) {
	memory := "transcript"
	if name == "w2" {
		// A thousand turns of one member: with the whole transcript shown each
		// time, the workload would measure the size of requests.
		memory = "fresh"
	}
	b.stub.reset()
	p, err := newProcess(b.dir, system, policy, memory, b.stub.url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close(err != nil && !errors.Is(err, errNone))) }()
	if err := p.start(); err != nil {
		return nil, err
	}
	others, begun := busy(), time.Now()
	if f, err = workloads[name](b, ctx, p); err != nil {
		return nil, err
	}
	f["machine load, cores"] = (busy() - others).Seconds() / time.Since(begun).Seconds()
	return f, nil
}

func medians(runs []figures) figures {
	out := figures{}
	for _, f := range runs {
		for name := range f {
			var all []float64
			for _, g := range runs {
				all = append(all, g[name])
			}
			out[name] = percentile(all, 50)
		}
	}
	return out
}

// percentile of values in any order; the lower median.
func percentile(values []float64, p int) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
