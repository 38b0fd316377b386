package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/audit"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// demoResult is the last line of `demo --json`.
type demoResult struct {
	result
	// Nodes are the process ids: of the one that was killed, and of the one
	// that went on.
	Nodes []int `json:"nodes"`
	// KilledAt is the version at which the first was killed.
	KilledAt uint64 `json:"killed_at"`
	// Events of the log, Resumed runs among them.
	Events  int `json:"events"`
	Resumed int `json:"resumed"`
	// ModelCalls by the model server's own record.
	ModelCalls int `json:"model_calls"`
	// Requests that were computed again from the log, byte for byte.
	Requests int             `json:"requests"`
	Problems []audit.Problem `json:"problems"`
	// Data is the directory that was left; empty when it was deleted.
	Data    string  `json:"data,omitempty"`
	Seconds float64 `json:"seconds"`
}

// end proves what happened and tells it.
func (d *demoRun) end(ctx context.Context, f *following, r result) error {
	out := demoResult{result: r, Nodes: []int{d.first, d.node.PID()}, KilledAt: d.killed, ModelCalls: len(d.models.Requests())}
	report, err := verifyOne(ctx, &nodeSource{client: d.client}, f.key)
	if err != nil {
		return err
	}
	report.Compare(d.models.Requests())
	out.Events, out.Requests, out.Problems = report.Events, report.Requests, report.Problems
	for _, m := range report.Members {
		for _, run := range m.Runs {
			out.Resumed += run.Resumed
		}
	}
	out.Seconds = time.Since(d.begun).Seconds()
	if !d.clean {
		out.Data = d.dir
	}
	switch {
	case out.Exit != 0:
	case d.first == 0:
		out.Exit, out.Why = api.ExitFailed, "the team was done before its node could be killed"
	case len(out.Problems) > 0:
		out.Exit, out.Why = api.ExitFailed, out.Problems[0].String()
	}
	if d.s.flags.json {
		d.s.line(d.s.Out, out)
		return exit(out.Exit)
	}
	d.s.put(d.s.Out, r.Answer)
	d.tellEnd(d.s.Out, f.state, out)
	return exit(out.Exit)
}

func (d *demoRun) tellEnd(w io.Writer, state *domain.State, r demoResult) {
	completed := 0
	for _, t := range state.Tasks {
		if t.Status == rollcallv1.TaskStatus_TASK_STATUS_COMPLETED {
			completed++
		}
	}
	mark, how := "✓", "finished"
	if r.Exit != 0 {
		mark, how = "✗", "did not finish: "+oneLine(r.Why, 200)
	}
	fmt.Fprintf(w, "\n %s team %s %s: %s, %s, %s, 1 crash survived    %.1fs\n",
		mark, demoName, how, count(completed, "task"), count(len(state.Members), "member"), count(r.Events, "event"), r.Seconds)
	fmt.Fprintf(w, "   node %d was killed at version %d; node %d went on: %s resumed, nothing was lost or done twice\n",
		r.Nodes[0], r.KilledAt, r.Nodes[1], count(r.Resumed, "run"))
	fmt.Fprintf(w, "   model: scripted, %s by its server's own record; %s computed again from the log, byte for byte\n",
		count(r.ModelCalls, "call"), count(r.Requests, "request"))
	if r.Data == "" {
		fmt.Fprintf(w, "   do it for real   export OPENAI_API_KEY=… && rollcall run \"…\"\n")
		return
	}
	fmt.Fprintf(w, "   to look around   export ROLLCALL_DATA=%s\n", shellWord(r.Data))
	fmt.Fprintf(w, "     see it         rollcall show %s\n", demoName)
	fmt.Fprintf(w, "     watch it again rollcall replay %s --speed 5\n", demoName)
	fmt.Fprintf(w, "     prove it       rollcall verify %s --model-record %s\n", demoName, shellWord(d.record()))
	fmt.Fprintf(w, "   do it for real   unset ROLLCALL_DATA; export OPENAI_API_KEY=… && rollcall run \"…\"\n")
}
