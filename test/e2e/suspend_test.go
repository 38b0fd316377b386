package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// suspended is the reason for which a run of the member was set down last.
func (p *place) suspended(facts []fact, run string) (reason string, wentOn bool) {
	for _, s := range only(facts, (*rollcallv1.Event).GetRunSuspended) {
		if s.GetRun() == run {
			reason = s.GetReason()
		}
	}
	for _, r := range only(facts, (*rollcallv1.Event).GetRunResumed) {
		wentOn = wentOn || r.GetRun() == run && r.GetWaited()
	}
	return reason, wentOn
}

// A server that wants to be left alone is left alone, and the run says so in
// the log: it holds no slot meanwhile, so that the node's only one serves a
// conversation with another server's answer.
func TestRunWaitsForTheServer(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, `rules:
  - {name: busy, times: 1, status: 429, retry_after: 3, text: slow down}
  - {name: answer, text: Now it works.}
`))
	p.start()
	c := p.client()
	began := time.Now()
	id := p.detach("polite", "Ask.")
	run := runsOf(p.facts(c, id), "lead")[0].GetRun()
	p.poll("the run is suspended", func() bool {
		reason, _ := p.suspended(p.facts(c, id), run)
		return reason != ""
	})
	if shown := p.ok("show", id); !strings.Contains(shown, "suspended") {
		t.Errorf("show does not say that the run is suspended:\n%s", shown)
	}
	p.until(c, id, "it is answered", quiet)
	if took := time.Since(began); took < 3*time.Second {
		t.Errorf("the server was asked again after %s", took)
	}
	if reason, wentOn := p.suspended(p.facts(c, id), run); !strings.Contains(reason, "not due yet") && !strings.Contains(reason, "no requests yet") || !wentOn {
		t.Errorf("suspended because %q, went on by itself: %v", reason, wentOn)
	}
	if n := len(p.asked(id, "")); n != 2 {
		t.Errorf("the server was asked %d times", n)
	}
	p.settle(c, id)
}

// More members than the node may call models for: those in line are suspended,
// a kill in the middle loses none of them, and each is asked once more at most.
func TestRunsWaitForASlot(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, `rules:
  - name: three
    member: '^Lead$'
    lacks: ['"name":"team_create","arguments"']
    tools:
      - {name: team_create, args: {name: crew}}
      - {name: team_member_add, args: {name: A, initial_prompt: Work.}}
      - {name: team_member_add, args: {name: B, initial_prompt: Work.}}
      - {name: team_member_add, args: {name: C, initial_prompt: Work.}}
  - {name: lead rests, member: '^Lead$', text: They work.}
  - {name: work, hold: working, text: Done.}
`))
	p.env = append(p.env, "ROLLCALL_CONFIG="+p.file("narrow.yaml", "max_concurrent_runs: 1\n"))
	p.start()
	c := p.client()
	id := p.detach("narrow", "Make three work.")
	inLine := func(s *domain.State) (n int) {
		for _, m := range s.Members {
			if m.Run != nil && m.Run.Suspended {
				n++
			}
		}
		return n
	}
	p.until(c, id, "two stand in line", func(s *domain.State) bool { return inLine(s) >= 2 })
	p.held("working")
	p.kill()
	p.start()
	p.until(c, id, "two stand in line again", func(s *domain.State) bool { return inLine(s) >= 2 })
	p.models.Release("working")
	s := p.until(c, id, "all rest", quiet)
	resting(t, s)
	for _, name := range []string{"A", "B", "C"} {
		if n := len(p.asked(id, name)); n < 1 || n > 2 {
			t.Errorf("%s was asked %d times", name, n)
		}
	}
	p.settle(c, id)
}
