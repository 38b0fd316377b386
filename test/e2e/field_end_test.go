package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const fieldEndScript = `rules:
  # A report that is said and not delivered, and states to look at.
  - name: survey
    member: '^Lead$'
    has: [Case survey]
    lacks: ['"name":"team_create","arguments"']
    tools:
      - {name: team_create, args: {name: surveyors}}
      - {name: task_create, args: {title: survey, description: Look at the dike., owner: Sue}}
      - {name: team_member_add, args: {name: Sue, initial_prompt: Survey the dike.}}
      - {name: team_member_add, args: {name: Ask, initial_prompt: Ask the operator.}}
      - {name: team_member_add, args: {name: Bad, initial_prompt: Fail.}}
  - {name: told, member: '^Lead$', has: [Case survey, Sue ended its turn without completing it], text: 'Then it stays open.'}
  - {name: under way, member: '^Lead$', has: [Case survey], text: They are under way.}
  - {name: claim, member: '^Sue$', lacks: ['"name":"task_update","arguments"'], tools: [{name: task_update, args: {task_id: t1, status: in_progress}}]}
  - {name: said, member: '^Sue$', hold: sue, text: 'The dike is sound, but for the north gate.'}
  - {name: ask, member: '^Ask$', lacks: ['"name":"send_message","arguments"'], tools: [{name: send_message, args: {to: user, text: 'Which gate?', wait_for_reply: true}}]}
  - {name: asked, member: '^Ask$', text: Thank you.}
  - {name: bad, member: '^Bad$', status: 401, code: invalid_api_key, text: no such key}

  # Two teams alike, of which one is dissolved.
  - name: twins
    member: '^Lead$'
    has: [Case twin]
    lacks: ['"name":"team_create","arguments"']
    tools:
      - {name: team_create, args: {name: twins}}
      - {name: task_create, args: {title: work, description: Do it., owner: Worker}}
      - {name: team_member_add, args: {name: Worker, initial_prompt: Work.}}
  - {name: twin's lead, member: '^Lead$', has: [Case twin], text: They work.}
  - {name: twin begins, member: '^Worker$', lacks: ['"name":"task_update","arguments"'], tools: [{name: task_update, args: {task_id: t1, status: in_progress}}]}
  - {name: twin works, member: '^Worker$', lacks: ['"name":"task_complete","arguments"'], hold: twins, tools: [{name: task_complete, args: {task_id: t1, result: It is done.}}]}
  - {name: twin rests, member: '^Worker$', text: That was all.}

  # Calls that cannot be made, and answers that say nothing.
  - name: wrong calls
    member: '^Lead$'
    has: [Case wrong]
    lacks: ['team_sendMessage']
    tools:
      - {name: team_sendMessage, args: {to: user, text: x}}
      - {name: SEND_MESSAGE, args: {to: user, text: x}}
      - {name: send_message, raw: '{"to": "user", "text": "cut'}
      - {name: send_message, args: {to: 7, text: [x]}}
      - {name: send_message, args: {to: user, text: it is heard}}
  - {name: after wrong calls, member: '^Lead$', has: [Case wrong], text: I went on.}
  - {name: once, member: '^Lead$', has: [Case once], lacks: [neither text nor a tool call], text: ''}
  - {name: after once, member: '^Lead$', has: [Case once], text: I do have a word.}
  - {name: for ever, member: '^Lead$', has: [Case silent], reasoning: 'All is done, I think.', text: " \n"}
`

// TestFieldEnds: how turns and teams end is told, and hits nobody else.
func TestFieldEnds(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, fieldEndScript))
	p.start()
	c := p.client()
	survey := p.detach("survey", "Case survey: the dike.")
	one := p.open(c, "one", "Case twin: work.")
	two := p.openBeside(c, one, "two", "Case twin: work.")

	t.Run("b45-unknown-tool", func(t *testing.T) {
		p := p.on(t)
		end := p.rollcall("run", "Case wrong: call.", "--contract", "mailbox", "--json").ended(t)
		if end.Exit != 0 || end.Answer != "I went on." {
			t.Errorf("it ended with %+v", end)
		}
		done := only(p.facts(c, end.Conversation), (*rollcallv1.Event).GetToolCallFinished)
		if len(done) != 5 || done[4].GetError() {
			t.Fatalf("the calls came to %v", done)
		}
		for i, words := range [][]string{{"[tool-unknown]", "send_message"}, {"[tool-unknown]", "send_message"}, {"[argument-invalid]", "text (required)"}, {"[argument-invalid]", "to", "text"}} {
			for _, word := range words {
				if !done[i].GetError() || !strings.Contains(done[i].GetOutput().GetText(), word) {
					t.Errorf("call %d came to %v, without %s", i, done[i], word)
				}
			}
		}
		p.settled(c, end.Conversation, 2)
	})

	t.Run("b47-empty-replies", func(t *testing.T) {
		p := p.on(t)
		once := p.rollcall("run", "Case once: say it.", "--contract", "mailbox", "--json").ended(t)
		if once.Exit != 0 || once.Answer != "I do have a word." {
			t.Errorf("after one empty answer: %+v", once)
		}
		p.settled(c, once.Conversation, 2)
		silent := p.rollcall("run", "Case silent: say it.", "--contract", "mailbox", "--json").ended(t)
		if silent.Exit != 7 || silent.Status != "failed" || silent.Answer != "" {
			t.Errorf("without any answer: %+v", silent)
		}
		p.settled(c, silent.Conversation, 2)
	})

	// Elsewhere the end of one team took a stranger's work down.
	t.Run("b16-the-neighbours-go-on", func(t *testing.T) {
		p := p.on(t)
		p.until(c, one, "one works", working("Worker"))
		before := p.until(c, two, "two works", working("Worker"))
		version := before.Version
		p.ok("dissolve", one)
		p.until(c, one, "one is gone", func(s *domain.State) bool { return quiet(s) && !s.Members[1].Alive() })
		for _, r := range p.asked(two, "Worker") {
			if r.RuleName == "twin works" && (r.Ended || r.Gone) {
				t.Error("the other's call was stopped")
			}
		}
		if after := p.state(c, two); after.Version != version || after.Hash() != before.Hash() {
			t.Errorf("the other came to version %d from %d", after.Version, version)
		}
		p.models.Release("twins")
		p.until(c, two, "two has done its work", func(s *domain.State) bool { return quiet(s) && len(s.OpenTasks()) == 0 })
		facts := p.facts(c, two)
		if runs := runsOf(facts, "m1"); len(runs) != 1 || ended(facts, runs[0].GetRun()) != "completed" || len(p.asked(two, "Worker")) != 3 {
			t.Errorf("the other's work took %d turns and %d calls", len(runs), len(p.asked(two, "Worker")))
		}
		if done := outcomes(p.facts(c, one), "task_complete"); len(done) > 0 {
			t.Errorf("the one that was dissolved still did %v", done)
		}
	})

	// Elsewhere a member printed its report, and nobody heard of it.
	t.Run("b31-ended-without-completing", func(t *testing.T) {
		p := p.on(t)
		const words = "The dike is sound, but for the north gate."
		p.held("sue")
		p.until(c, survey, "the others rest", func(s *domain.State) bool { return waiting("Ask")(s) && s.Named("Bad").Held && idle("Lead")(s) })
		p.models.Release("sue")
		p.until(c, survey, "all rest", func(s *domain.State) bool { return quiet(s) && idle("Sue")(s) })
		if !strings.Contains(p.ok("log", survey), words) {
			t.Error("rollcall log does not show what it said")
		}
		var show api.Detail
		if err := json.Unmarshal([]byte(p.ok("show", survey+"/Sue", "--json")), &show); err != nil {
			t.Fatal(err)
		}
		if len(show.Runs) != 1 || show.Runs[0].Reason != "idle" || fmt.Sprint(show.Runs[0].Undelivered) != "[t1]" {
			t.Errorf("its turn is shown as %+v", show.Runs)
		}
		// The operator is asked something, so that the report waits for him.
		got(c.Send(p.ctx(), survey, &rollcallv1.PostMessage{To: "Ask", Body: &rollcallv1.Body{Text: "The north gate."}})).must(t)
		s := p.until(c, survey, "the Lead is told", func(s *domain.State) bool { return quiet(s) && len(p.asked(survey, "Ask")) == 2 })
		told := 0
		for _, m := range delivered(p.facts(c, survey), "lead") {
			told += strings.Count(m.GetBody().GetText(), "Sue ended its turn without completing it")
		}
		if told != 1 || s.Verdict().Exit != 7 || len(s.OpenTasks()) != 1 {
			t.Errorf("the Lead was told %d times, the verdict is %+v", told, s.Verdict())
		}
	})

	// Elsewhere the status came late or said only "idle".
	t.Run("b32-status-with-version-and-reason", func(t *testing.T) {
		p := p.on(t)
		p.statuses(c, survey)
		s := p.state(c, survey)
		show := got(c.Show(p.ctx(), api.ReadRequest{Conversation: survey})).must(t)
		if show.Version != s.Version {
			t.Errorf("it shows version %d of %d", show.Version, s.Version)
		}
		for i, want := range []string{"lead idle idle", "m1 idle idle", "m2 idle idle", "m3 idle failed model-key-refused"} {
			m := show.Members[i]
			if got := strings.TrimSpace(strings.Join([]string{m.ID, m.Status, m.LastReason, m.LastCode}, " ")); got != want {
				t.Errorf("member %d is shown as %q, want %q", i, got, want)
			}
		}
	})
	p.settle(c, survey, one, two)
}

// openBeside opens a conversation that has its inbox and its owner in common with
// another.
func (p *place) openBeside(c *api.Client, other, name, objective string) string {
	p.t.Helper()
	partition := func(id string) int { return domain.Key{Tenant: "main", Conversation: id}.Partition() }
	id := api.NewID()
	for partition(id) != partition(other) {
		id = api.NewID()
	}
	got(c.Open(p.ctx(), &rollcallv1.OpenConversation{
		Conversation: id, Tenant: "main", Name: name, Contract: "mailbox", Objective: &rollcallv1.Body{Text: objective},
	})).must(p.t)
	return id
}

// statuses holds what is shown of every version against the log: who is in which
// state, in which run, why the last one ended, and who waits for whom.
func (p *place) statuses(c *api.Client, id string) {
	p.t.Helper()
	key, sealed := p.sealed(c, id)
	s := domain.New(key)
	seen := map[string]bool{}
	for _, raw := range sealed {
		commit, err := domain.Unseal(raw)
		if err != nil {
			p.t.Fatal(err)
		}
		s.Evolve(commit)
		show := got(c.Show(p.ctx(), api.ReadRequest{Conversation: id, At: s.Version})).must(p.t)
		if show.Version != s.Version || len(show.Members) != len(s.Members) || show.StateHash != s.Hash() {
			p.t.Fatalf("version %d is shown as %d with %d members", s.Version, show.Version, len(show.Members))
		}
		for i, m := range s.Members {
			want := []string{m.ID, domain.Word(m.Status), domain.Word(m.LastReason), m.LastCode, fmt.Sprint(m.Held), runID(m)}
			v := show.Members[i]
			got := []string{v.ID, v.Status, v.LastReason, v.LastCode, fmt.Sprint(v.Held), v.Run}
			if v.LastReason == "" {
				want[2] = ""
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				p.t.Errorf("version %d shows %q, it is %q", s.Version, got, want)
			}
			seen[v.Status+" "+v.LastReason] = true
		}
	}
	for _, want := range []string{"working ", "idle idle", "waiting waiting", "idle failed"} {
		if !seen[want] {
			p.t.Errorf("no member was ever %q: %v", want, seen)
		}
	}
}

func runID(m *domain.Member) string {
	if m.Run == nil {
		return ""
	}
	return m.Run.ID
}

func working(name string) func(*domain.State) bool {
	return func(s *domain.State) bool {
		m := s.Named(name)
		return m != nil && m.Run != nil && m.Run.Step == 2 && s.Lead().Run == nil
	}
}

func waiting(name string) func(*domain.State) bool {
	return func(s *domain.State) bool { m := s.Named(name); return m != nil && m.Run == nil && len(m.Waits) > 0 }
}

// settled checks how many calls a conversation that has ended took.
func (p *place) settled(c *api.Client, id string, calls int) {
	p.t.Helper()
	if n := len(p.asked(id, "")); n != calls {
		p.t.Errorf("it took %d calls, want %d", n, calls)
	}
	p.audit(c, id)
}
