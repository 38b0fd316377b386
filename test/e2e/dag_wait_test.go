package e2e_test

import (
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// dagWaitScript: a planner that is not told the region asks for it, and waits.
// Only an answer can bring it.
const dagWaitScript = `rules:
  - {name: close, member: '^Lead$', has: ['Delivered: Planner'], lacks: ['"name":"team_dissolve","arguments"'], tools: [{name: team_dissolve, args: {}}]}
  - {name: closed, member: '^Lead$', has: ['Delivered: Planner'], capture: {region: 'planned for ([\w-]+)'}, text: 'It goes to {{region}}.'}
  - name: pass it on
    member: '^Lead$'
    has: ['Region: [\w-]+']
    lacks: ['"name":"team_send_message","arguments"']
    capture: {region: 'Region: ([\w-]+)', question: 'answer (msg\d+)'}
    tools: [{name: team_send_message, args: {to: Planner, text: 'Use {{region}}.', reply_to: '{{question}}'}}]
  - {name: passed on, member: '^Lead$', has: ['Region: [\w-]+'], text: The planner goes on.}
  - {name: ask the operator, member: '^Lead$', has: [Case restart, 'from=\\"Planner\\"'], hold: the Lead thinks, text: Which region shall it be?}
  - {name: ask on, member: '^Lead$', has: ['Which region'], text: Which region shall it be?}
  - name: begin
    member: '^Lead$'
    lacks: ['"name":"team_create","arguments"']
    capture: {whom: 'ask (Lead|user)'}
    tools: [{name: team_create, args: {goal: A deployment., members: [{name: Planner, brief: 'Plan the deployment. The region was not decided: ask {{whom}} for it.'}]}}]
  - {name: begun, member: '^Lead$', text: It is being planned.}
  - name: save and ask
    member: '^Planner$'
    lacks: ['plan\.md', 'Use [\w-]+\.', 'Region: [\w-]+']
    capture: {whom: 'ask (Lead|user) for it'}
    tools:
      - {name: file_write, args: {path: plan.md, content: two small machines}}
      - {name: team_send_message, args: {to: '{{whom}}', text: Which region? The rest is in Planner/plan.md., wait_for_reply: true}}
  - {name: look back, member: '^Planner$', has: ['Use [\w-]+\.|Region: [\w-]+'], lacks: ['"name":"file_read","arguments"'], tools: [{name: file_read, args: {path: plan.md}}]}
  - name: plan
    member: '^Planner$'
    has: [two small machines]
    capture: {region: '(?:Use|Region:) ([\w-]+\d)'}
    tools:
      - {name: file_write, args: {path: plan.md, content: 'two small machines in {{region}}'}}
      - {name: complete, args: {summary: 'planned for {{region}}', paths: [plan.md]}}
`

// TestDagWait plays a decision that nobody but the operator can make.
func TestDagWait(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, dagWaitScript))
	p.start()
	c := p.client()
	var ids []string

	t.Run("dag-missing-decision", func(t *testing.T) {
		p := p.on(t)
		// The member asks the Lead, who asks the operator and ends its turn.
		lead := p.begin("run", "Plan a deployment; ask Lead.", "--name", "by-lead", "--json")
		user := p.begin("run", "Plan a deployment; ask user.", "--name", "by-user", "--json")
		end := lead.wait().ended(t)
		ids = append(ids, end.Conversation)
		if end.Exit != 7 || end.Status != "failed" || end.Answer != "Which region shall it be?" {
			t.Errorf("without the decision it ended with %+v", end)
		}
		p.undecided(c, "by-lead", "Planner waits for Lead to answer ")
		p.decided(c, "by-lead", "by-lead", "eu-west-1", 1)

		// The member asks the operator.
		end = user.wait().ended(t)
		ids = append(ids, end.Conversation)
		if end.Exit != 6 || end.Status != "waiting" || end.Answer != "It is being planned." {
			t.Errorf("without the decision it ended with %+v", end)
		}
		shows := p.undecided(c, "by-user", "Planner waits for operator to answer ")
		question := shows.Waits[0].Message
		if shows.NeedsOperator[0].Kind != "question" || shows.NeedsOperator[0].ID != question {
			t.Errorf("the operator is needed for %v, the question is %s", shows.NeedsOperator, question)
		}
		if ls := p.ok("ls"); !strings.Contains(ls, "question "+question) {
			t.Errorf("ls does not say so:\n%s", ls)
		}
		if n := p.called(shows.ID)["Lead"]; n != 2 {
			t.Errorf("the Lead was called %d times, also for what it was not asked", n)
		}
		p.decided(c, "by-user", "by-user/Planner", "ap-south-2", 0)
	})
	t.Run("dag-restart-while-waiting", func(t *testing.T) {
		p := p.on(t)
		id := strings.TrimSpace(p.ok("run", "Case restart: plan a deployment; ask Lead.", "--name", "restart", "--detach"))
		ids = append(ids, id)
		// The waiting turn is recorded, and the Lead is at the model with the
		// question: only the Lead is called again after the kill.
		p.held("the Lead thinks")
		s := p.until(c, id, "the planner waits", func(s *domain.State) bool { return domain.Word(s.Named("Planner").Status) == "waiting" })
		if s.Named("Planner").Run != nil {
			t.Fatal("the waiting turn is open")
		}
		calls := len(p.asked(id, "Planner"))
		p.kill()
		p.start()
		p.models.Release("the Lead thinks")
		p.until(c, id, "the Lead rests", quiet)
		// Nobody is at work: nobody is called at all.
		came := p.door.count.Load()
		p.kill()
		p.start()
		p.ok("roll", "restart")
		p.undecided(c, "restart", "Planner waits for Lead to answer ")
		if n := p.door.count.Load() - came; n != 0 || len(p.asked(id, "Planner")) != calls {
			t.Fatalf("%d connections to the model server, %d calls of the planner by starting again", n, len(p.asked(id, "Planner"))-calls)
		}
		p.decided(c, "restart", "restart", "us-east-3", 1)
		after := p.asked(id, "Planner")[calls:]
		if len(after) != 2 || times(t, after[0], "Use us-east-3.") != 1 || times(t, after[1], "two small machines") != 1 {
			t.Errorf("the reply led to %d calls", len(after))
		}
	})
	p.settle(c, ids...)
}

// undecided: the task is unfinished, its member sleeps, what it saved is there
// and names no region, and everybody can see what it waits for.
func (p *place) undecided(c *api.Client, name, waits string) api.Detail {
	p.t.Helper()
	shows := document[api.Detail](p, "show", name)
	if got := board(shows); got != "t1 Planner in_progress" || shows.Members[1].Status != "waiting" {
		p.t.Errorf("while it waits, the board of %s is %q, the planner %s", name, got, shows.Members[1].Status)
	}
	if len(shows.Waits) != 1 || shows.Waits[0].Member != "Planner" {
		p.t.Fatalf("%s waits for %+v", name, shows.Waits)
	}
	if said := p.ok("show", name); !strings.Contains(said, "\nwaits\n  "+waits+shows.Waits[0].Message+"\n") {
		p.t.Errorf("show %s does not say %q:\n%s", name, waits, said)
	}
	if plan := p.ok("files", name+"/Planner", "get", "plan.md"); plan != "two small machines" {
		p.t.Errorf("nobody decided, and the plan says %q", plan)
	}
	if n := p.called(shows.ID)["Planner"]; n != 1 {
		p.t.Errorf("the waiter was called %d times", n)
	}
	if f := p.facts(c, shows.ID); ended(f, runsOf(f, "m1")[0].GetRun()) != "waiting" {
		p.t.Error("its turn is not recorded as waiting")
	}
	return shows
}

// decided: the operator's word leads to the end; the same task is delivered, and
// the region in it is the one that was said.
func (p *place) decided(c *api.Client, name, to, region string, byLead int) {
	p.t.Helper()
	p.ok("send", to, "Region: "+region)
	s := p.rollcall("watch", name)
	if s.code != 0 || s.out != "It goes to "+region+".\n" {
		p.t.Errorf("watch %s ended with %d: %s%s", name, s.code, s.out, s.err)
	}
	shows := document[api.Detail](p, "show", name)
	if got := board(shows); got != "t1 Planner completed" || len(shows.Waits) != 0 || shows.Verdict.Status != "done" {
		p.t.Errorf("at the end the board of %s is %q, %+v", name, got, shows.Verdict)
	}
	if plan := p.ok("files", name+"/Planner", "get", "plan.md"); plan != "two small machines in "+region {
		p.t.Errorf("the plan of %s says %q", name, plan)
	}
	facts := p.facts(c, shows.ID)
	if ends := only(facts, (*rollcallv1.Event).GetWaitEnded); len(ends) != 1 || ends[0].GetReason() != "replied" {
		p.t.Errorf("the wait ended as %v", ends)
	}
	if sent := outcomes(facts, "team_send_message"); len(sent) != 1+byLead {
		p.t.Errorf("%d messages were sent", len(sent))
	}
}
