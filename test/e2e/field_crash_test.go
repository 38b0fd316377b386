package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
	"github.com/rollcall-dev/rollcall/projections"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func fieldCrashScript() string {
	var writes strings.Builder
	for i := range 60 {
		fmt.Fprintf(&writes, "      - {name: file_write, args: {path: f%d.txt, content: It is %d.}}\n", i, i)
	}
	return `rules:
  # A team at rest with all that a team has.
  - name: household
    member: '^Lead$'
    has: [Case home]
    lacks: ['"name":"team_create","arguments"']
    tools:
      - {name: team_create, args: {name: household}}
      - {name: team_member_add, args: {name: Ann, initial_prompt: Stay at home.}}
      - {name: team_member_add, args: {name: Bob, initial_prompt: Stay at home.}}
      - {name: team_member_add, args: {name: Cat, initial_prompt: Stay at home.}}
      - {name: task_create, args: {title: shop, description: Buy it., owner: Ann}}
      - {name: task_create, args: {title: cook, description: Cook it., owner: Bob, dependencies: [t1]}}
      - {name: task_create, args: {title: wash, description: Wash up., owner: Cat, dependencies: [t2]}}
      - {name: task_create, args: {title: pay, description: Pay for it., owner: user}}
  - {name: at home, has: [Case home|Stay at home], text: I am at home.}

  # A thousand messages that were read.
  - name: office
    member: '^Lead$'
    has: [Case busy]
    lacks: ['"name":"team_create","arguments"']
    tools:
      - {name: team_create, args: {name: office}}
      - {name: team_member_add, args: {name: Clerk1, initial_prompt: Be busy.}}
      - {name: team_member_add, args: {name: Clerk2, initial_prompt: Be busy.}}
      - {name: team_member_add, args: {name: Clerk3, initial_prompt: Be busy.}}
  - {name: busy, has: [Case busy|Be busy], lacks: [number 249], hold: busy, text: I was busy.}
  - {name: has read, has: [Case busy|Be busy], text: I have read it.}

  # Turns whose process dies.
  - name: hire
    member: '^Lead$'
    has: [Case hang]
    lacks: ['"name":"team_create","arguments"']
    tools:
      - {name: team_create, args: {name: patient}}
      - {name: task_create, args: {title: hang, description: Hang., owner: Worker}}
      - {name: team_member_add, args: {name: Worker, initial_prompt: Hang about.}}
  - {name: spoken to, member: '^Lead$', has: [Case hang, Are you there], text: I am here.}
  - {name: lead hangs, member: '^Lead$', has: [Case hang], hold: hung, text: I hung about.}
  - {name: claims, member: '^Worker$', lacks: ['"name":"task_update","arguments"'], tools: [{name: task_update, args: {task_id: t1, status: in_progress}}]}
  - {name: hangs, member: '^Worker$', hold: hung, text: I hung about.}

  # A batch to be broken off.
  - name: batch
    member: '^Lead$'
    has: [Case batch]
    lacks: ['"name":"file_write","arguments"']
    hold: batch
    tools:
` + writes.String() + `  - {name: batch is done, member: '^Lead$', has: [Case batch], text: All are written.}
`
}

// patients are conversations whose Lead and Worker hang when the node dies, and
// what the operator does with each afterwards.
var patients = []struct {
	name string
	does func(p *place, c *api.Client, id string)
}{
	{"interrupt", func(p *place, c *api.Client, id string) {
		for _, who := range []string{"lead", "Worker"} {
			got(c.Interrupt(p.ctx(), id, who)).must(p.t)
		}
		p.until(c, id, "both are stopped", func(s *domain.State) bool { return quiet(s) && s.Lead().Held && s.Members[1].Held })
	}},
	{"retry", func(p *place, c *api.Client, id string) {
		if _, err := c.Retry(p.ctx(), id, "Worker"); err == nil || api.AsRefusal(err).Code != domain.CodeNotHeld {
			p.t.Errorf("to retry one that works came to %v", err)
		}
		got(c.Interrupt(p.ctx(), id, "Worker")).must(p.t)
		got(c.Retry(p.ctx(), id, "Worker")).must(p.t)
		p.until(c, id, "it is asked again", func(s *domain.State) bool { return s.Members[1].Run != nil && s.Members[1].Run.ID != "r2" })
	}},
	{"write", func(p *place, c *api.Client, id string) {
		got(c.Send(p.ctx(), id, &rollcallv1.PostMessage{Body: &rollcallv1.Body{Text: "Are you there?"}})).must(p.t)
		p.served(id, "spoken to")
	}},
	{"pause", func(p *place, c *api.Client, id string) {
		got(c.Pause(p.ctx(), id)).must(p.t)
		got(c.Resume(p.ctx(), id)).must(p.t)
		if s := p.state(c, id); s.Paused || s.Lead().Run == nil {
			p.t.Errorf("after pause and resume the Lead is %s", domain.Word(s.Lead().Status))
		}
	}},
	{"dissolve", func(p *place, c *api.Client, id string) {
		got(c.Dissolve(p.ctx(), id)).must(p.t)
		if s := p.state(c, id); s.Members[1].Alive() || s.Members[1].Run != nil || domain.Word(s.Tasks[0].Status) != "cancelled" {
			p.t.Errorf("the dissolved Worker is %s", domain.Word(s.Members[1].Status))
		}
	}},
	{"cancel", func(p *place, c *api.Client, id string) {
		got(c.ChangeTask(p.ctx(), id, &rollcallv1.ChangeTask{Operation: rollcallv1.ChangeTask_OPERATION_CANCEL, Task: "t1", Text: "enough"})).must(p.t)
		if s := p.state(c, id); domain.Word(s.Tasks[0].Status) != "cancelled" {
			p.t.Errorf("the cancelled task is %s", domain.Word(s.Tasks[0].Status))
		}
	}},
}

// TestFieldCrash: kill -9 under teams that rest and under teams that work.
func TestFieldCrash(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, fieldCrashScript()))
	p.start()
	c := p.client()
	home, busy := p.open(c, "home", "Case home: be there."), p.open(c, "busy", "Case busy: be there.")
	var hung []string
	for _, patient := range patients {
		hung = append(hung, p.open(c, patient.name, "Case hang: hang about."))
	}
	p.until(c, home, "home rests", func(s *domain.State) bool { return quiet(s) && len(s.Members) == 4 && idle("Cat")(s) })
	got(c.ChangeTask(p.ctx(), home, &rollcallv1.ChangeTask{Operation: rollcallv1.ChangeTask_OPERATION_ADD, Title: "rest", Owner: "Bob", Dependencies: []string{"t3", "t4"}})).must(t)
	p.until(c, busy, "the office is open", func(s *domain.State) bool { return len(s.Members) == 4 && s.Members[3].Run != nil })
	p.thousand(c, busy)
	hanging := func() bool { return p.hanging() == 2*len(patients) }
	p.poll("all patients hang", hanging)
	before := map[string]sight{home: p.sightOf(c, home), busy: p.sightOf(c, busy)}
	calls := len(p.asked(busy, ""))
	polls := p.pollRuns(hung)
	p.poll("the runs are found", func() bool { return polls.answers() >= len(hung) })
	p.noSnapshots()
	p.kill()
	alive := polls.answers()
	p.forget()
	p.start()

	// Elsewhere the team was gone after a restart. From the log alone, all is there.
	t.Run("b13-team-after-kill", func(t *testing.T) {
		p := p.on(t)
		differences(t, before[home], p.sightOf(c, home))
		s := p.state(c, home)
		unread := 0
		for _, m := range s.Members {
			unread += len(m.Unread)
		}
		if len(s.Members) != 4 || len(s.Tasks) != 5 || unread != 1 {
			t.Errorf("%d members, %d tasks, %d unread messages", len(s.Members), len(s.Tasks), unread)
		}
		if n := len(p.asked(home, "")); n != 5 {
			t.Errorf("%d calls", n)
		}
		got(c.ChangeTask(p.ctx(), home, &rollcallv1.ChangeTask{Operation: rollcallv1.ChangeTask_OPERATION_DONE, Task: "t1", Text: "shopped"})).must(t)
		p.until(c, home, "Bob is woken by his task", func(s *domain.State) bool { return quiet(s) && len(p.asked(home, "Bob")) == 2 })
	})

	// Elsewhere mail that had been read was read again as new.
	t.Run("b56-read-mail-stays-read", func(t *testing.T) {
		p := p.on(t)
		differences(t, before[busy], p.sightOf(c, busy))
		if n := len(p.asked(busy, "")); n != calls {
			t.Errorf("%d calls by restarting", n-calls)
		}
		got(c.Send(p.ctx(), busy, &rollcallv1.PostMessage{To: "Clerk2", Body: &rollcallv1.Body{Text: "One more."}})).must(t)
		p.until(c, busy, "the clerk rests", quiet)
		if n := len(p.asked(busy, "")); n != calls+1 {
			t.Errorf("%d calls for one message", n-calls)
		}
	})

	// Elsewhere a run whose process had died was for ever running, and could
	// neither be cancelled nor taken up.
	t.Run("b17-no-run-without-an-owner", func(t *testing.T) {
		p := p.on(t)
		p.poll("all patients are asked again", hanging)
		for i, patient := range patients {
			resumed := map[string]bool{}
			for _, r := range only(p.facts(c, hung[i]), (*rollcallv1.Event).GetRunResumed) {
				resumed[r.GetRun()] = true
			}
			if len(resumed) != 2 {
				t.Errorf("%s: taken up were %v", patient.name, resumed)
			}
			patient.does(p, c, hung[i])
		}
		p.models.Release("hung")
		for i, patient := range patients {
			s := p.until(c, hung[i], patient.name+" rests", quiet)
			for _, m := range s.Members {
				if m.Run != nil || domain.Word(m.Status) == "working" {
					t.Errorf("%s: %s is %s", patient.name, m.Name, domain.Word(m.Status))
				}
			}
		}
	})

	// Elsewhere whoever asked for a run during a crash was told that there is none.
	t.Run("b18-a-run-is-always-found", func(t *testing.T) {
		p.on(t).poll("the runs are found again", func() bool { return polls.answers() >= alive+len(hung) })
		polls.halt()
		for _, wrong := range slices.Compact(polls.wrong) {
			t.Error(wrong)
		}
	})

	t.Run("b20-only-the-open-call-is-repeated", func(t *testing.T) { p.on(t).brokenBatch(c) })
	p.settle(c, append(hung, home, busy)...)
}

// thousand messages are brought to four members and read.
func (p *place) thousand(c *api.Client, id string) {
	p.t.Helper()
	nc := p.nats()
	for i := range 250 {
		for _, to := range []string{"lead", "m1", "m2", "m3"} {
			m := inbox(id, to, fmt.Sprintf(`{"kind":"framework_alert","text":"number %d."}`, i), "Content-Type", "application/json")
			if err := nc.PublishMsg(m); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	all := func(unread int) func(*domain.State) bool {
		return func(s *domain.State) bool {
			return !slices.ContainsFunc(s.Members, func(m *domain.Member) bool { return len(m.Unread) != unread })
		}
	}
	p.until(c, id, "a thousand messages lie there", all(250))
	p.models.Release("busy")
	p.until(c, id, "they are read", func(s *domain.State) bool { return quiet(s) && all(0)(s) })
}

// hanging counts the calls that hang.
func (p *place) hanging() int {
	open := func(r scripted.Request) bool { return !r.Ended && strings.HasSuffix(r.RuleName, "hangs") }
	n := 0
	for _, r := range p.models.Requests() {
		if open(r) {
			n++
		}
	}
	return n
}

// sightOf is the sight of one conversation alone.
func (p *place) sightOf(c *api.Client, id string) sight {
	p.t.Helper()
	s := p.sight(c, []string{id})
	maps.DeleteFunc(s.Roll, func(place string, _ api.MemberRoll) bool { return !strings.HasPrefix(place, id) })
	maps.DeleteFunc(s.List, func(listed string, _ any) bool { return listed != id })
	return s
}

// noSnapshots deletes the snapshots, so that the next node has the log alone.
func (p *place) noSnapshots() {
	p.t.Helper()
	js := p.streams()
	if err := got(js.Stream(p.ctx(), "OBJ_ROLLCALL_SNAPSHOTS")).must(p.t).Purge(p.ctx()); err != nil {
		p.t.Fatal(err)
	}
}

// polling asks for runs all the time, as a client that waits for them does.
type polling struct {
	stop chan struct{}
	once sync.Once
	done sync.WaitGroup
	mu   sync.Mutex
	// found counts answers; wrong is everything that a client may never be told.
	found int
	wrong []string
}

func (p *place) pollRuns(ids []string) *polling {
	p.t.Helper()
	w := &polling{stop: make(chan struct{})}
	p.t.Cleanup(w.halt)
	for _, id := range ids {
		c := p.client()
		c.Patience = 100 * time.Millisecond
		w.done.Go(func() {
			for {
				select {
				case <-w.stop:
					return
				case <-time.After(50 * time.Millisecond):
				}
				show, err := c.Show(p.t.Context(), api.ReadRequest{Conversation: id})
				w.note(id, show, err)
			}
		})
	}
	return w
}

func (w *polling) note(id string, show api.Detail, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if api.AsRefusal(err).Code != "node-unreachable" {
			w.wrong = append(w.wrong, id+": "+err.Error())
		}
		return
	}
	w.found++
	for _, run := range []string{"r1", "r2"} {
		if !slices.ContainsFunc(show.Runs, func(r projections.Run) bool { return r.ID == run }) {
			w.wrong = append(w.wrong, fmt.Sprintf("%s: version %d has no run %s", id, show.Version, run))
		}
	}
}

func (w *polling) halt() {
	w.once.Do(func() { close(w.stop) })
	w.done.Wait()
}

func (w *polling) answers() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.found
}

// brokenBatch kills the node in the middle of a batch of sixty calls. What was
// done is not done again, and the rest is.
func (p *place) brokenBatch(c *api.Client) {
	p.t.Helper()
	for try := range 6 {
		id := p.open(c, fmt.Sprint("batch ", try), "Case batch: write.")
		p.held("batch")
		p.models.Release("batch")
		done := func(s *domain.State) bool { return len(s.Lead().Files) > 1 }
		p.until(c, id, "some are written", done)
		p.kill()
		p.start()
		s := p.until(c, id, "it rests", quiet)
		facts := p.facts(c, id)
		before, resumed := 0, false
		started, finished := map[string]int{}, map[string]int{}
		for _, f := range facts {
			resumed = resumed || f.GetRunResumed() != nil
			if call := f.GetToolCallFinished(); call != nil {
				finished[call.GetCall()]++
				if !resumed {
					before++
				}
			}
			if call := f.GetToolCallStarted(); call != nil {
				started[call.GetCall()]++
			}
		}
		for call := range started {
			if started[call] != 1 || finished[call] != 1 {
				p.t.Errorf("call %s began %d times and ended %d times", call, started[call], finished[call])
			}
		}
		if len(started) != 60 || len(s.Lead().Files) != 60 || len(only(facts, (*rollcallv1.Event).GetFileWritten)) != 60 || len(p.asked(id, "")) != 2 {
			p.t.Errorf("%d calls wrote %d files; %d model calls", len(started), len(s.Lead().Files), len(p.asked(id, "")))
		}
		p.audit(c, id)
		if resumed && before < 60 && before > 1 {
			p.t.Logf("broken off after %d of 60 calls", before)
			return
		}
	}
	p.t.Error("the node was never killed in the middle of a batch")
}
