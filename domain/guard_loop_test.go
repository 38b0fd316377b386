package domain_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// talks plays members who answer whoever wrote with one message, and then end
// their turn, until nobody is called any more; it counts the calls. The Lead
// says nothing.
func talks(k *domaintest.Kit, answer func(member string) []*rollcallv1.ToolCall) (calls int) {
	k.Helper()
	for calls < 500 {
		due := domain.Due(k.State)
		if len(due) == 0 {
			return calls
		}
		w := due[0]
		calls++
		if w.Kind == domain.CallTool {
			k.Do(k.ToolDone(w.Member, "written", domaintest.File("a", fmt.Sprint("sha", calls))))
			calls--
			continue
		}
		if made := answer(w.Member); k.Member(w.Member).Run.Step == 1 && len(made) > 0 {
			k.Do(k.Reply(w.Member, "", made...))
		} else {
			k.Ends(w.Member, "ok")
		}
	}
	k.Fatalf("%d calls and no end", calls)
	return calls
}

// thanks of two members to each other, for ever.
func thanks(member string) []*rollcallv1.ToolCall {
	to := map[string]string{"m1": "B", "m2": "A"}[member]
	if to == "" {
		return nil
	}
	return []*rollcallv1.ToolCall{domaintest.Call("send_message", args{"to": to, "text": "ok"})}
}

// Two members whose model always answers "ok" to each other: a bounded number of
// calls, and the Lead and the operator are told once why it stopped.
func TestB36MutualThanks(t *testing.T) {
	k := team(t, "A", "B")
	k.Do(domaintest.Say("m1", "thank B"))
	n := len(k.Commits)
	calls := talks(k, thanks)
	if calls < 20 || calls > 30 { // 13 turns of two calls, and the Lead's
		t.Fatalf("%d calls", calls)
	}
	told := map[string]int{}
	quiet := 0
	for _, c := range k.Commits[n:] {
		for _, m := range domaintest.Delivered(c.GetEvents(), "") {
			if m.GetTopic() == "loop" {
				told[m.GetTo()]++
				mustContain(t, "told", m.GetBody().GetText(), "12 times in a row", "no task was changed")
			}
			if m.GetQuiet() {
				quiet++
				mustEqual(t, "hops", m.GetHops(), 13)
			}
		}
	}
	mustEqual(t, "quiet messages", quiet, 1)
	mustEqual(t, "the Lead is told", told["lead"], 1)
	mustEqual(t, "the operator is told", told["user"], 1)
	mustEqual(t, "hits", k.State.Guards["idle_hops"], 1)
	// It is delivered: its reader has it when it is next awake, by a word of the operator.
	reader := "m1"
	if len(k.Member("m2").Unread) > 0 {
		reader = "m2"
	}
	mustEqual(t, "unread", len(k.Member(reader).Unread), 1)
	mustEqual(t, "verdict", k.State.Verdict().Status, "done")
	k.Do(domaintest.Say(reader, "go on"))
	mustEqual(t, "unread", len(k.Member(reader).Unread), 0)
	mustEqual(t, "the chain begins anew", k.Member(reader).Hops, 0)
	if again := talks(k, thanks); again < 20 || again > 30 {
		t.Fatalf("%d calls after the operator's word", again)
	}
}

// A Lead that sets a loop going again whenever it is told of it has no more turns
// than a bounded number.
func TestLoopIsToldOnce(t *testing.T) {
	k := team(t, "A", "B")
	k.Do(domaintest.Say("m1", "thank B"))
	calls := talks(k, func(member string) []*rollcallv1.ToolCall {
		if member == "lead" {
			return []*rollcallv1.ToolCall{domaintest.Call("send_message", args{"to": "A", "text": "keep talking"})}
		}
		return thanks(member)
	})
	if calls > 70 {
		t.Fatalf("%d calls", calls)
	}
}

// A relay of which something comes, in each turn or in every tenth, is never
// stopped, however long it is.
func TestGenuineRelayIsNotStopped(t *testing.T) {
	for what, progress := range map[string]*rollcallv1.ToolCall{
		"a task": domaintest.Call("task_create", args{"title": "t", "description": "d", "owner": "user"}),
		"a file": domaintest.Call("file_write", args{"path": "a"}),
	} {
		for _, every := range []int{1, 10} {
			t.Run(fmt.Sprint(what, " every ", every), func(t *testing.T) {
				k := leading(t, "A", "B")
				create(k, "one", "user")
				k.Ends("lead", "so be it")
				k.Rests("m1")
				k.Rests("m2")
				k.Do(domaintest.Say("m1", "relay"))
				turns := 0
				talks(k, func(member string) []*rollcallv1.ToolCall {
					if k.Member(member).Run.Step > 1 || member == "lead" || turns == 30 {
						return nil
					}
					turns++
					made := thanks(member)
					if turns%every == 0 {
						made = append([]*rollcallv1.ToolCall{progress}, made...)
					}
					return made
				})
				mustEqual(t, "turns", turns, 30)
				mustEqual(t, "quiet", k.State.Guards["idle_hops"], 0)
			})
		}
	}
}

// With the damper off there is the cap on runs, with all off the budget.
func TestLoopDamperOff(t *testing.T) {
	k := team(t, "A", "B")
	k.Rules.Limits.IdleHops, k.Rules.Limits.Runs = domain.Off, 30
	k.Do(domaintest.Say("m1", "thank B"))
	talks(k, thanks)
	mustEqual(t, "quiet", k.State.Guards["idle_hops"], 0)
	mustEqual(t, "code", k.Member("m1").LastCode, "run-limit")
	mustContain(t, "detail", k.Member("m1").LastDetail, "A has 30 runs", "none of them left")
	mustEqual(t, "exit", k.State.Verdict().Exit, 8)
	k.Do(domaintest.Say("m1", "go on"))
	mustEqual(t, "A after the operator's word", k.Member("m1").Run.Phase, domain.Calling)
}

func TestRunsOfAllTogether(t *testing.T) {
	k := team(t, "A", "B")
	k.Rules.Limits.IdleHops, k.Rules.Limits.AllRuns = domain.Off, 20
	k.Do(domaintest.Say("m1", "thank B"))
	n := len(k.All())
	talks(k, thanks)
	mustEqual(t, "hits", k.State.Guards["runs"], 1)
	if calls := domaintest.Count(k.All()[n:], "ModelCallStarted"); calls > 40 {
		t.Fatalf("%d calls", calls)
	}
}

// Members who each send to any others whatever they read, and do nothing else,
// come to rest after a bounded number of calls.
func TestChatterIsBounded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := rules()
		r.Limits.IdleHops = rapid.IntRange(1, 5).Draw(rt, "hops")
		n := rapid.IntRange(2, 4).Draw(rt, "members")
		var names []string
		for i := range n {
			names = append(names, string(rune('A'+i)))
		}
		k := domaintest.Team(rt, domaintest.Open(rt, r, "mailbox"), names...)
		k.Do(domaintest.Say("m1", "talk"))
		calls := talks(k, func(string) []*rollcallv1.ToolCall {
			var made []*rollcallv1.ToolCall
			for _, to := range rapid.SliceOfN(rapid.SampledFrom(append(names, "Lead")), 1, 2).Draw(rt, "to") {
				made = append(made, domaintest.Call("send_message", args{"to": to, "text": "ok", "wait_for_reply": rapid.Bool().Draw(rt, "wait")}))
			}
			return made
		})
		if calls > 400 {
			rt.Fatalf("%d calls", calls)
		}
	})
}
