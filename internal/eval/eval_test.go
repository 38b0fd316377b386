package eval_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/internal/eval"
)

// played runs the command and reads its document.
func played(t *testing.T, want int, args ...string) eval.Report {
	t.Helper()
	var out, errs bytes.Buffer
	if code := evaluate(t, &out, &errs, append(args, "--json")...); code != want {
		t.Fatalf("exit %d, want %d: %s%s", code, want, out.String(), errs.String())
	}
	var r eval.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return r
}

// of is the run of a case.
func of(t *testing.T, r eval.Report, name, arm string) eval.Play {
	t.Helper()
	i := slices.IndexFunc(r.Plays, func(p eval.Play) bool { return p.Case == name && p.Arm == arm })
	if i < 0 {
		t.Fatalf("%s %s was not played", name, arm)
	}
	return r.Plays[i]
}

// A script that plays all cases as they are meant passes every measure, on real
// nodes, one of which is killed.
func TestEvalGoodModel(t *testing.T) {
	t.Parallel()
	r := played(t, 0, "--model", "scripted:good", "--runs", "1", "--require", "1", "--strict")
	if len(r.Plays) != 13 || !r.Correct || !r.Clean || r.Rate != 1 {
		t.Errorf("%d runs, correct %v, clean %v, rate %v", len(r.Plays), r.Correct, r.Clean, r.Rate)
	}
	for _, p := range r.Plays {
		if !p.Quality.Success || p.Status != "done" || len(p.Notes)+len(p.Broken) > 0 || p.Error != "" {
			t.Errorf("%s %s: %+v", p.Case, p.Arm, p)
		}
		if p.Usage.Calls == 0 || p.Usage.InputTokens == 0 || p.Usage.OutputTokens == 0 || p.Usage.Seconds <= 0 {
			t.Errorf("%s %s used %+v", p.Case, p.Arm, p.Usage)
		}
		if restarts := map[bool]int{true: 1}[p.Case == "restart-while-waiting"]; p.Restarts != restarts {
			t.Errorf("%s %s: the node was killed %d times", p.Case, p.Arm, p.Restarts)
		}
	}
	if m := r.Models[0]; m.Name != "scripted:good" || !slices.Equal(m.Served, []string{"scripted"}) || len(m.Agents) < 3 {
		t.Errorf("of the model is recorded: %+v", m)
	}
	for _, c := range r.Cases {
		if len(c.Snapshot) != 64 {
			t.Errorf("of the case is recorded: %+v", c)
		}
	}
}

// A script that does what the cases are there to catch is caught, case by case
// and measure by measure.
func TestEvalBadModel(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs("testdata/bad.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := played(t, 1, "--model", "scripted:"+script, "--runs", "1")
	if r.Correct || r.Clean || r.Rate != 0 {
		t.Errorf("correct %v, clean %v, rate %v", r.Correct, r.Clean, r.Rate)
	}
	for _, p := range r.Plays {
		if p.Quality.Success || p.Error != "" {
			t.Errorf("%s %s: %+v", p.Case, p.Arm, p)
		}
	}
	for name, want := range map[string]struct {
		missing, fabricated, notes, broken string
		conduct                            func(c eval.Conduct) bool
	}{
		"direct-answer": {
			missing: "3.4 m in the answer", fabricated: "3.9", notes: "loop: Lead called team_status again",
			conduct: func(c eval.Conduct) bool { return c.Needless == 1 && c.Redundant == 1 && c.Loops == 2 },
		},
		"independent-review": {
			missing: "30 days in the answer", fabricated: "90", notes: "Cid ended its turn with t3 open", broken: "1 task is open: t3",
			conduct: func(c eval.Conduct) bool { return c.Redundant == 1 && c.Duplicate == 4 && c.Undelivered == 1 },
		},
		"dependency-handoff": {
			missing: "1931 in page.md", fabricated: "1913", notes: "nobody depends on anybody",
			conduct: func(c eval.Conduct) bool { return c.Lacking == 1 },
		},
		"missing-decision": {
			missing: "eu-north-1 in deployment.md", fabricated: "us-east-1", notes: "nobody asked for the decision",
			conduct: func(c eval.Conduct) bool { return c.Lacking == 1 },
		},
		"revision": {
			missing: "14 in report.md", notes: "no delivered task was revised",
			conduct: func(c eval.Conduct) bool { return c.Lacking == 1 },
		},
		"failure-recovery": {
			missing: "gauge.csv could not be read in the answer", fabricated: "4.1", notes: "a run of Looker was stopped: repeated-call", broken: "task t1 failed",
			conduct: func(c eval.Conduct) bool { return c.Invalid == 3 && c.Guards > 1 && c.Lacking == 2 },
		},
		"restart-while-waiting": {
			missing: "Thursday in migration.md", fabricated: "friday", notes: "nobody waited for the decision", broken: "1 task is open: t1",
			conduct: func(c eval.Conduct) bool { return c.Undelivered == 1 && c.Lacking == 1 },
		},
	} {
		p := of(t, r, name, eval.Team)
		if !slices.Contains(p.Quality.Missing, want.missing) || want.fabricated != "" && !slices.Contains(p.Quality.Fabricated, want.fabricated) {
			t.Errorf("%s: missing %q, made up %q", name, p.Quality.Missing, p.Quality.Fabricated)
		}
		if !want.conduct(p.Conduct) || !strings.Contains(strings.Join(p.Notes, "\n"), want.notes) {
			t.Errorf("%s: %+v: %q", name, p.Conduct, p.Notes)
		}
		if broken := strings.Join(p.Broken, "\n"); !strings.Contains(broken, want.broken) || (want.broken == "") != (broken == "") {
			t.Errorf("%s: broken %q", name, broken)
		}
	}
}
