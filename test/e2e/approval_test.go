package e2e_test

import (
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const approvalScript = `rules:
  - {name: denied, member: '^Lead$', has: [keep that page], text: I kept it.}
  - {name: late, member: '^Lead$', has: [nobody approved it in time], text: Nobody cared.}
  - {name: written, member: '^Lead$', has: ['plan.txt.{1,20}bytes|wrote plan|"role":"tool"'], text: It is written.}
  - name: asks
    member: '^Lead$'
    tools: [{name: file_write, args: {path: plan.txt, content: The plan.}}]
`

// A pending approval outlives its node: no model is asked again, the answer that
// is given while another node serves wakes the run once, with what was decided,
// and a time that passed while nobody was there decides when somebody is.
func TestApprovalOutlivesItsNode(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, approvalScript))
	p.start()
	c := p.client()
	open := func(name string, flags ...string) string {
		args := append([]string{"run", "Write a plan.", "--name", name, "--contract", "none", "--approve", "file_write", "--detach"}, flags...)
		return strings.TrimSpace(p.ok(args...))
	}
	asks := func(s *domain.State) bool { return quiet(s) && len(s.PendingApprovals()) == 1 }
	yes, no, late := open("yes"), open("no"), open("late", "--approval-timeout", "5s")
	for _, id := range []string{yes, no, late} {
		p.until(c, id, "it asks", asks)
	}
	p.kill()
	p.start()
	for _, id := range []string{yes, no} {
		p.until(c, id, "it still asks", asks)
		if n := len(p.asked(id, "")); n != 1 {
			t.Errorf("the model of %s was asked %d times before the answer", id, n)
		}
	}
	p.ok("approve", "yes")
	p.ok("deny", "no", "--reason", "keep that page")
	p.refused("approval-decided", 4, "deny", "yes", "a1", "--reason", "too late")
	for id, want := range map[string]string{yes: "It is written.", no: "I kept it.", late: "Nobody cared."} {
		p.until(c, id, "it ends", func(s *domain.State) bool { return quiet(s) && s.Verdict().Exit == 0 })
		if got := p.ok("watch", id); strings.TrimSpace(got) != want {
			t.Errorf("%s answered %q, want %q", id, got, want)
		}
		if n := len(p.asked(id, "")); n != 2 {
			t.Errorf("the model of %s was asked %d times in all", id, n)
		}
		if n := len(only(p.facts(c, id), (*rollcallv1.Event).GetApprovalDecided)); n != 1 {
			t.Errorf("%s was decided %d times", id, n)
		}
	}
	p.settle(c, yes, no, late)
}
