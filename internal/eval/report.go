package eval

import (
	"slices"
	"time"
)

// Report is everything that an evaluation found.
type Report struct {
	// Version of the program.
	Version string `json:"version"`
	// Started is when the first run began.
	Started time.Time `json:"started"`
	// Runs of each case, by each model, with a team and alone.
	Runs int `json:"runs"`
	// Budget of each conversation.
	Budget Budget   `json:"budget"`
	Cases  []Played `json:"cases"`
	Models []Model  `json:"models"`
	// Results are the sums of the table, in its order.
	Results []Row `json:"results"`
	// Plays are all runs, one by one.
	Plays []Play `json:"plays"`
	// Correct: every run was played, and the runtime was correct in it.
	Correct bool `json:"correct"`
	// Clean: in no run with a team was it misused; every count of conduct is 0.
	Clean bool `json:"clean"`
	// Rate of success over all runs with a team.
	Rate float64 `json:"rate"`
}

// Budget is a limit; 0 is none.
type Budget struct {
	Tokens uint64  `json:"tokens"`
	Cost   float64 `json:"cost"`
}

// Played is a case as it was given to each model.
type Played struct {
	Name  string `json:"name"`
	About string `json:"about"`
	// Snapshot is the SHA-256 of all that is given: words, inputs, interventions.
	Snapshot string `json:"snapshot"`
	// Members that the work needs at most.
	Members int `json:"members"`
	// Alone: it is also played without a team.
	Alone bool `json:"alone"`
}

// Model is a model and how it was asked.
type Model struct {
	// Name as it was given, and as it was asked for.
	Name string `json:"name"`
	// BaseURL of the API; empty: the default.
	BaseURL string `json:"base_url,omitempty"`
	// Served are the identifiers that the server gave with its replies.
	Served []string `json:"served"`
	// Agents are the hashes of what runs were bound to: instructions, tools with
	// their schemas, model and limits.
	Agents []string `json:"agents"`
	// Input, Cached and Output are prices, for a million tokens; missing: not known.
	Input  float64 `json:"input_price,omitempty"`
	Cached float64 `json:"cached_price,omitempty"`
	Output float64 `json:"output_price,omitempty"`
}

// Row sums up the runs of one case by one model.
type Row struct {
	Model string `json:"model"`
	Case  string `json:"case"`
	// Arm is team or alone.
	Arm  string `json:"arm"`
	Runs int    `json:"runs"`
	// Success counts the runs whose result is whole and right.
	Success int `json:"success"`
	// Missing facts and Fabricated claims, over all runs.
	Missing    int `json:"missing"`
	Fabricated int `json:"fabricated"`
	Conduct
	// Correct counts the runs in which the runtime was correct.
	Correct int `json:"correct"`
	Usage
}

// Usage is what runs took.
type Usage struct {
	// Seconds from the first event of the log to the last.
	Seconds float64 `json:"seconds"`
	// Calls of the model.
	Calls        uint64  `json:"calls"`
	InputTokens  uint64  `json:"input_tokens"`
	OutputTokens uint64  `json:"output_tokens"`
	Cost         float64 `json:"cost"`
}

func (u *Usage) add(o Usage) {
	u.Seconds += o.Seconds
	u.Calls += o.Calls
	u.InputTokens += o.InputTokens
	u.OutputTokens += o.OutputTokens
	u.Cost += o.Cost
}

// Play is one run of one case.
type Play struct {
	Model string `json:"model"`
	Case  string `json:"case"`
	// Arm is team or alone.
	Arm string `json:"arm"`
	Run int    `json:"run"`
	// Conversation in the data directory, as --keep leaves it.
	Conversation string `json:"conversation"`
	// Status and Exit of the conversation at the end, as those of run.
	Status string `json:"status"`
	Exit   int    `json:"exit"`
	// Answer is the Lead's last word.
	Answer string `json:"answer"`
	// Files that were delivered.
	Files   []string `json:"files,omitempty"`
	Quality Quality  `json:"quality"`
	Conduct Conduct  `json:"conduct"`
	// Notes say what was counted, one by one.
	Notes []string `json:"notes,omitempty"`
	// Restarts are how often its node was killed.
	Restarts int `json:"restarts,omitempty"`
	// Broken promises of the runtime, the end of the conversation among them.
	Broken []string `json:"broken,omitempty"`
	Usage  Usage    `json:"usage"`
	// Error: it could not be played to the end.
	Error string `json:"error,omitempty"`
}

// Arms of a case.
const (
	Team  = "team"
	Alone = "alone"
)

func (p Play) correct() bool { return p.Error == "" && len(p.Broken) == 0 }

// sum makes the rows and the verdict of what was played.
func (r *Report) sum() {
	r.Results, r.Correct, r.Clean = []Row{}, len(r.Plays) > 0, true
	teams, right := 0, 0
	for _, p := range r.Plays {
		i := slices.IndexFunc(r.Results, func(w Row) bool { return w.Model == p.Model && w.Case == p.Case && w.Arm == p.Arm })
		if i < 0 {
			i = len(r.Results)
			r.Results = append(r.Results, Row{Model: p.Model, Case: p.Case, Arm: p.Arm})
		}
		w := &r.Results[i]
		w.Runs++
		w.Missing += len(p.Quality.Missing)
		w.Fabricated += len(p.Quality.Fabricated)
		w.Conduct.add(p.Conduct)
		w.Usage.add(p.Usage)
		if p.Quality.Success {
			w.Success++
		}
		if p.correct() {
			w.Correct++
		}
		r.Correct = r.Correct && p.correct()
		if p.Arm == Team {
			r.Clean = r.Clean && p.Conduct.clean()
			teams++
			if p.Quality.Success {
				right++
			}
		}
	}
	r.Rate = 0
	if teams > 0 {
		r.Rate = float64(right) / float64(teams)
	}
}

// Passed reports whether all was played and the runtime was correct, and besides
// the share of runs with a team that succeeded is large enough and, if strict,
// no team was misused.
func (r Report) Passed(rate float64, strict bool) bool {
	return r.Correct && r.Rate >= rate && (r.Clean || !strict)
}
