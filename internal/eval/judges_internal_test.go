package eval

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

var update = flag.Bool("update", false, "write golden files anew")

// log makes a commit of each event, as many as there are.
func log(events ...*rollcallv1.Event) (all []*rollcallv1.Commit) {
	for i, e := range events {
		all = append(all, &rollcallv1.Commit{Version: uint64(i + 1), Events: []*rollcallv1.Event{e}})
	}
	return all
}

func joins(id, name, task string) *rollcallv1.Event {
	return &rollcallv1.Event{Kind: &rollcallv1.Event_MemberAdded{MemberAdded: &rollcallv1.MemberAdded{
		Member: id, Name: name, Task: task, Role: rollcallv1.MemberRole_MEMBER_ROLE_MEMBER,
	}}}
}

func makes(task, owner string, needs ...string) *rollcallv1.Event {
	return &rollcallv1.Event{Kind: &rollcallv1.Event_TaskCreated{TaskCreated: &rollcallv1.TaskCreated{Task: task, Owner: owner, Title: "do " + task, Dependencies: needs}}}
}

func begins(run, who string) *rollcallv1.Event {
	return &rollcallv1.Event{Kind: &rollcallv1.Event_RunStarted{RunStarted: &rollcallv1.RunStarted{Run: run, Member: who}}}
}

func ends(run string, reason rollcallv1.FinishReason) *rollcallv1.Event {
	return &rollcallv1.Event{Kind: &rollcallv1.Event_RunFinished{RunFinished: &rollcallv1.RunFinished{Run: run, Reason: reason}}}
}

func completes(task, by string) *rollcallv1.Event {
	return &rollcallv1.Event{Kind: &rollcallv1.Event_TaskCompleted{TaskCompleted: &rollcallv1.TaskCompleted{Task: task, By: by}}}
}

func reopens(task, by string) *rollcallv1.Event {
	return &rollcallv1.Event{Kind: &rollcallv1.Event_TaskReopened{TaskReopened: &rollcallv1.TaskReopened{Task: task, By: by}}}
}

func says(text string) *rollcallv1.Event {
	return &rollcallv1.Event{Kind: &rollcallv1.Event_MessageDelivered{MessageDelivered: &rollcallv1.MessageDelivered{
		Kind: rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, From: "operator", To: "m1", Body: &rollcallv1.Body{Text: text},
	}}}
}

func waits(who, message string) *rollcallv1.Event {
	return &rollcallv1.Event{Kind: &rollcallv1.Event_WaitStarted{WaitStarted: &rollcallv1.WaitStarted{Member: who, Message: message, Awaited: "user"}}}
}

func waitEnds(message, reason string) *rollcallv1.Event {
	return &rollcallv1.Event{Kind: &rollcallv1.Event_WaitEnded{WaitEnded: &rollcallv1.WaitEnded{Message: message, Reason: reason}}}
}

const (
	done    = rollcallv1.FinishReason_FINISH_REASON_COMPLETED
	waiting = rollcallv1.FinishReason_FINISH_REASON_WAITING
)

// A runtime that keeps its promises is not blamed, one that does not is: the
// faults are put into the log by hand, because the runtime does not make them.
func TestPromises(t *testing.T) {
	for name, c := range map[string]struct {
		log      []*rollcallv1.Commit
		restarts []restart
		want     string
	}{
		"a sound handoff": {log: log(
			joins("m1", "A", "t1"), joins("m2", "B", "t2"), makes("t1", "A"), makes("t2", "B", "t1"),
			begins("r1", "m1"), completes("t1", "m1"), ends("r1", done), begins("r2", "m2"), completes("t2", "m2"), ends("r2", done),
		)},
		"begun before the delivery": {want: "B began before t1 was delivered", log: log(
			joins("m1", "A", "t1"), joins("m2", "B", "t2"), makes("t1", "A"), makes("t2", "B", "t1"),
			begins("r1", "m1"), begins("r2", "m2"), completes("t1", "m1"), ends("r1", done), ends("r2", done),
		)},
		"begun without a delivery": {want: "B began before t1 was delivered", log: log(
			joins("m2", "B", "t2"), makes("t2", "B", "t1"), begins("r2", "m2"),
		)},
		"two runs at once": {want: "A had two runs at once, r1 and r2", log: log(
			joins("m1", "A", "t1"), makes("t1", "A"), begins("r1", "m1"), begins("r2", "m1"),
		)},
		"a task closed by a wait": {want: "A waits for a reply, and its task t1 is closed", log: log(
			joins("m1", "A", "t1"), makes("t1", "A"), begins("r1", "m1"), waits("m1", "msg1"), completes("t1", "m1"), ends("r1", waiting),
		)},
		"opened again by itself": {want: "t1 was opened again by itself", log: log(
			joins("m1", "A", "t1"), makes("t1", "A"), begins("r1", "m1"), completes("t1", "m1"), ends("r1", done), reopens("t1", "framework"),
		)},
		"revised by the Lead": {log: log(
			joins("m1", "A", "t1"), makes("t1", "A"), begins("r1", "m1"), completes("t1", "m1"), ends("r1", done), reopens("t1", "lead"),
		)},
		"asleep after the restart": {restarts: []restart{{5}}, log: log(
			joins("m1", "A", "t1"), makes("t1", "A"), begins("r1", "m1"), waits("m1", "msg1"), ends("r1", waiting),
			says("Thursday"), waitEnds("msg1", "replied"), begins("r2", "m1"), completes("t1", "m1"), ends("r2", done),
		)},
		"awake before there was mail": {want: "A began a run after the restart, before there was mail", restarts: []restart{{5}}, log: log(
			joins("m1", "A", "t1"), makes("t1", "A"), begins("r1", "m1"), waits("m1", "msg1"), ends("r1", waiting),
			begins("r2", "m1"), ends("r2", waiting), says("Thursday"),
		)},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(broken(read(c.log), c.restarts), "\n")
			if got != c.want {
				t.Errorf("broken: %q, want %q", got, c.want)
			}
		})
	}
}

// Waits that follow each other without an answer are a loop, answered ones none.
func TestWaitingLoops(t *testing.T) {
	again := read(log(joins("m1", "A", "t1"), waits("m1", "msg1"), waitEnds("msg1", "cancelled"), waits("m1", "msg2")))
	n, notes := Case{Members: 1}.conduct(again, false)
	if n.Loops != 1 || !strings.Contains(strings.Join(notes, "\n"), "A waited again") {
		t.Errorf("%+v: %q", n, notes)
	}
	answered := read(log(joins("m1", "A", "t1"), waits("m1", "msg1"), waitEnds("msg1", "replied"), waits("m1", "msg2")))
	if n, notes := (Case{Members: 1}).conduct(answered, false); n.Loops != 0 {
		t.Errorf("%+v: %q", n, notes)
	}
}

// What the guards tell by mail is counted by what it says.
func TestAlerts(t *testing.T) {
	alert := func(topic string, quiet bool) *rollcallv1.Event {
		kind := rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT
		if quiet {
			kind = rollcallv1.MailKind_MAIL_KIND_TEXT
		}
		return &rollcallv1.Event{Kind: &rollcallv1.Event_MessageDelivered{MessageDelivered: &rollcallv1.MessageDelivered{Kind: kind, To: "m1", Topic: topic, Quiet: quiet}}}
	}
	n, notes := Case{Members: 1}.conduct(read(log(joins("m1", "A", "t1"), alert("deadlock", false), alert("nobody-left", false), alert("", true), alert("other", false))), false)
	if n.Loops != 2 || n.Guards != 1 || len(notes) != 3 {
		t.Errorf("%+v: %q", n, notes)
	}
}

// Quality is read from the result alone: what is whole, what lacks a fact, what
// has one too many, and in which spelling.
func TestQuality(t *testing.T) {
	c, _ := Named("independent-review")
	_, files := c.Inputs()
	given := c.Objective + "\n" + files["lease.txt"] + "\n" + files["budget.csv"]
	const whole = "Clause 3 says 30 days, clause 9 says 60 days. The total is 1,480 EUR, the items come to 1420."
	for name, x := range map[string]struct {
		answer              string
		missing, fabricated string
	}{
		"whole":              {answer: whole},
		"a fact too few":     {answer: "Clause 3 says 30 days. The total is 1480, the items come to 1420.", missing: "60 days in the answer"},
		"a number too many":  {answer: whole + " A third clause says 45 days.", fabricated: "45"},
		"an amount too many": {answer: whole + " It should be 2,960.", fabricated: "2960"},
		"small numbers":      {answer: whole + " These are 2 findings, in 2 files."},
		"nothing":            {missing: "30 days in the answer, 60 days in the answer, the stated total in the answer, the right total in the answer"},
	} {
		q := c.judge(given, Result{Answer: x.answer})
		if got := strings.Join(q.Missing, ", "); got != x.missing {
			t.Errorf("%s: missing %q, want %q", name, got, x.missing)
		}
		if got := strings.Join(q.Fabricated, ", "); got != x.fabricated {
			t.Errorf("%s: made up %q, want %q", name, got, x.fabricated)
		}
		if q.Success != (x.missing+x.fabricated == "") {
			t.Errorf("%s: success is %v", name, q.Success)
		}
	}
	c, _ = Named("missing-decision")
	guess := Result{Answer: "eu-north-1", Files: map[string]string{"Planner/deployment.md": "tern: two machines in eu-west-9 or eu-north-1"}}
	if q := c.judge("The region is eu-north-1.", guess); q.Success || !slices.Equal(q.Fabricated, []string{"eu-west-9"}) {
		t.Errorf("a guess in a file: %+v", q)
	}
	sound := Result{Answer: "eu-north-1", Files: map[string]string{"Planner/deployment.md": "tern: two machines in eu-north-1"}}
	if q := c.judge("The region is eu-north-1.", sound); !q.Success {
		t.Errorf("as it was said: %+v", q)
	}
	// What was made up before the operator spoke counts, also when it was mended.
	if q := c.judge("The region is eu-north-1.", sound).with([]string{"eu-west-9"}); q.Success || len(q.Fabricated) != 1 {
		t.Errorf("mended later: %+v", q)
	}
}

// Every case has words, facts, and something that could be made up; none gives
// its own answer away.
func TestCases(t *testing.T) {
	for _, c := range Cases {
		_, files := c.Inputs()
		given := c.Objective + c.Hint
		for _, text := range files {
			given += "\n" + text
		}
		if len(c.Facts) == 0 || len(c.Claims) == 0 || c.About == "" {
			t.Errorf("%s judges nothing: %+v", c.Name, c)
		}
		for _, s := range c.Steps {
			for _, claim := range c.Claims {
				for _, v := range values(claim, s.Say) {
					if s.Asked && slices.Contains(values(claim, given), v) {
						t.Errorf("%s gives %s away", c.Name, v)
					}
				}
			}
		}
		for _, p := range c.Removed {
			if _, there := files[p]; there {
				t.Errorf("%s: %s is there", c.Name, p)
			}
		}
		if q := c.judge(given, Result{}); q.Success {
			t.Errorf("%s: nothing succeeds", c.Name)
		}
	}
}

// sample is a report with every field.
func sample() Report {
	usage := Usage{Seconds: 1.5, Calls: 3, InputTokens: 1000, OutputTokens: 50, Cost: 0.0125}
	r := Report{
		Version: "1.2.3", Started: time.Date(2026, 5, 3, 7, 0, 0, 0, time.UTC), Runs: 2, Budget: Budget{Tokens: 300_000},
		Cases:  []Played{{Name: "direct-answer", About: "a small question", Snapshot: "5f", Alone: true}},
		Models: []Model{{Name: "m", BaseURL: "http://localhost:1/v1", Served: []string{"m-2026"}, Agents: []string{"ab"}, Input: 1, Cached: 0.5, Output: 4}},
		Plays: []Play{
			{Model: "m", Case: "direct-answer", Arm: Team, Run: 1, Conversation: "c1", Status: "done", Answer: "3.4 m at 12:00", Files: []string{"Lead/a.md"}, Quality: Quality{Success: true}, Usage: usage},
			{
				Model: "m", Case: "direct-answer", Arm: Team, Run: 2, Conversation: "c2", Status: "failed", Exit: api.ExitTeamFailed, Answer: "3.9 m",
				Quality: Quality{Missing: []string{"12:00 in the answer"}, Fabricated: []string{"3.9"}},
				Conduct: Conduct{Needless: 1, Redundant: 2, Duplicate: 3, Invalid: 4, Loops: 5, Guards: 6, Undelivered: 7, Lacking: 8},
				Notes:   []string{"needless: a team"}, Broken: []string{"it ended as failed (7): 1 task is open: t1"}, Usage: usage, Restarts: 1,
			},
			{Model: "m", Case: "direct-answer", Arm: Alone, Run: 1, Conversation: "c3", Usage: usage, Error: "it did not come to rest in its time"},
		},
	}
	r.sum()
	return r
}

func TestDocuments(t *testing.T) {
	r := sample()
	doc, err := api.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", string(doc)+"\n")
	golden(t, "table.txt", r.Table())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs (go test ./internal/eval -update, then read the change):\n%s", file, got)
	}
}

// What passes, and what each demand adds.
func TestPassed(t *testing.T) {
	good := Play{Arm: Team, Quality: Quality{Success: true}}
	poor, misused := Play{Arm: Team}, Play{Arm: Team, Quality: Quality{Success: true}, Conduct: Conduct{Invalid: 1}}
	for name, x := range map[string]struct {
		plays  []Play
		rate   float64
		strict bool
		want   bool
	}{
		"nothing played":             {},
		"all good":                   {plays: []Play{good}, rate: 1, strict: true, want: true},
		"quality does not fail it":   {plays: []Play{poor}, want: true},
		"unless it must":             {plays: []Play{good, poor}, rate: 0.6},
		"enough of it":               {plays: []Play{good, poor}, rate: 0.5, want: true},
		"the baseline does not help": {plays: []Play{poor, {Arm: Alone, Quality: Quality{Success: true}}}, rate: 0.1},
		"a misused team":             {plays: []Play{misused}, want: true},
		"a misused team, strictly":   {plays: []Play{misused}, strict: true},
		"a broken promise":           {plays: []Play{{Arm: Team, Quality: Quality{Success: true}, Broken: []string{"x"}}}},
		"not played to the end":      {plays: []Play{{Arm: Team, Error: "x"}}},
	} {
		r := Report{Plays: x.plays}
		r.sum()
		if got := r.Passed(x.rate, x.strict); got != x.want {
			t.Errorf("%s: passed is %v", name, got)
		}
	}
}
