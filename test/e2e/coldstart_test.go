package e2e_test

import (
	"regexp"
	"testing"

	"github.com/rollcall-dev/rollcall/internal/model/scripted"
)

// everyRuleHeld gives each rule of a script a hold of the rule's own name.
func everyRuleHeld(yaml string) string {
	yaml = regexp.MustCompile(`(?m)^    hold: .*\n`).ReplaceAllString(yaml, "")
	return regexp.MustCompile(`(?m)^(  - name: (.*)\n)`).ReplaceAllString(yaml, "$1    hold: '$2'\n")
}

// mailbox-cold-start: any turn, and any step of it, starts from the log alone in
// a process that has seen nothing of the story: each is killed while it waits
// for its first answer, and the next one asks again and goes on.
func TestMailboxColdStart(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, everyRuleHeld(traceScript)))
	p.start()
	c := p.client()
	id := p.detach("river", "Watch the river for a year.")
	kills := p.coldly(func() bool { return quiet(p.state(c, id)) })
	p.kill() // and so a turn begins in a process that was never busy
	p.start()
	p.ok("send", "river", "New direction: temperature")
	kills += p.coldly(func() bool { return quiet(p.state(c, id)) })

	events := p.events(c, id)
	if got := answer(events); got != "The second round says: level 3 m as before, and the temperature is 7 degrees." {
		t.Errorf("the operator reads %q", got)
	}
	resumed := 0
	for _, e := range events {
		if r := e.GetRunResumed(); r != nil {
			resumed++
		}
	}
	type step struct{ run, step string }
	last := map[step]scripted.Request{}
	for _, r := range p.asked(id, "") {
		last[step{r.Run, r.Step}] = r
	}
	for s, r := range last {
		if r.Gone || r.Status != 200 {
			t.Errorf("run %s, step %s was never answered", s.run, s.step)
		}
	}
	if kills < len(last) || resumed < len(last) {
		t.Errorf("%d steps, %d kills and %d runs taken up: a step was answered by a process that began it", len(last), kills, resumed)
	}
	if turns := runsOf(p.facts(c, id), "m1"); len(turns) != 2 {
		t.Errorf("the Worker had %d turns", len(turns))
	}
	resting(t, p.state(c, id))
	p.settle(c, id)
}

// coldly lets a story go on, one answer a process, until it is done.
func (p *place) coldly(done func() bool) (kills int) {
	p.t.Helper()
	for {
		var at scripted.Request
		waiting := func() bool {
			at = scripted.Request{}
			for _, r := range p.models.Requests() {
				if !r.Ended && r.RuleName != "" {
					at = r
				}
			}
			return at.N > 0
		}
		p.poll("somebody asks, or it is done", func() bool { return waiting() || done() })
		if !waiting() && done() {
			return kills
		}
		if at.N == 0 {
			continue
		}
		p.kill()
		kills++
		p.start()
		again, err := p.models.WaitFor(p.ctx(), func(r scripted.Request) bool {
			return r.N > at.N && r.Run == at.Run && r.Step == at.Step
		})
		if err != nil {
			p.t.Fatal(err)
		}
		p.models.Release(again.RuleName)
		p.poll("it is answered", func() bool { return p.models.Requests()[again.N-1].Ended })
	}
}
