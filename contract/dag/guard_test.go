package dag_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// alerts are the topics of the framework's alerts to the Lead about waits.
func alerts(events []*rollcallv1.Event) (topics []string, text string) {
	for _, m := range domaintest.Delivered(events, "lead") {
		if m.GetKind() == rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT {
			topics = append(topics, m.GetTopic())
			text += m.GetBody().GetText()
		}
	}
	return topics, text
}

// asks is a question whose sender waits, with what the tool says to it.
func asks(k *domaintest.Kit, by, to string) (events []*rollcallv1.Event, output string) {
	k.Helper()
	events = k.Events(by, ask(to))
	return events, domaintest.Finished(events)[0].GetOutput().GetText()
}

// Who asks a member that begins only after the asker's own task closes a ring of
// two: the tool says so, and the Lead is told in the same commit, once.
func TestRingOfWaitAndDependency(t *testing.T) {
	k := launched(t, member("Backend"), member("Frontend", "Backend"))
	events, output := asks(k, "m1", "Frontend")
	contains(t, "the tool", output, "Backend -> Frontend -> Backend")
	topics, text := alerts(events)
	if !slices.Equal(topics, []string{"deadlock"}) {
		t.Fatalf("the Lead is told %q", topics)
	}
	contains(t, "the Lead reads", text, "Backend -> Frontend -> Backend", "reply_to")
	isStatus(t, k, working, "lead")
	if n := k.State.Guards["deadlock"]; n != 1 {
		t.Fatalf("%d hits", n)
	}
	// Nobody is called meanwhile, and the Lead's answer breaks it.
	q := question(t, events)
	if topics, _ := alerts(k.Ends("lead", "I think about it")); len(topics) > 0 {
		t.Fatalf("told again: %q", topics)
	}
	k.Do(domaintest.Say("", "break it"))
	answer(k, "lead", "Backend", q)
	k.Ends("lead", "done")
	isStatus(t, k, working, "m1")
}

// Rings of every length, closed by the one who waits for the last in a row of
// members of which each begins after the one before.
func TestRingsOfEveryLength(t *testing.T) {
	for n := 2; n <= 8; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			team := []args{member("M1")}
			names := []string{"M1"}
			for i := 2; i <= n; i++ {
				team = append(team, member(fmt.Sprintf("M%d", i), fmt.Sprintf("M%d", i-1)))
				names = append(names, fmt.Sprintf("M%d", i))
			}
			k := launched(t, team...)
			events, output := asks(k, "m1", fmt.Sprintf("M%d", n))
			slices.Reverse(names)
			way := append([]string{"M1"}, names...)
			contains(t, "the tool", output, strings.Join(way, " -> "))
			topics, text := alerts(events)
			if !slices.Equal(topics, []string{"deadlock"}) {
				t.Fatalf("the Lead is told %q", topics)
			}
			contains(t, "the Lead reads", text, strings.Join(way, " -> "))
		})
	}
}

// A ring in which somebody works, has mail to read, or waits for the operator is
// none.
func TestNoDeadlock(t *testing.T) {
	none := func(t *testing.T, events []*rollcallv1.Event, output string) {
		t.Helper()
		if topics, _ := alerts(events); slices.Contains(topics, "deadlock") || strings.Contains(output, "->") {
			t.Fatalf("%q, %s", topics, output)
		}
	}
	t.Run("who is asked has yet to read it", func(t *testing.T) {
		k := launched(t, member("A"), member("B"))
		asks(k, "m1", "B")
		k.Events("m2", domaintest.Call("team_status", args{})) // reads the question
		events, output := asks(k, "m2", "A")
		none(t, events, output) // A reads B's question now
		isStatus(t, k, working, "m1")
		// When A has read it and rests on, they are stuck.
		topics, text := alerts(k.Ends("m1", "no, you"))
		if !slices.Contains(topics, "deadlock") {
			t.Fatalf("the Lead is told %q", topics)
		}
		contains(t, "the Lead reads", text, "A -> B -> A")
	})
	t.Run("the one in the middle works", func(t *testing.T) {
		k := launched(t, member("A"), member("B"), member("C", "A", "B"))
		events, output := asks(k, "m2", "A") // A works
		none(t, events, output)
	})
	t.Run("another may answer", func(t *testing.T) {
		k := launched(t, member("A"), member("B"), member("C", "A"))
		events := k.Events("m1", ask("B"), ask("C")) // B works and may answer
		none(t, events, domaintest.Finished(events)[1].GetOutput().GetText())
	})
	t.Run("the operator may", func(t *testing.T) {
		k := launched(t, member("A"), member("C", "A"))
		events := k.Events("m1", ask("user"), ask("C"))
		none(t, events, domaintest.Finished(events)[1].GetOutput().GetText())
	})
	t.Run("a row without a ring", func(t *testing.T) {
		k := launched(t, member("A"), member("B"), member("C", "B"))
		events, output := asks(k, "m1", "C") // C begins when B delivers, who works
		none(t, events, output)
	})
}

// However many members deliver or fail within a second, the Lead runs at most
// twice for it (B37).
func TestB37LeadRunsAtMostTwice(t *testing.T) {
	for _, n := range []int{2, 8, 40} {
		for _, failing := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d members, the first fails %t", n, failing), func(t *testing.T) {
				var team []args
				for i := range n {
					team = append(team, member(fmt.Sprintf("M%d", i+1)))
				}
				k := launched(t, team...)
				before := runs(k, "lead")
				for i := range n {
					id := fmt.Sprintf("m%d", i+1)
					if failing && i == 0 {
						k.Do(k.ModelFails(id, "model-key-refused", false))
						continue
					}
					deliver(k, id)
				}
				for k.Member("lead").Run != nil {
					k.Ends("lead", "I see")
				}
				if got := runs(k, "lead") - before; got > 2 || got == 0 {
					t.Fatalf("the Lead ran %d times", got)
				}
			})
		}
	}
}

// A Lead that asks for ever more members is refused with what is left, and has a
// bounded number of turns; so is one that asks for 10,000 at once, or briefs each
// with a mebibyte.
func TestRecursiveSpawnIsBounded(t *testing.T) {
	crowd := func(n int) []args {
		var all []args
		for i := range n {
			all = append(all, args{"name": fmt.Sprintf("M%d", i), "brief": "b"})
		}
		return all
	}
	t.Run("a thousand", func(t *testing.T) {
		k := opened(t)
		text := k.Fails("lead", "team_create", args{"goal": "g", "members": crowd(1000)})
		contains(t, "the refusal", text, "at most 64", "63 are left", "[limit-reached]")
	})
	t.Run("more than a commit holds", func(t *testing.T) {
		for what, members := range map[string][]args{
			"ten thousand": crowd(10_000), "a mebibyte each": {{"name": "A", "brief": strings.Repeat("x", 1<<20)}, {"name": "B", "brief": strings.Repeat("x", 1<<20)}},
		} {
			k := opened(t)
			calls := 0
			for ; k.Member("lead").Run != nil; calls++ {
				if calls == 10 {
					t.Fatalf("%s: no end", what)
				}
				k.Do(k.Reply("lead", "", domaintest.Call("team_create", args{"goal": "g", "members": members})))
			}
			if n := len(k.State.Members); n != 1 || k.Member("lead").LastCode != "reply-cut" {
				t.Fatalf("%s: %d members, the run ended %q after %d calls", what, n, k.Member("lead").LastCode, calls)
			}
		}
	})
	t.Run("more than are left", func(t *testing.T) {
		k := declared(t, member("A"))
		var all []args
		for i := range 63 {
			all = append(all, args{"op": "add", "name": fmt.Sprintf("M%d", i), "brief": "b"})
		}
		out := k.Act("lead", domaintest.Call("team_replan", args{"operations": all}))[0].GetOutput().GetText()
		contains(t, "the refusal", out, "limit-reached", "at most 64", "none is left")
	})
	t.Run("always two more", func(t *testing.T) {
		k := opened(t)
		made, calls := 0, 0
		for ; calls < 1000 && len(domain.Due(k.State)) > 0; calls++ {
			w := domain.Due(k.State)[0]
			if w.Member != "lead" {
				deliver(k, w.Member)
				continue
			}
			more := []args{}
			for range 2 {
				made++
				more = append(more, args{"op": "add", "name": fmt.Sprintf("M%d", made), "brief": "b"})
			}
			if made == 2 {
				for _, m := range more {
					delete(m, "op")
				}
				k.Do(k.Reply("lead", "", domaintest.Call("team_create", args{"goal": "g", "members": more})))
				continue
			}
			if k.Member("lead").Run.Step%3 == 0 {
				k.Ends("lead", "and so on")
				continue
			}
			k.Do(k.Reply("lead", "", domaintest.Call("team_replan", args{"operations": more})))
		}
		if calls == 1000 {
			t.Fatal("no end")
		}
		if alive := len(k.State.Members); alive > 64 {
			t.Fatalf("%d members", alive)
		}
	})
}
