package dag_test

import (
	"fmt"
	"testing"

	"github.com/rollcall-dev/rollcall/contract/dag"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func TestLaunch(t *testing.T) {
	t.Run("dag-launch-after-lead-run", func(t *testing.T) {
		k := declared(t, member("A"), member("B"), member("C", "A"))
		isStatus(t, k, unborn, "m1", "m2", "m3")
		k.Acts("lead", "team_status", args{})
		isStatus(t, k, unborn, "m1", "m2", "m3")
		k.Ends("lead", "under way")
		isStatus(t, k, working, "m1", "m2")
		isStatus(t, k, unborn, "m3")
		isTask(t, k, "t1 in_progress, t2 in_progress, t3 pending")
		contains(t, "what A reads", reads(k, "m1"), "do the part of A")
	})
	for how, end := range map[string]func(k *domaintest.Kit){
		"interrupted by hand": func(k *domaintest.Kit) {
			k.Do(&rollcallv1.Command{Actor: "operator", Kind: &rollcallv1.Command_InterruptMember{InterruptMember: &rollcallv1.InterruptMember{}}})
		},
		"failed": func(k *domaintest.Kit) { lost(k, "lead") },
		"suspended": func(k *domaintest.Kit) {
			k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_SuspendRun{SuspendRun: &rollcallv1.SuspendRun{Member: "lead", Run: k.Member("lead").Run.ID, Reason: "no slot"}}})
		},
	} {
		t.Run("the Lead's run is "+how, func(t *testing.T) {
			k := declared(t, member("A"))
			end(k)
			isStatus(t, k, working, "m1")
		})
	}
	t.Run("dag-dependents-after-all", func(t *testing.T) {
		k := launched(t, member("A"), member("B"), member("C", "A", "B"))
		if events := deliver(k, "m1"); domaintest.Count(events, "RunFinished") != 1 {
			t.Fatalf("the delivery does not end the run: %s", domaintest.Names(events))
		}
		isStatus(t, k, idle, "m1")
		isStatus(t, k, unborn, "m3")
		deliver(k, "m2")
		isStatus(t, k, working, "m3")
		isTask(t, k, "t1 completed, t2 completed, t3 in_progress")
		contains(t, "what C reads", reads(k, "m3"), "do the part of C", "the result of m1", "the result of m2")
		if n := calls(k, "m3"); n != 1 {
			t.Fatalf("C was called %d times", n)
		}
	})
	t.Run("a chain, a diamond and a forest run to their end", func(t *testing.T) {
		for name, team := range map[string][]args{
			"chain":           {member("A"), member("B", "A"), member("C", "B"), member("D", "C")},
			"chain backwards": {member("D", "C"), member("C", "B"), member("B", "A"), member("A")},
			"diamond":         {member("A"), member("B", "A"), member("C", "A"), member("D", "B", "C")},
			"forest":          {member("A"), member("B"), member("C", "A"), member("D", "B")},
		} {
			k := launched(t, team...)
			for range team {
				for i := range team {
					if id := fmt.Sprint("m", i+1); k.Member(id).Run != nil {
						deliver(k, id)
					}
				}
			}
			if v := k.State.Verdict(); len(k.State.OpenTasks()) != 0 {
				t.Errorf("%s ends with %+v", name, v)
			}
			if n := calls(k, "lead"); n != 3 { // create, end, the one report
				t.Errorf("%s: the Lead was called %d times", name, n)
			}
		}
	})
	t.Run("a prepared team starts at once", func(t *testing.T) {
		k := domaintest.New(t, opened(t).Rules)
		k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_OpenConversation{OpenConversation: &rollcallv1.OpenConversation{
			Contract: "dag", Objective: domaintest.Text("go"), Goal: "the goal", Members: []*rollcallv1.MemberSpec{
				{Name: "B", Brief: "b", DependsOn: []string{"A"}}, {Name: "A", Brief: "a"},
			},
		}}})
		isStatus(t, k, working, "lead", "m2")
		isStatus(t, k, unborn, "m1")
		deliver(k, "m2")
		isStatus(t, k, working, "m1")
	})
	t.Run("a prepared team that cannot be", func(t *testing.T) {
		open := func(members ...*rollcallv1.MemberSpec) *rollcallv1.Command {
			return &rollcallv1.Command{Kind: &rollcallv1.Command_OpenConversation{OpenConversation: &rollcallv1.OpenConversation{Contract: "dag", Members: members}}}
		}
		k := domaintest.New(t, opened(t).Rules)
		k.Refused("task-cycle", open(&rollcallv1.MemberSpec{Name: "A", Brief: "a", DependsOn: []string{"B"}}, &rollcallv1.MemberSpec{Name: "B", Brief: "b", DependsOn: []string{"A"}}))
		k.Refused("dependency-not-found", open(&rollcallv1.MemberSpec{Name: "A", Brief: "a", DependsOn: []string{"B"}}))
		k.Refused("text-empty", open(&rollcallv1.MemberSpec{Name: "A"}))
	})
	t.Run("a member that never ran keeps its mail for its brief", func(t *testing.T) {
		k := launched(t, member("A"), member("B", "A"))
		k.Do(domaintest.Say("m2", "mind the gap"))
		isStatus(t, k, unborn, "m2")
		deliver(k, "m1")
		contains(t, "what B reads", reads(k, "m2"), "mind the gap", "do the part of B")
	})
}

func TestNamesAndCircles(t *testing.T) {
	t.Run("dag-names-unique", func(t *testing.T) {
		k := opened(t)
		contains(t, "twice", k.Fails("lead", "team_create", args{"goal": "g", "members": []args{member("A"), member(" A ")}}), "[name-taken]")
		contains(t, "reserved", k.Fails("lead", "team_create", args{"goal": "g", "members": []args{member("lead")}}), "[name-reserved]")
		k.Acts("lead", "team_create", args{"goal": "g", "members": []args{member("A"), member("B")}})
		k.Acts("lead", "team_replan", args{"operations": []args{{"op": "cancel", "name": "A"}}})
		k.Acts("lead", "team_dissolve", args{})
		contains(t, "history", k.Fails("lead", "team_create", args{"goal": "g", "members": []args{member("A")}}), "[name-taken]", "never used again")
		contains(t, "history", k.Fails("lead", "team_create", args{"goal": "g", "members": []args{member("B")}}), "[name-taken]")
		k.Acts("lead", "team_create", args{"goal": "g", "members": []args{member("C")}})
		contains(t, "a second team", k.Fails("lead", "team_create", args{"goal": "g", "members": []args{member("D")}}), "[team-exists]")
	})
	t.Run("dag-cycle-refused", func(t *testing.T) {
		for n := 1; n <= 6; n++ {
			k := opened(t)
			var members []args
			for i := range n {
				members = append(members, member(fmt.Sprint("M", i), fmt.Sprint("M", (i+1)%n)))
			}
			members = append(members, member("Free"))
			text := k.Fails("lead", "team_create", args{"goal": "g", "members": members})
			contains(t, "the refusal", text, "[task-cycle]", "M0 -> M"+fmt.Sprint(1%n))
			if len(k.State.Members) != 1 || len(k.State.Tasks) != 0 {
				t.Fatalf("a ring of %d left %d members", n, len(k.State.Members))
			}
		}
		k := declared(t, member("A"), member("B", "A"), member("C", "B"))
		var out replanned
		output(t, k.Acts("lead", "team_replan", args{"operations": []args{{"op": "revise", "name": "A", "brief": "again", "depends_on": []string{"C"}}}}), &out)
		contains(t, "made later", out.Outcomes[0].Error, "[task-cycle]", "t1 -> t3 -> t2 -> t1")
		contains(t, "itself", k.Fails("lead", "team_create", args{"goal": "g", "members": []args{}}), "[team-")
	})
	t.Run("an unknown dependency names the valid ones", func(t *testing.T) {
		k := opened(t)
		text := k.Fails("lead", "team_create", args{"goal": "g", "members": []args{member("A", "Z"), member("B")}})
		contains(t, "the refusal", text, "[dependency-not-found]", `"Z"`, "B")
	})
	t.Run("nothing is made without goal, members or brief", func(t *testing.T) {
		k := opened(t)
		k.Fails("lead", "team_create", args{"goal": " ", "members": []args{member("A")}})
		k.Fails("lead", "team_create", args{"goal": "g", "members": []args{}})
		contains(t, "without brief", k.Fails("lead", "team_create", args{"goal": "g", "members": []args{{"name": "A", "brief": " "}}}), "[text-empty]")
		contains(t, "agent type", k.Fails("lead", "team_create", args{"goal": "g", "members": []args{{"name": "A", "brief": "b", "agent_type": "wizard"}}}), "[agent-type-unknown]", "general")
	})
	t.Run("10,000 members are refused whole", func(t *testing.T) {
		k := opened(t)
		var members []args
		for i := range 10_000 {
			members = append(members, args{"name": fmt.Sprint(i), "brief": "b"})
		}
		done := k.Act("lead", domaintest.Call("team_create", args{"goal": "g", "members": members}))
		if len(done) == 1 && !done[0].GetError() || len(k.State.Members) != 1 {
			t.Fatalf("%v, %d members", done, len(k.State.Members))
		}
	})
}

func TestRoles(t *testing.T) {
	t.Run("dag-member-cannot-orchestrate", func(t *testing.T) {
		k := launched(t, member("A"))
		for _, tool := range []string{"team_create", "team_replan", "team_dissolve"} {
			contains(t, tool, k.Fails("m1", tool, args{"goal": "g", "members": []args{member("Z")}, "operations": []args{}}), "not")
		}
		k.Do(domaintest.Say("", "hello"))
		contains(t, "the Lead completes", k.Fails("lead", "complete", args{"summary": "x"}), "complete")
		if len(k.State.Members) != 2 || k.State.ActiveTeam() == nil {
			t.Fatal("something changed")
		}
	})
	t.Run("dag-lead-cannot-wait", func(t *testing.T) {
		k := declared(t, member("A"))
		contains(t, "the refusal", k.Fails("lead", "team_send_message", args{"to": "A", "text": "x", "wait_for_reply": true}), "[wait-refused]")
	})
	t.Run("dag-status-once-a-run", func(t *testing.T) {
		k := launched(t, member("A"))
		contains(t, "the first", k.Acts("m1", "team_status", args{}), "build it", `"name":"A"`)
		contains(t, "the second", k.Fails("m1", "team_status", args{}), "[once-a-run]")
		k.Ends("m1", "later")
		k.Ends("lead", "so be it")
		k.Do(domaintest.Say("m1", "go on"))
		k.Acts("m1", "team_status", args{})
	})
	t.Run("an ordinary conversation has none of it", func(t *testing.T) {
		k := domaintest.Open(t, opened(t).Rules, "none")
		k.Do(domaintest.Say("", "go"))
		for _, tool := range []string{"team_create", "team_status", "team_send_message", "complete"} {
			contains(t, tool, k.Fails("lead", tool, args{}), "[tool-unknown]")
		}
	})
	t.Run("the tools of each role", func(t *testing.T) {
		c := dag.Contract{}
		if n := len(c.Tools(rollcallv1.MemberRole_MEMBER_ROLE_LEAD)); n != 5 {
			t.Fatalf("the Lead has %d tools", n)
		}
		if n := len(c.Tools(rollcallv1.MemberRole_MEMBER_ROLE_MEMBER)); n != 3 {
			t.Fatalf("a member has %d tools", n)
		}
	})
}

// replanned is what team_replan answers.
type replanned struct {
	Outcomes []struct {
		Op, Name      string
		Done          bool
		Error, Stale  string
		AlsoCancelled string `json:"also_cancelled"`
	}
	Note    string
	Team    string
	Members []struct {
		Name, Status, Task, Reason, Failure, Stale string
		DependsOn                                  []string `json:"depends_on"`
	}
}
