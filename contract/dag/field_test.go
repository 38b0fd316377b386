package dag_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Elsewhere members that wait for each other were accepted, and waited for ever.
func TestB27DependencyCycles(t *testing.T) {
	for n := 1; n <= 7; n++ {
		var ring []args
		for i := range n {
			ring = append(ring, member(fmt.Sprint("M", i), fmt.Sprint("M", (i+1)%n)))
		}
		t.Run(fmt.Sprint("b27-dependency-cycles/at creation/", n), func(t *testing.T) {
			k := opened(t)
			contains(t, "the refusal", k.Fails("lead", "team_create", args{"goal": "g", "members": append(slices.Clone(ring), member("Free"))}), "[task-cycle]", " -> M0")
			if len(k.State.Members)+len(k.State.Tasks) != 1 {
				t.Fatal("something was made")
			}
		})
		// The same ring, but for one edge, which a replan would add.
		t.Run(fmt.Sprint("b27-dependency-cycles/by a replan/", n), func(t *testing.T) {
			open := slices.Clone(ring)
			open[n-1] = member(fmt.Sprint("M", n-1))
			k := declared(t, open...)
			for _, atomic := range []bool{false, true} {
				out := replan(t, k, atomic, args{"op": "revise", "name": fmt.Sprint("M", n-1), "brief": "b", "depends_on": []string{"M0"}})
				contains(t, "the refusal", out.Outcomes[0].Error, "[task-cycle]", " -> ")
			}
			if deps := k.Task(fmt.Sprint("t", n)).Dependencies; len(deps) != 0 {
				t.Fatalf("it depends on %v", deps)
			}
		})
	}
}

// Elsewhere a task was stuck in a state that its owner could not get it out of.
func TestB29CancelledInEveryState(t *testing.T) {
	cancelled := &rollcallv1.Command{Actor: "operator", Kind: &rollcallv1.Command_ChangeTask{ChangeTask: &rollcallv1.ChangeTask{
		Operation: rollcallv1.ChangeTask_OPERATION_CANCEL, Task: "t2", Text: "enough",
	}}}
	for state, until := range map[string]func(k *domaintest.Kit){
		"pending":     func(*domaintest.Kit) {},
		"in progress": func(k *domaintest.Kit) { deliver(k, "m1") },
		"claimed by a node that is gone": func(k *domaintest.Kit) {
			deliver(k, "m1")
			k.Restart()
			k.Node, k.Epoch = "n2", k.Epoch+1
		},
		"in progress, its member waits": func(k *domaintest.Kit) {
			deliver(k, "m1")
			k.Events("m2", ask("Lead"))
		},
		"left by its member": func(k *domaintest.Kit) {
			deliver(k, "m1")
			k.Ends("m2", "I give up")
		},
		"failed":  func(k *domaintest.Kit) { deliver(k, "m1"); lost(k, "m2") },
		"blocked": func(k *domaintest.Kit) { lost(k, "m1") },
		"paused": func(k *domaintest.Kit) {
			deliver(k, "m1")
			k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_PauseConversation{PauseConversation: &rollcallv1.PauseConversation{}}})
		},
		"claimable": func(k *domaintest.Kit) {
			deliver(k, "m1")
			k.Ends("m2", "I give up")
			replan(t, k, false, revise("B"))
		},
	} {
		t.Run("b29-cancelled-in-every-state/"+state, func(t *testing.T) {
			k := launched(t, member("A"), member("B", "A"), member("C", "B"))
			until(k)
			k.Do(cancelled)
			if k.Task("t2").Status != rollcallv1.TaskStatus_TASK_STATUS_CANCELLED || k.Task("t3").Status != rollcallv1.TaskStatus_TASK_STATUS_CANCELLED {
				t.Fatalf("t2 is %v, t3 is %v", k.Task("t2").Status, k.Task("t3").Status)
			}
			isStatus(t, k, gone, "m2", "m3")
			for _, w := range domain.Due(k.State) {
				if w.Member == "m2" || w.Member == "m3" {
					t.Fatalf("%+v is still owed", w)
				}
			}
			cancelled.Id = ""
		})
	}
}

// Elsewhere a result came while the Lead was failing, went to an inner channel,
// and nobody ever read it.
func TestB30ResultWhileTheLeadIsAway(t *testing.T) {
	for how, away := range map[string]func(k *domaintest.Kit){
		"failed":         func(k *domaintest.Kit) { k.Do(domaintest.Say("", "how is it?")); lost(k, "lead") },
		"interrupted":    func(k *domaintest.Kit) { k.Do(domaintest.Say("", "how is it?")); interrupt(k) },
		"being replaced": func(k *domaintest.Kit) { k.Do(domaintest.Say("", "how is it?")); k.Restart() },
		"paused": func(k *domaintest.Kit) {
			k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_PauseConversation{PauseConversation: &rollcallv1.PauseConversation{}}})
		},
	} {
		t.Run("b30-result-while-the-lead-is-away/"+how, func(t *testing.T) {
			k := launched(t, member("A"), member("B"))
			away(k)
			delivers(k, "m1", "m2")
			k.Restart()
			k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_ResumeConversation{ResumeConversation: &rollcallv1.ResumeConversation{}}})
			k.Do(domaintest.Say("", "and now?"))
			contains(t, "what the Lead reads", reads(k, "lead"), "the result of m1", "the result of m2")
		})
	}
}

func interrupt(k *domaintest.Kit) {
	k.Do(&rollcallv1.Command{Actor: "operator", Kind: &rollcallv1.Command_InterruptMember{InterruptMember: &rollcallv1.InterruptMember{}}})
}

// Elsewhere members that finished woke their Lead one by one, and it paid a turn
// for each: eight finish within a second, in any order and in any commits.
func TestB37EightFinishAtOnce(t *testing.T) {
	var team []args
	for i := range 8 {
		team = append(team, member(fmt.Sprint("M", i)))
	}
	for how, finish := range map[string]func(k *domaintest.Kit){
		"one commit": func(k *domaintest.Kit) {
			var all []*rollcallv1.Command
			for i := range 8 {
				all = append(all, k.Reply(fmt.Sprint("m", i+1), "", domaintest.Call("complete", args{"summary": "s"})))
			}
			k.Do(all...)
		},
		"eight commits": func(k *domaintest.Kit) {
			for i := range 8 {
				deliver(k, fmt.Sprint("m", i+1))
			}
		},
		"each with a word to the Lead before": func(k *domaintest.Kit) {
			for i := range 8 {
				id := fmt.Sprint("m", i+1)
				k.Events(id, domaintest.Call("team_send_message", args{"to": "Lead", "text": "nearly done"}))
			}
			for i := range 8 {
				deliver(k, fmt.Sprint("m", i+1))
			}
		},
	} {
		t.Run("b37-eight-finish-at-once/"+how, func(t *testing.T) {
			k := launched(t, team...)
			before := runs(k, "lead")
			finish(k)
			for k.Member("lead").Run != nil {
				k.Ends("lead", "checked")
			}
			if n := runs(k, "lead") - before; n == 0 || n > 2 {
				t.Fatalf("the Lead ran %d times", n)
			}
		})
	}
}

func runs(k *domaintest.Kit, member string) (n int) {
	for _, e := range k.All() {
		if r := e.GetRunStarted(); r != nil && r.GetMember() == member {
			n++
		}
	}
	return n
}

// Elsewhere a Lead, or what it had made, made more of itself without end.
func TestB38RecursiveSpawn(t *testing.T) {
	k := domaintest.New(t, &domain.Rules{Contracts: contract.All(), Limits: domain.Limits{Members: 6, Tasks: 8, Steps: 10}})
	k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_OpenConversation{OpenConversation: &rollcallv1.OpenConversation{Contract: "dag", Objective: domaintest.Text("go")}}})
	next, refused := 0, ""
	two := func() []args {
		next += 2
		return []args{add(fmt.Sprint("M", next)), add(fmt.Sprint("M", next+1))}
	}
	k.Acts("lead", "team_create", args{"goal": "g", "members": []args{member("M0"), member("M1")}})
	for n := 0; k.Member("lead").Run != nil; n++ {
		if n > 100 {
			t.Fatal("it never ends")
		}
		for _, done := range k.Act("lead", domaintest.Call("team_replan", args{"operations": two()})) {
			var out replanned
			output(t, done.GetOutput().GetText(), &out)
			refused = out.Outcomes[1].Error
		}
	}
	contains(t, "the last refusal", refused, "[limit-reached]", "members")
	if alive := len(k.State.Members); alive != 6 {
		t.Fatalf("there are %d members", alive)
	}
	// Each of them asks for more, and has no tool for it.
	for _, m := range k.State.Members[1:] {
		if m.Run != nil {
			k.Fails(m.ID, "team_replan", args{"operations": two()})
		}
	}
}

// Elsewhere two questions in one answer were resumed at the wrong place. Here the
// calls are made in their order, each wait ends with its own answer, and who
// still asks cannot deliver.
func TestB46SeveralHandoffsInOneAnswer(t *testing.T) {
	k := launched(t, member("A"), member("B"), member("C"))
	events := k.Events("m1", ask("B"), ask("C"), domaintest.Call("complete", args{"summary": "x"}))
	done := domaintest.Finished(events)
	if done[0].GetError() || done[1].GetError() || !strings.Contains(done[2].GetOutput().GetText(), "[wait-open]") {
		t.Fatalf("%v", done)
	}
	isStatus(t, k, waiting, "m1")
	waits := k.Member("m1").Waits
	if len(waits) != 2 || waits[0].Awaited != "m2" || waits[1].Awaited != "m3" {
		t.Fatalf("it waits on %v", waits)
	}
	second, first := waits[1].Message, waits[0].Message
	answer(k, "m3", "A", second)
	k.Ends("m3", "told")
	if w := k.Member("m1").Waits; len(w) != 1 || w[0].Message != first {
		t.Fatalf("it waits on %v", w)
	}
	k.Ends("m1", "one more to come")
	isStatus(t, k, waiting, "m1")
	answer(k, "m2", "A", first)
	k.Ends("m2", "told")
	isStatus(t, k, working, "m1")
	deliver(k, "m1")
	isTask(t, k, "t1 completed, t2 in_progress, t3 in_progress")
}

// A brief of a megabyte is refused whole, with what to do; so is one that only
// together with the others does not fit.
func TestHugeBriefs(t *testing.T) {
	k := opened(t)
	text := k.Fails("lead", "team_create", args{"goal": "g", "members": []args{{"name": "A", "brief": strings.Repeat("x", 65<<10)}}})
	contains(t, "the refusal", text, "[text-too-long]", "file")
	k.Do(k.Reply("lead", "", domaintest.Call("team_create", args{"goal": "g", "members": []args{{"name": "A", "brief": strings.Repeat("x", 1<<20)}}})))
	if len(k.State.Members) != 1 || k.Member("lead").Run == nil {
		t.Fatal("it did not go on")
	}
}
