package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// TestDag plays the contract dag, which is the default of run: one question
// without a team, and teams whose work goes side by side, is handed over, is
// revised, and fails.
func TestDag(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, dagScript))
	p.start()
	c := p.client()
	harbour, river := p.file("harbour.txt", "depth: 7 m"), p.file("river.txt", "depth: 3 m")
	// All are begun at once: the node has room for them.
	review := p.begin("run", "Case review: review both charts.", "--name", "review", "--input", harbour, "--input", river, "--json")
	handoff := p.begin("run", "Case handoff: when was the bridge opened?", "--name", "handoff", "--json")
	revision := p.begin("run", "Case revision: how many boats are there?", "--name", "revision", "--json")
	failure := p.begin("run", "Case failure: chart the river.", "--name", "failure", "--json")
	var ids []string

	t.Run("dag-direct-answer", func(t *testing.T) {
		p := p.on(t)
		end := p.rollcall("run", "Case direct: the note says that the gauge stood at 3 m. How high was it?", "--name", "direct", "--json").ended(t)
		ids = append(ids, end.Conversation)
		isDone(t, end, "The gauge stood at 3 m.")
		shows := document[api.Detail](p, "show", "direct")
		if shows.Contract != "dag" || len(shows.Teams)+len(shows.Tasks.List) > 0 || len(shows.Members) != 1 || len(shows.Runs) != 1 {
			t.Errorf("show says %+v", shows)
		}
		asked := p.asked(end.Conversation, "")
		if len(asked) != 1 || !strings.Contains(string(asked[0].Body), `"name":"team_create"`) {
			t.Errorf("%d calls, with the tools %.2000s", len(asked), asked[0].Body)
		}
	})
	t.Run("dag-independent-review", func(t *testing.T) {
		p := p.on(t)
		p.independentReview(c)
		end := review.wait().ended(t)
		ids = append(ids, end.Conversation)
		isDone(t, end, "The harbour has 7 m, the river 3 m.")
		p.reviewedOnce(c, end.Conversation)
	})
	t.Run("dag-dependency-handoff", func(t *testing.T) {
		p := p.on(t)
		p.held("scout")
		p.handedOver(c)
		end := handoff.wait().ended(t)
		ids = append(ids, end.Conversation)
		isDone(t, end, "The bridge was opened in 1931.")
		p.readUpstream(end.Conversation)
		if page := p.ok("files", "handoff/Writer", "get", "page.md"); page != "The bridge was opened in 1931, says Scout." {
			t.Errorf("the page says %q", page)
		}
	})
	t.Run("dag-revision", func(t *testing.T) {
		p := p.on(t)
		end := revision.wait().ended(t)
		ids = append(ids, end.Conversation)
		isDone(t, end, "There are 12 boats. The team is there for questions.")
		p.revised(c, end.Conversation)
	})
	t.Run("dag-failure-recovery", func(t *testing.T) {
		p := p.on(t)
		p.models.Release("gauge")
		end := failure.wait().ended(t)
		ids = append(ids, end.Conversation)
		isDone(t, end, "Chart: gravel at about 3 m.")
		p.recovered(c, end.Conversation)
	})
	p.settle(c, ids...)
}

func isDone(t *testing.T, end ending, answer string) {
	t.Helper()
	if end.Status != "done" || end.Exit != 0 || end.Answer != answer {
		t.Fatalf("it ended with %+v, want done and %q", end, answer)
	}
}

// board is the tasks as show tells them: "t1 Ana completed, t2 Ben pending".
func board(d api.Detail) string {
	var lines []string
	for _, task := range d.Tasks.List {
		line := task.ID + " " + task.Owner + " " + task.Status
		if task.Stale {
			line += " stale"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ", ")
}

// called counts the calls of each member that the model server has.
func (p *place) called(id string) map[string]int {
	n := map[string]int{}
	for _, r := range p.asked(id, "") {
		n[r.Member]++
	}
	return n
}

// independentReview lets both members go when both are at the model server: the
// server's own record says that they overlap.
func (p *place) independentReview(c *api.Client) {
	p.t.Helper()
	p.poll("both members are called at once", func() bool {
		at := map[string]bool{}
		for _, r := range p.models.Requests() {
			if strings.HasSuffix(r.RuleName, " reads") && !r.Ended && (r.Member == "Hana" || r.Member == "Rio") {
				at[r.Member] = true
			}
		}
		return len(at) == 2
	})
	shows := document[api.Detail](p, "show", "review")
	if got := board(shows); got != "t1 Hana in_progress, t2 Rio in_progress" || shows.Status != "working" {
		p.t.Errorf("while both work, show says %s: %q", shows.Status, got)
	}
	// They were launched by the end of the Lead's turn, not by their declaration.
	lead := ended(p.facts(c, shows.ID), "r1")
	first := slices.IndexFunc(p.asked(shows.ID, ""), func(r scripted.Request) bool { return r.Member != "Lead" })
	if lead != "idle" || first != 2 {
		p.t.Errorf("the Lead's turn is %q, and the first call of a member is number %d", lead, first+1)
	}
	p.models.Release("side by side")
}

// reviewedOnce: two members, two calls each; one report, one integration; each
// read its own file.
func (p *place) reviewedOnce(c *api.Client, id string) {
	p.t.Helper()
	if n := p.called(id); n["Hana"] != 2 || n["Rio"] != 2 || n["Lead"] != 5 || len(n) != 3 {
		p.t.Errorf("calls %v", n)
	}
	facts := p.facts(c, id)
	if told := reportsOf(facts); len(told) != 1 || strings.Count(told[0], "Delivered: ") != 2 {
		p.t.Errorf("the reports are %q", told)
	}
	if runs := runsOf(facts, "lead"); len(runs) != 2 {
		p.t.Errorf("the Lead had %d turns", len(runs))
	}
	for member, file := range map[string]string{"Hana": "7 m", "Rio": "3 m"} {
		if asked := p.asked(id, member); times(p.t, asked[len(asked)-1], "depth: "+file) != 1 {
			p.t.Errorf("%s did not read its file", member)
		}
	}
	if got := board(document[api.Detail](p, "show", "review")); got != "t1 Hana completed, t2 Rio completed" {
		p.t.Errorf("at the end the board is %q", got)
	}
}

// reportsOf are the team reports to the Lead, in order.
func reportsOf(facts []fact) (all []string) {
	for _, m := range delivered(facts, "lead") {
		if m.GetKind() == rollcallv1.MailKind_MAIL_KIND_TEAM_REPORT {
			all = append(all, m.GetBody().GetText())
		}
	}
	return all
}

// handedOver looks at the moment before the delivery: who depends on it has not
// begun, and everybody can see what it waits for. Then the scout may deliver.
func (p *place) handedOver(c *api.Client) {
	p.t.Helper()
	p.until(c, document[api.Detail](p, "show", "handoff").ID, "the Lead rests", idle("Lead"))
	shows := document[api.Detail](p, "show", "handoff")
	if got := board(shows); got != "t1 Writer pending, t2 Scout in_progress" {
		p.t.Errorf("before the delivery the board is %q", got)
	}
	if writer := shows.Members[1]; writer.Name != "Writer" || writer.Status != "spawning" || writer.Unread != 1 {
		p.t.Errorf("before the delivery the writer is %+v", writer)
	}
	said := p.ok("show", "handoff")
	if want := "  t1    Writer  pending      Scout  Write page.md"; !strings.Contains(said, want) || !strings.Contains(said, "Writer waits for Scout to deliver t2") {
		p.t.Errorf("show does not say %q, and who waits:\n%s", want, said)
	}
	if n := len(p.asked(shows.ID, "Writer")); n != 0 {
		p.t.Errorf("the writer was called %d times before the delivery", n)
	}
	p.models.Release("scout")
}

// readUpstream: the writer's first request comes after the answer in which the
// scout delivered, and shows summary and path; its file comes from the scout's.
func (p *place) readUpstream(id string) {
	p.t.Helper()
	scout, writer := p.asked(id, "Scout"), p.asked(id, "Writer")
	if len(scout) != 1 || len(writer) != 2 {
		p.t.Fatalf("%d calls of the scout, %d of the writer", len(scout), len(writer))
	}
	if writer[0].N < scout[0].N || !writer[0].Time.After(scout[0].Time) {
		p.t.Errorf("the writer is called at %v, the scout at %v", writer[0].Time, scout[0].Time)
	}
	begun := newest(p.t, writer[0])
	if kinds := begun.kinds(); !slices.Equal(kinds, []string{"brief", "task_ready"}) {
		p.t.Errorf("the writer begins with %v", kinds)
	}
	for _, want := range []string{"The year of the bridge is in the file.", "Scout/notes/found/facts.md"} {
		if times(p.t, writer[0], want) != 1 {
			p.t.Errorf("the writer is not shown %q", want)
		}
	}
	if times(p.t, writer[1], "opened in 1931") != 1 {
		p.t.Error("the writer did not read the scout's file")
	}
}

// revised sends corrected evidence: the same task is opened again, what was built
// on it is stale and stays so until it is done again as well.
func (p *place) revised(c *api.Client, id string) {
	p.t.Helper()
	shows := document[api.Detail](p, "show", "revision")
	if got := board(shows); got != "t1 Counter completed, t2 Teller completed" || !shows.Teams[0].Active {
		p.t.Errorf("after the delivery the board is %q, the team %+v", got, shows.Teams)
	}
	p.ok("send", "revision", "New evidence: 14 boats were seen.")
	p.held("recount")
	p.until(c, id, "the Lead rests", idle("Lead"))
	shows = document[api.Detail](p, "show", "revision")
	if got := board(shows); got != "t1 Counter in_progress, t2 Teller completed stale" || shows.Tasks.List[0].Revision != 1 {
		p.t.Errorf("while it is counted again the board is %q", got)
	}
	if said := p.ok("show", "revision"); !strings.Contains(said, "completed (stale)") {
		p.t.Errorf("show does not say what is stale:\n%s", said)
	}
	if n := p.called(id)["Teller"]; n != 2 {
		p.t.Errorf("what is stale ran by itself: %d calls", n)
	}
	p.models.Release("recount")
	s := p.rollcall("watch", "revision")
	if s.code != 0 || s.out != "There are 14 boats.\n" {
		p.t.Errorf("watch ended with %d: %s%s", s.code, s.out, s.err)
	}
	shows = document[api.Detail](p, "show", "revision")
	if got := board(shows); got != "t1 Counter completed, t2 Teller completed" || len(shows.Members) != 3 {
		p.t.Errorf("at the end the board is %q", got)
	}
	if got := p.ok("files", "revision/Teller", "get", "sentence.txt"); got != "We saw 14 boats." {
		p.t.Errorf("the sentence is %q", got)
	}
	facts := p.facts(c, id)
	if n := len(only(facts, (*rollcallv1.Event).GetTaskCreated)); n != 2 {
		p.t.Errorf("%d tasks were made for it", n)
	}
	stale, first := only(facts, (*rollcallv1.Event).GetTaskMarkedStale), only(facts, (*rollcallv1.Event).GetTaskReopened)
	if len(stale) != 1 || stale[0].GetTask() != "t2" || len(first) != 2 || first[0].GetTask() != "t1" || first[1].GetTask() != "t2" {
		p.t.Errorf("stale: %v, opened again: %v", stale, first)
	}
}

// recovered: the Lead was told of the failure at once, what was delivered stays,
// the evidence of the failure too, and replacements have new names and edges of
// their own.
func (p *place) recovered(c *api.Client, id string) {
	p.t.Helper()
	shows := document[api.Detail](p, "show", "failure")
	if got := board(shows); got != "t1 Ground completed, t2 Gauge cancelled, t3 Chart cancelled, t4 Gauge2 completed, t5 Chart2 completed" {
		p.t.Errorf("at the end the board is %q", got)
	}
	tasks := shows.Tasks.List
	if gauge := tasks[1]; !strings.Contains(gauge.Failure, "400") || !strings.Contains(gauge.Reason, "its input is not there") {
		p.t.Errorf("of the failure is left: %+v", gauge)
	}
	if !slices.Equal(tasks[4].Dependencies, []string{"t1", "t4"}) || !slices.Equal(tasks[3].Dependencies, []string{"t1"}) {
		p.t.Errorf("the replacements depend on %v and %v", tasks[3].Dependencies, tasks[4].Dependencies)
	}
	facts := p.facts(c, id)
	for _, f := range facts {
		if f.GetTaskReopened() != nil || f.GetTaskCompleted().GetTask() == "t1" && f.GetTaskCompleted().GetBy() != "m1" {
			p.t.Errorf("the delivered work was touched: %v", f.Event)
		}
	}
	if reads := outcomes(facts, "file_read"); !reads[0].GetError() {
		p.t.Errorf("the missing input is read as %v", reads[0])
	}
	replan := outcomes(facts, "team_replan")
	if len(replan) != 1 || replan[0].GetError() {
		p.t.Fatalf("the replan came to %v", replan)
	}
	text := replan[0].GetOutput().GetText()
	for _, want := range []string{`"op":"cancel","name":"Gauge","done":true`, "[name-taken]", `"op":"add","name":"Chart2","done":true`, `"also_cancelled":"Chart"`, `"members":[`} {
		if !strings.Contains(text, want) {
			p.t.Errorf("the replan does not report %q: %s", want, text)
		}
	}
	if n := p.called(id); n["Chart"] != 0 || n["Ground"] != 1 || n["Gauge"] != 2 {
		p.t.Errorf("calls %v", n)
	}
	for _, m := range p.state(c, id).Members {
		if m.Alive() != m.IsLead() {
			p.t.Errorf("%s is %s after the team was dissolved", m.Name, domain.Word(m.Status))
		}
	}
	var told time.Duration
	for _, r := range shows.Runs {
		if r.Reason == "failed" {
			told = r.Finished.Sub(r.Started)
		}
	}
	if told == 0 {
		p.t.Error("show has no run that failed")
	}
}
