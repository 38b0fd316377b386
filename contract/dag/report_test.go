package dag_test

import (
	"fmt"
	"testing"

	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func unreadReports(k *domaintest.Kit) (n int) {
	for _, m := range k.Member("lead").Unread {
		if m.Kind == rollcallv1.MailKind_MAIL_KIND_TEAM_REPORT {
			n++
		}
	}
	return n
}

func TestTeamReport(t *testing.T) {
	t.Run("dag-team-report", func(t *testing.T) {
		t.Run("quiescence wakes the Lead once, whatever number finished", func(t *testing.T) {
			for _, n := range []int{1, 2, 8, 40} {
				var team []args
				for i := range n {
					team = append(team, member(fmt.Sprint("M", i)))
				}
				k := launched(t, team...)
				before := calls(k, "lead")
				var told []string
				for i := range n {
					told = append(told, reports(deliver(k, fmt.Sprint("m", i+1)))...)
				}
				if len(told) != 1 || calls(k, "lead") != before+1 {
					t.Fatalf("%d finish: %d reports, %d calls", n, len(told), calls(k, "lead")-before)
				}
				contains(t, "the report", told[0], "Delivered: M0", "team_dissolve")
				k.Ends("lead", "checked")
				if k.Member("lead").Run != nil {
					t.Fatal("the Lead is told again")
				}
			}
		})
		t.Run("all in one commit", func(t *testing.T) {
			k := launched(t, member("A"), member("B"), member("C"))
			before := calls(k, "lead")
			var done []*rollcallv1.Command
			for _, id := range []string{"m1", "m2", "m3"} {
				done = append(done, k.Reply(id, "", domaintest.Call("complete", args{"summary": "x"})))
			}
			k.Do(done...)
			if n := calls(k, "lead") - before; n != 1 {
				t.Fatalf("the Lead was called %d times", n)
			}
		})
		t.Run("a failure wakes the Lead at once", func(t *testing.T) {
			k := launched(t, member("A"), member("B"), member("C"))
			if told := reports(deliver(k, "m3")); len(told) != 0 {
				t.Fatalf("told of a delivery: %q", told)
			}
			told := reports(lost(k, "m1"))
			if len(told) != 1 {
				t.Fatalf("%d reports", len(told))
			}
			contains(t, "the report", told[0], "A failed", "Delivered: C")
			isStatus(t, k, working, "lead", "m2")
		})
		t.Run("at most one is unread, and the newest says it all", func(t *testing.T) {
			k := launched(t, member("A"), member("B"), member("C"))
			k.Do(domaintest.Say("", "what now?")) // the Lead works, and reads at its next step
			lost(k, "m1")
			told := reports(lost(k, "m2"))
			if n := unreadReports(k); n != 1 || len(told) != 1 {
				t.Fatalf("%d are unread, %d were sent", n, len(told))
			}
			contains(t, "the newest", told[0], "A failed", "B failed")
			k.Acts("lead", "team_status", args{})
			contains(t, "what the Lead reads", reads(k, "lead"), "A failed", "B failed")
			if n := unreadReports(k); n != 0 {
				t.Fatalf("%d are unread", n)
			}
			// What it has read is not said again.
			k.Ends("lead", "noted")
			told = reports(deliver(k, "m3"))
			if len(told) != 1 {
				t.Fatalf("%d reports", len(told))
			}
			contains(t, "the last", told[0], "Delivered: C")
		})
		t.Run("a paused conversation is told when it goes on", func(t *testing.T) {
			k := launched(t, member("A"))
			k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_PauseConversation{PauseConversation: &rollcallv1.PauseConversation{}}})
			if told := reports(deliver(k, "m1")); len(told) != 0 {
				t.Fatalf("told while paused: %q", told)
			}
			told := reports(k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_ResumeConversation{ResumeConversation: &rollcallv1.ResumeConversation{}}}))
			if len(told) != 1 {
				t.Fatalf("%d reports", len(told))
			}
		})
		t.Run("who waits for the operator keeps nobody from being told of the rest", func(t *testing.T) {
			k := launched(t, member("A"), member("B"))
			if told := reports(k.Events("m1", ask("user"))); len(told) != 0 {
				t.Fatalf("told: %q", told)
			}
			if told := reports(deliver(k, "m2")); len(told) != 1 {
				t.Fatalf("%d reports", len(told))
			}
			k.Ends("lead", "A waits for you, operator")
			if v := k.State.Verdict(); v.Exit != 6 {
				t.Fatalf("%+v", v)
			}
		})
	})
	t.Run("who waits for an approval keeps nobody from being told of the rest", func(t *testing.T) {
		k := domaintest.New(t, opened(t).Rules)
		k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_OpenConversation{OpenConversation: &rollcallv1.OpenConversation{
			Contract: "dag", Objective: domaintest.Text("go"), Approvals: &rollcallv1.ApprovalPolicy{Tools: []string{"complete", "team_create"}},
		}}})
		k.Events("lead", domaintest.Call("team_create", args{"goal": "g", "members": []args{member("A"), member("B")}}))
		if len(k.State.Members) != 1 || k.State.Verdict().Exit != 6 {
			t.Fatalf("a plan without approval: %+v", k.State.Verdict())
		}
		k.Do(domaintest.Decide("a1", true, ""))
		k.Ends("lead", "under way")
		deliver(k, "m1")
		deliver(k, "m2")
		told := reports(k.Do(domaintest.Decide("a3", true, "")))
		if len(told) != 1 {
			t.Fatalf("%d reports", len(told))
		}
		k.Ends("lead", "A waits for your approval")
		if v := k.State.Verdict(); v.Exit != 6 {
			t.Fatalf("%+v", v)
		}
		k.Do(domaintest.Decide("a2", false, "redo it"))
		contains(t, "what A reads", domaintest.Names(k.All()), "ToolCallFinished")
		isStatus(t, k, working, "m1")
		isTask(t, k, "t1 in_progress, t2 completed")
	})
	t.Run("dag-all-delivered-team-still-open", func(t *testing.T) {
		k := launched(t, member("A"))
		deliver(k, "m1")
		k.Ends("lead", "here it is")
		if k.State.ActiveTeam() == nil {
			t.Fatal("the team is closed")
		}
		if v := k.State.Verdict(); v.Exit != 0 {
			t.Fatalf("%+v", v)
		}
		k.Do(domaintest.Say("", "one more page"))
		k.Acts("lead", "team_replan", args{"operations": []args{add("B", "A")}})
		k.Ends("lead", "under way")
		isStatus(t, k, working, "m2")
	})
	t.Run("the Lead fails while results come in, and gets them after", func(t *testing.T) {
		k := launched(t, member("A"), member("B"))
		deliver(k, "m1")
		k.Do(domaintest.Say("", "how is it?"))
		lost(k, "lead")
		deliver(k, "m2")
		if k.Member("lead").Run != nil {
			t.Fatal("a failed Lead is called")
		}
		k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_RetryMember{RetryMember: &rollcallv1.RetryMember{}}})
		contains(t, "what the Lead reads", reads(k, "lead"), "the result of m1", "the result of m2")
	})
	t.Run("a long chain of waves is reported each time", func(t *testing.T) {
		k := launched(t, member("W0"))
		for i := 1; i <= 30; i++ {
			if told := reports(deliver(k, fmt.Sprint("m", i))); len(told) != 1 {
				t.Fatalf("wave %d: %d reports", i, len(told))
			}
			k.Acts("lead", "team_replan", args{"operations": []args{add(fmt.Sprint("W", i), fmt.Sprint("W", i-1))}})
			k.Ends("lead", "on")
		}
	})
}
