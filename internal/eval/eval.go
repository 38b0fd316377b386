package eval

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Good is a script that plays all cases as they are meant; it is the model
// scripted:good.
//
//go:embed testdata/good.yaml
var Good []byte

// Config says what is evaluated.
type Config struct {
	// Models by name, in order.
	Models []string
	Cases  []Case
	Runs   int
	// Baseline: also without a team, where the case permits it.
	Baseline bool
	Budget   *rollcallv1.Budget
	// Patience with one run.
	Patience time.Duration
	BaseURL  string
	Prices   map[string]domain.Price
	Version  string
	// Host starts a node whose default model is the one named.
	Host func(ctx context.Context, model string) (Host, error)
	// Say hears of each run that has ended; it may be nil.
	Say func(Play)
}

// Run plays every case with every model. It returns an error when that cannot be
// done at all; a run that fails stands in the report. When ctx ends, the report
// holds what was played.
func Run(ctx context.Context, cfg Config) (Report, error) {
	r := Report{
		Version: cfg.Version, Started: time.Now().UTC(), Runs: cfg.Runs,
		Budget: Budget{Tokens: cfg.Budget.GetTokens(), Cost: api.Units(cfg.Budget.GetCostMicros())},
		Cases:  []Played{}, Models: []Model{}, Plays: []Play{},
	}
	for _, c := range cfg.Cases {
		r.Cases = append(r.Cases, Played{Name: c.Name, About: c.About, Snapshot: c.snapshot(), Members: c.Members, Alone: c.Alone && cfg.Baseline})
	}
	for _, model := range cfg.Models {
		if err := cfg.model(ctx, model, &r); err != nil {
			return r, err
		}
	}
	r.sum()
	return r, nil
}

// model plays all cases with one model, on a node of its own.
func (cfg Config) model(ctx context.Context, name string, r *Report) (err error) {
	host, err := cfg.Host(ctx, name)
	if err != nil {
		return err
	}
	defer func() {
		if closed := host.Close(); err == nil {
			err = closed
		}
	}()
	price := cfg.Prices[name]
	m := Model{
		Name: name, BaseURL: cfg.BaseURL, Served: []string{}, Agents: []string{},
		Input: api.Units(price.Input), Cached: api.Units(price.Cached), Output: api.Units(price.Output),
	}
	for _, c := range cfg.Cases {
		for _, alone := range []bool{false, true} {
			if alone && !(c.Alone && cfg.Baseline) {
				continue
			}
			for n := range cfg.Runs {
				p, b := cfg.once(ctx, host, c, alone, n+1)
				if ctx.Err() != nil {
					return ctx.Err()
				}
				p.Model = name
				r.Plays = append(r.Plays, p)
				m.Served, m.Agents = union(m.Served, b.models), union(m.Agents, b.agents)
				if cfg.Say != nil {
					cfg.Say(p)
				}
			}
		}
	}
	r.Models = append(r.Models, m)
	return nil
}

func (cfg Config) once(ctx context.Context, host Host, c Case, alone bool, n int) (Play, *book) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Patience)
	defer cancel()
	arm := Team
	if alone {
		arm = Alone
	}
	p, b := play(ctx, host, c, alone, fmt.Sprintf("%s-%s-%d", c.Name, arm, n), cfg.Budget)
	p.Run = n
	return p, b
}

func union(all, more []string) []string {
	for _, s := range more {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// snapshot is a hash of all that is given in a case.
func (c Case) snapshot() string {
	parts := []string{c.Objective, c.Hint}
	paths, files := c.Inputs()
	for _, p := range paths {
		parts = append(parts, p, files[p])
	}
	for _, s := range c.Steps {
		parts = append(parts, s.Say)
	}
	return hashOf(strings.Join(parts, "\x00"))
}
