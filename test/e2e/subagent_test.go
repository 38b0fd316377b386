package e2e_test

import (
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const subagentScript = `rules:
  - {name: sum, member: '^Lead$', has: ['twelve.txt', 'thirteen'], text: Twelve and thirteen.}
  - name: two pieces
    member: '^Lead$'
    tools:
      - {name: task, args: {brief: Count the apples into twelve.txt.}}
      - {name: task, args: {brief: Count the pears.}}
  - name: delivers
    member: '^Lead/task1$'
    has: ['"role":"tool"']
    tools: [{name: complete, args: {summary: There are twelve., paths: [twelve.txt]}}]
  - name: counts
    member: '^Lead/task1$'
    hold: counting
    tools: [{name: file_write, args: {path: twelve.txt, content: '12'}}]
  - {name: says so, member: '^Lead/task2$', hold: counting, text: I counted thirteen.}
`

// Two subagents work side by side for one reply of the Lead on a node that can
// make one model call at a time; a kill while they work loses neither: each is
// asked again, the Lead is not, and what they come to are the outcomes of its
// calls.
func TestSubagentsOutliveTheirNode(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, subagentScript))
	p.env = append(p.env, "ROLLCALL_CONFIG="+p.file("narrow.yaml", "max_concurrent_runs: 1\n"))
	p.start()
	c := p.client()
	id := strings.TrimSpace(p.ok("run", "Count the fruit.", "--name", "fruit", "--contract", "none", "--detach"))
	p.held("counting")
	s := p.until(c, id, "both are at work", func(s *domain.State) bool { return len(s.Members) == 3 && s.Member("m2").Run != nil })
	if lead := s.Lead().Run; lead == nil || lead.Phase != domain.Delegating {
		t.Errorf("the Lead's run is %+v", lead)
	}
	p.kill()
	p.start()
	p.models.Release("counting")
	s = p.until(c, id, "all is counted", quiet)
	if v := s.Verdict(); v.Exit != 0 {
		t.Errorf("it ends with %+v", v)
	}
	if got := strings.TrimSpace(p.ok("watch", id)); got != "Twelve and thirteen." {
		t.Errorf("the Lead answered %q", got)
	}
	if n := len(p.asked(id, "Lead")); n != 2 {
		t.Errorf("the Lead was asked %d times", n)
	}
	if files := p.ok("files", id, "ls"); !strings.Contains(files, "twelve.txt") || strings.Contains(files, "task1") {
		t.Errorf("the Lead's workspace has\n%s", files)
	}
	if n := len(only(p.facts(c, id), (*rollcallv1.Event).GetSubagentStarted)); n != 2 {
		t.Errorf("%d subagents were started", n)
	}
	if listed := p.ok("ls", "--json"); strings.Contains(listed, "task1") {
		t.Errorf("ls still lists a subagent: %s", listed)
	}
	p.settle(c, id)
}
