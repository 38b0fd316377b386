package e2e_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// soon is how long a node may take to stop in good order.
const soon = 2 * time.Second

// TestDrain: told to stop while models hang, a node sets its runs down and ends
// at once and in good order; the next one goes on with them.
func TestDrain(t *testing.T) {
	t.Parallel()
	const teams = 12
	p := newPlace(t, script(t, `rules:
  - {name: note, lacks: ['"name":"file_write","arguments"'], tools: [{name: file_write, args: {path: note.txt, content: It hangs.}}]}
  - {name: hang, hold: model hangs, text: It did not hang for ever.}
`))
	p.start()
	c := p.client()
	opened := make([]string, teams)
	for i := range opened {
		opened[i] = p.open(c, fmt.Sprintf("hanging %d", i), "Take your time.")
	}
	hanging := func() (n int) {
		for _, r := range p.models.Requests() {
			if r.RuleName == "hang" && !r.Ended {
				n++
			}
		}
		return n
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		p.poll("all models hang", func() bool { return hanging() == teams })
		node := p.node
		began := time.Now()
		if err := node.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		<-node.done
		if took, code := time.Since(began), node.ProcessState.ExitCode(); took > soon || code != 0 {
			t.Errorf("%v ended the node with %d after %v:\n%s", signal, code, took, node.out)
		}
		p.node = nil
		p.poll("the calls are given up", func() bool { return hanging() == 0 })
		p.refused("node-unreachable", 5, "ls")
		p.start()
	}
	p.poll("all models are asked again", func() bool { return hanging() == teams })
	p.models.Release("model hangs")
	for _, id := range opened {
		p.until(c, id, "it goes on to its end", func(s *domain.State) bool { return quiet(s) && s.Status() == "idle" })
		facts := p.facts(c, id)
		if got := answer(p.events(c, id)); got != "It did not hang for ever." {
			t.Errorf("the answer is %q", got)
		}
		suspended, resumed := only(facts, (*rollcallv1.Event).GetRunSuspended), only(facts, (*rollcallv1.Event).GetRunResumed)
		if len(suspended) != 2 || len(resumed) != 2 || len(runsOf(facts, "lead")) != 1 {
			t.Errorf("the run was set down %d times and taken up %d times", len(suspended), len(resumed))
		}
		// What it had done is not done again, and each stop cost one call.
		if len(outcomes(facts, "file_write")) != 1 || len(p.asked(id, "")) != 4 {
			t.Errorf("%d files were written, %d calls made", len(outcomes(facts, "file_write")), len(p.asked(id, "")))
		}
	}
	p.settle(c, opened...)
}
