package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/config"
	"github.com/rollcall-dev/rollcall/internal/eval"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// goodModel is the script that the program brings along.
const goodModel = "scripted:good"

// evalTokens is what one conversation of an evaluation may use: a limit that
// means the same for every model.
const evalTokens = 300_000

type evalFlags struct {
	models, cases []string
	runs          int
	noBaseline    bool
	budget        string
	require       float64
	patience      time.Duration
	keep, strict  bool
}

// modelList is --model, which eval takes several times; the last one is what
// everything else sees.
type modelList struct{ all *[]string }

func (m modelList) Set(text string) error { *m.all = append(*m.all, text); return nil }
func (m modelList) Type() string          { return "string" }
func (m modelList) String() string {
	if m.all == nil || len(*m.all) == 0 {
		return ""
	}
	return (*m.all)[len(*m.all)-1]
}

func (s *session) eval() *cobra.Command {
	var f evalFlags
	c := &cobra.Command{
		Use:   "eval [flags]",
		Short: "Play seven cases with your models and measure what came of them",
		Long: `Eval plays the same seven situations with each model, several times, with a team and,
where a case permits it, with a single agent: same words, inputs, tools and budgets. It
judges the results (facts that are missing, claims that are made up) apart from what the
log says of how the team was used and whether the runtime kept its promises. Nodes are
its own, in a temporary directory; one case kills its node.

It exits with 0 when all was played and the runtime was correct in every run, else with 1.
How good the results are changes that only with --require, how the team was used only
with --strict.`,
		Example: `  rollcall eval --model ` + goodModel + ` --runs 1
  rollcall eval --model gpt-4o-mini --model gpt-4o --runs 5
  rollcall eval --case missing-decision --case revision --require 0.8 --json`,
		GroupID: groupOperate, Args: args(0, 0),
	}
	fl := c.Flags()
	fl.Var(modelList{&f.models}, "model", "model to evaluate, may be repeated; "+goodModel+" plays all cases well, scripted:FILE is a script ($ROLLCALL_MODEL)")
	fl.String("base-url", "", "address of an OpenAI-compatible API ($OPENAI_BASE_URL)")
	fl.StringSliceVar(&f.cases, "case", nil, "case to play, may be repeated (default: all): "+strings.Join(eval.Names(), ", "))
	_ = c.RegisterFlagCompletionFunc("case", cobra.FixedCompletions(eval.Names(), cobra.ShellCompDirectiveNoFileComp)) // fails only without the flag
	_ = c.RegisterFlagCompletionFunc("model", cobra.FixedCompletions([]string{goodModel}, cobra.ShellCompDirectiveNoFileComp))
	fl.IntVar(&f.runs, "runs", 3, "runs of each case")
	fl.BoolVar(&f.noBaseline, "no-baseline", false, "leave out the runs of a single agent")
	fl.StringVar(&f.budget, "budget", "", fmt.Sprintf("limit of one conversation, such as 0.50 (money) or 200000t (tokens) (default %dt)", evalTokens))
	fl.Float64Var(&f.require, "require", 0, "exit with 1 also when less than this share of the runs with a team succeeded, such as 0.8")
	fl.BoolVar(&f.strict, "strict", false, "exit with 1 also when a team was misused: a count other than 0 between needless and lacking")
	fl.DurationVar(&f.patience, "patience", 10*time.Minute, "give a run up after this time")
	fl.BoolVar(&f.keep, "keep", false, "keep the data directories, to look into the logs")
	return s.command(c, func(ctx context.Context, _ []string) error { return s.evaluate(ctx, f) })
}

func (s *session) evaluate(ctx context.Context, f evalFlags) error {
	cfg, err := s.evaluation(f)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rollcall-eval-")
	if err != nil {
		return dataDir(os.TempDir(), err)
	}
	cfg.Host = func(ctx context.Context, model string) (eval.Host, error) { return s.evalHost(ctx, dir, model) }
	report, err := eval.Run(ctx, cfg)
	switch {
	case f.keep:
		s.say("the data directories are in %s", dir)
	default:
		if e := os.RemoveAll(dir); err == nil {
			err = e
		}
	}
	if err != nil {
		return err
	}
	if err := s.print(report, func(w io.Writer) { fmt.Fprint(w, report.Table()) }); err != nil {
		return err
	}
	s.evalEnd(report, f.require)
	if !report.Passed(f.require, f.strict) {
		return exit(1)
	}
	return nil
}

// evalEnd says what the numbers do not.
func (s *session) evalEnd(r eval.Report, require float64) {
	for _, p := range r.Plays {
		what := fmt.Sprintf("%s, %s %s, run %d", p.Model, p.Case, p.Arm, p.Run)
		if p.Error != "" {
			s.say("%s: not played to the end: %s", what, p.Error)
		}
		for _, b := range p.Broken {
			s.say("%s: %s", what, b)
		}
	}
	if r.Rate < require {
		s.say("%.2f of the runs with a team succeeded, required are %.2f", r.Rate, require)
	}
	if r.Runs < 3 {
		s.say("a few runs prove little: see docs/eval.md")
	}
}

// evaluation is what the flags ask for.
func (s *session) evaluation(f evalFlags) (eval.Config, error) {
	cfg := eval.Config{
		Models: f.models, Runs: f.runs, Baseline: !f.noBaseline, Patience: f.patience,
		BaseURL: s.cfg.BaseURL, Prices: s.cfg.Prices, Version: s.Version, Say: s.evalSay,
	}
	switch {
	case f.runs < 1 || f.runs > 1000:
		return cfg, domain.Refuse("usage", fmt.Sprintf("--runs cannot be %d", f.runs), "a case is played 1 to 1000 times", "give such a number")
	case !(f.require >= 0 && f.require <= 1):
		return cfg, domain.Refuse("usage", fmt.Sprintf("--require cannot be %v", f.require), "it is a share of the runs", "give a number from 0 to 1, such as 0.8")
	case f.patience <= 0:
		return cfg, domain.Refuse("usage", "--patience must be longer than nothing", "", "give a time such as 10m")
	}
	for _, name := range f.cases {
		c, ok := eval.Named(name)
		if !ok {
			return cfg, domain.Refuse("usage", fmt.Sprintf("there is no case %q", printable(name)), "known are "+strings.Join(eval.Names(), ", ")+didYouMean(name, eval.Names()...), "choose one of them")
		}
		if !slices.ContainsFunc(cfg.Cases, func(d eval.Case) bool { return d.Name == c.Name }) {
			cfg.Cases = append(cfg.Cases, c)
		}
	}
	if len(cfg.Cases) == 0 {
		cfg.Cases = eval.Cases
	}
	if len(cfg.Models) == 0 {
		if err := s.needModel(); err != nil {
			return cfg, err
		}
		cfg.Models = []string{s.cfg.Model}
	}
	return s.evalModels(cfg, f.budget)
}

// evalModels checks the models and the budget before anything is spent.
func (s *session) evalModels(cfg eval.Config, budget string) (eval.Config, error) {
	var err error
	if cfg.Budget = (&rollcallv1.Budget{Tokens: evalTokens}); budget != "" {
		if cfg.Budget, err = parseBudget(budget); err != nil {
			return cfg, err
		}
	}
	for i, name := range cfg.Models {
		file, isScript := config.Script(name)
		switch {
		case strings.TrimSpace(name) == "":
			return cfg, domain.Refuse("usage", "--model is empty", "", "name a model")
		case slices.Contains(cfg.Models[:i], name):
			return cfg, domain.Refuse("usage", printable(name)+" is given twice", "", "name each model once; --runs plays the cases more often")
		case isScript && name != goodModel:
			if _, err := scripted.Load(s.path(file)); err != nil {
				return cfg, scripted.Unfit(err)
			}
		}
		priced := name
		if isScript {
			priced = "scripted"
		}
		if _, known := s.cfg.Prices[priced]; !known && cfg.Budget.GetCostMicros() > 0 {
			return cfg, domain.Refuse("budget-without-price", "a limit in money cannot be kept", "no price is known for "+printable(name),
				fmt.Sprintf("limit tokens, such as --budget %dt, or put prices into rollcall.yaml", evalTokens))
		}
	}
	return cfg, nil
}

// evalSay tells of a run that has ended.
func (s *session) evalSay(p eval.Play) {
	word := "succeeded"
	switch {
	case p.Error != "":
		word = "was given up: " + p.Error
	case !p.Quality.Success:
		word = "did not succeed"
		if n := len(p.Quality.Missing); n > 0 {
			word += "; missing: " + strings.Join(p.Quality.Missing, ", ")
		}
		if n := len(p.Quality.Fabricated); n > 0 {
			word += "; made up: " + strings.Join(p.Quality.Fabricated, ", ")
		}
	}
	s.say("%s, %s %s, run %d: %s (%.1f s)", filepath.Base(p.Model), p.Case, p.Arm, p.Run, word, p.Usage.Seconds)
}
