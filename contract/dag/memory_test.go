package dag_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain/domaintest"
)

// purpose are the bodies shown as what the member is for, beside its turn.
func purpose(k *domaintest.Kit, id string) []string {
	k.Helper()
	plan, ok := k.State.StepPlan(id)
	if !ok {
		k.Fatalf("%s has no open model call", id)
	}
	var bodies []string
	for _, mail := range plan.Purpose {
		bodies = append(bodies, k.Event(mail.GetRef()).GetMessageDelivered().GetBody().GetText())
	}
	return bodies
}

// A turn is built anew from what the member is for, what it delivered and its
// mail. What the operator said later, and a revised brief, is not forgotten.
func TestMemory(t *testing.T) {
	t.Run("the operator's words", func(t *testing.T) {
		k := launched(t, member("A"), member("B"))
		k.Do(domaintest.Say("", "in French, please"))
		k.Ends("lead", "in French, then")
		delivers(k, "m1", "m2")
		if got := purpose(k, "lead"); strings.Join(got, "|") != "go|in French, please" {
			t.Fatalf("the Lead is shown %q", got)
		}
		k.Ends("lead", "done")
		for i := range 20 {
			k.Do(domaintest.Say("", fmt.Sprint("word ", i)))
			k.Ends("lead", "ok")
		}
		k.Do(domaintest.Say("", "and now?"))
		got := purpose(k, "lead")
		if got[0] != "go" || got[len(got)-1] != "word 19" || len(got) > 10 {
			t.Fatalf("the Lead is shown %q", got)
		}
	})
	t.Run("briefs", func(t *testing.T) {
		k := launched(t, member("A"), member("X"))
		deliver(k, "m1")
		replan(t, k, false, revise("A"))
		k.Ends("lead", "ok")
		if got := purpose(k, "m1"); strings.Join(got, "|") != "do the part of A" {
			t.Fatalf("beside the new brief A is shown %q", got)
		}
		k.Ends("m1", "later")
		k.Do(domaintest.Say("m1", "go on"))
		if got := purpose(k, "m1"); strings.Join(got, "|") != "do the part of A|the figures changed" {
			t.Fatalf("A is shown %q", got)
		}
	})
	t.Run("reminders stay in all requests of the run that read them", func(t *testing.T) {
		k := launched(t, member("A"), member("B"))
		k.Acts("m2", "team_send_message", args{"to": "A", "text": "use v2"})
		k.Acts("m1", "team_status", args{})
		for range 3 {
			k.Act("m1", domaintest.Call("team_send_message", args{"to": "user", "text": "on it"}))
			contains(t, "what A reads", reads(k, "m1"), "use v2", "do the part of A")
		}
		k.Ends("m1", "later")
		k.Do(domaintest.Say("m1", "go on"))
		if strings.Contains(reads(k, "m1"), "use v2") {
			t.Fatal("the next run shows it again")
		}
	})
}
