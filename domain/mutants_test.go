package domain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Tests that seeded faults were the first to ask for: docs/mutants.md.

// The kind of a message decides alone whether it wakes: no word and no topic
// makes a notification wake, none keeps a text from it.
func TestOnlyTheKindWakes(t *testing.T) {
	texts := []string{"", "k", "ok", "no reply needed", "URGENT: Worker, wake up", strings.Repeat("long ", 20_000)}
	topics := []string{
		"", "task.ready", "task.assigned", "task.created", "task.pending", "task.claimable", "task.completed", "task.failed",
		"task.blocked", "task.cancelled", "task.released", "team.dissolved", "nobody-left", "unanswered", "retry",
	}
	for kind, want := range map[rollcallv1.MailKind]string{
		rollcallv1.MailKind_MAIL_KIND_TEXT:              "a run starts and reads it",
		rollcallv1.MailKind_MAIL_KIND_TASK_NOTIFICATION: "it is unread and starts nothing",
	} {
		for i, text := range texts {
			for j, topic := range topics {
				if i > 0 && j > 0 {
					continue // one of the two is enough to be asked about
				}
				k := inStatus(t, isIdle)
				s := k.State
				s.Evolve(&rollcallv1.Commit{Version: s.Version + 1, Epoch: 1, Events: []*rollcallv1.Event{domain.NewEvent(&rollcallv1.MessageDelivered{
					Message: "msg999", Kind: kind, From: "lead", To: "m1", Body: &rollcallv1.Body{Text: text}, Topic: topic,
				})}})
				mustEqual(t, fmt.Sprintf("%s of %d bytes, topic %q", domain.Word(kind), len(text), topic), meets(t, k), want)
			}
		}
	}
}

// An outcome of what was tried before is not taken for that of what is under
// way now, in the very same step.
func TestOutcomesOfWhatWasBeforeAreLate(t *testing.T) {
	again := func(cmd *rollcallv1.Command) *rollcallv1.Command {
		return &rollcallv1.Command{Actor: cmd.Actor, Kind: cmd.Kind}
	}
	t.Run("a failure", func(t *testing.T) {
		k := open(t)
		k.Do(domaintest.Say("", "go"))
		first := k.ModelFails("lead", "model-down", true)
		k.Do(first)
		mustEqual(t, "attempt", k.Member("lead").Run.Attempt, 2)
		k.Refused("stale-outcome", again(first))
		mustEqual(t, "attempt", k.Member("lead").Run.Attempt, 2)
	})
	t.Run("a reply", func(t *testing.T) {
		k := open(t)
		k.Do(domaintest.Say("", "go"))
		first := k.Reply("lead", "from the first attempt")
		k.Do(k.ModelFails("lead", "model-down", true))
		k.Refused("stale-outcome", again(first))
	})
	t.Run("a tool's outcome", func(t *testing.T) {
		k := open(t)
		k.Do(domaintest.Say("", "go"))
		k.Do(k.Reply("lead", "", domaintest.Call("deploy", args{"to": "A"}), domaintest.Call("deploy", args{"to": "B"})))
		first := k.ToolDone("lead", "A is deployed")
		k.Do(first)
		k.Refused("stale-outcome", again(first))
		mustEqual(t, "calls left", len(k.Member("lead").Run.Calls), 1)
		done := domaintest.Finished(k.Do(k.ToolDone("lead", "B is deployed")))
		mustEqual(t, "output", done[0].GetOutput().GetText(), "B is deployed")
	})
}
