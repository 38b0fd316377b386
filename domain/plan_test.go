package domain_test

import (
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// contextNames are the events of a member's context, in order.
func contextNames(k *domaintest.Kit, member string) string {
	k.Helper()
	plan, ok := k.State.StepPlan(member)
	if !ok {
		k.Fatalf("%s has no open model call", member)
	}
	var events []*rollcallv1.Event
	for _, entry := range plan.Context {
		events = append(events, k.Event(entry.Ref))
	}
	return domaintest.Names(events)
}

func TestStepPlan(t *testing.T) {
	k := leading(t, "A")
	create(k, "one", "A")
	k.Acts("lead", "send_message", args{"to": "A", "text": "the secret is 42"})
	plan, _ := k.State.StepPlan("lead")
	mustEqual(t, "version", plan.Version, k.State.Version)
	mustEqual(t, "call version", k.Member("lead").Run.CallVersion, k.State.Version)
	mustEqual(t, "step", plan.Step, 3)
	mustEqual(t, "name of m1", plan.Names["m1"], "A")
	mustEqual(t, "agent", k.Event(plan.Agent).GetAgentBound().GetHash(), k.Member("lead").Run.Agent)
	mustContain(t, "situation", plan.Situation, "Team crew:", "- Lead (lead): working, that is you", "- A (m1): working", `- t1 "one" claimable, owner A`)
	mustEqual(t, "context", contextNames(k, "lead"), "RunStarted ModelReplied ToolCallFinished ToolCallFinished ModelReplied RunFinished RunStarted ModelReplied ToolCallFinished ModelReplied ToolCallFinished")
	if _, ok := k.State.StepPlan("m9"); ok {
		t.Fatal("a plan for nobody")
	}
	if _, ok := k.State.ToolPlan("lead"); ok {
		t.Fatal("a tool plan without a tool call")
	}
	k.Acts("m1", "task_complete", args{"task_id": "t1", "result": "the RESULT"})
	plan, _ = k.State.StepPlan("m1")
	if strings.Contains(plan.Situation, "RESULT") {
		t.Fatalf("the situation shows results: %s", plan.Situation)
	}
	// The plan is a function of the log: folded up to its version it is the same.
	s := domain.New(domaintest.Key)
	for _, c := range k.Commits {
		s.Evolve(c)
	}
	again, _ := s.StepPlan("m1")
	mustEqual(t, "situation of the fold", again.Situation, plan.Situation)
	mustEqual(t, "context of the fold", len(again.Context), len(plan.Context))
}

func TestUnansweredTurnsLeaveNoTrace(t *testing.T) {
	k := said(t)
	k.Do(domaintest.Say("", "two"))   // interrupts before any reply
	k.Do(domaintest.Say("", "three")) // and again
	mustEqual(t, "context", contextNames(k, "lead"), "RunStarted")
	mustBe(t, "mail", texts(k, "lead"), []string{"do it", "two", "three"})
	k.Act("lead", domaintest.Call("task_list", args{}))
	k.Do(domaintest.SayMode("", "four", rollcallv1.MailMode_MAIL_MODE_STEER))
	k.Act("lead", domaintest.Call("task_list", args{}))
	k.Do(domaintest.Say("", "five"))
	mustBe(t, "mail, each once", texts(k, "lead"), []string{"do it", "two", "three", "four", "five"})
}

func TestMemory(t *testing.T) {
	with := func(memory rollcallv1.MemoryPolicy) *domaintest.Kit {
		k := domaintest.New(t, rules())
		k.Do(opening(func(o *rollcallv1.OpenConversation) {
			o.Agents = []*rollcallv1.AgentDefinition{{Name: "general", Memory: memory}}
			o.Objective = domaintest.Text("one")
		}))
		k.Ends("lead", "done")
		k.Do(domaintest.Say("", "two"))
		return k
	}
	k := with(rollcallv1.MemoryPolicy_MEMORY_POLICY_UNSPECIFIED)
	mustBe(t, "transcript", texts(k, "lead"), []string{"one", "two"})
	k = with(rollcallv1.MemoryPolicy_MEMORY_POLICY_FRESH)
	mustBe(t, "fresh", texts(k, "lead"), []string{"two"})
	plan, _ := k.State.StepPlan("lead")
	mustEqual(t, "a fresh one is not told what came before", len(plan.Purpose), 0)
	k = with(rollcallv1.MemoryPolicy_MEMORY_POLICY_SUMMARY)
	mustBe(t, "summary", texts(k, "lead"), []string{"two"})
	mustEqual(t, "with its last answer", contextNames(k, "lead"), "LeadReplied RunStarted")
	plan, _ = k.State.StepPlan("lead")
	mustEqual(t, "and the objective", assigned(k, plan), "one")
}

func assigned(k *domaintest.Kit, plan domain.StepPlan) string {
	k.Helper()
	if len(plan.Purpose) == 0 {
		return ""
	}
	return k.Event(plan.Purpose[0].GetRef()).GetMessageDelivered().GetBody().GetText()
}

// A member that remembers a summary has its brief, what it delivered, and the
// mail of the run it is in, in all of the run's requests; nothing else.
func TestMemorySummaryOfAMember(t *testing.T) {
	k := domaintest.New(t, rules())
	k.Do(opening(func(o *rollcallv1.OpenConversation) {
		o.Agents = append(o.Agents, &rollcallv1.AgentDefinition{Name: "brief", Memory: rollcallv1.MemoryPolicy_MEMORY_POLICY_SUMMARY})
		o.Objective = domaintest.Text("begin")
	}))
	k.Acts("lead", "team_create", args{"name": "crew"})
	k.Acts("lead", "team_member_add", args{"name": "A", "agent_type": "brief", "initial_prompt": "you write the API"})
	create(k, "one", "A")
	plan, _ := k.State.StepPlan("m1")
	mustEqual(t, "the brief is in the first run's own mail", assigned(k, plan), "")
	k.Acts("m1", "task_complete", args{"task_id": "t1", "result": "the field is display_name"})
	k.Ends("m1", "private thoughts")
	k.Do(domaintest.Say("m1", "and now?"))
	mustEqual(t, "context", contextNames(k, "m1"), "RunStarted")
	plan, _ = k.State.StepPlan("m1")
	mustEqual(t, "brief", assigned(k, plan), "you write the API")
	mustContain(t, "deliveries", plan.Situation, "You delivered:\n- t1 \"one\": the field is display_name")
	k.Acts("m1", "task_list", args{})
	mustBe(t, "mail stays for the whole run", texts(k, "m1"), []string{"and now?"})
	other, _ := k.State.StepPlan("lead")
	mustEqual(t, "others' deliveries are theirs", strings.Contains(other.Situation, "display_name"), false)
}

// What a long conversation was for is never pushed out of the requests.
func TestObjectiveStays(t *testing.T) {
	k := domaintest.New(t, rules())
	k.Do(opening(func(o *rollcallv1.OpenConversation) { o.Objective = domaintest.Text("the goal") }))
	k.Ends("lead", "noted")
	for range 12 {
		plan, _ := k.State.StepPlan("lead")
		mustEqual(t, "shown once", assigned(k, plan), "")
		k.Do(domaintest.Say("", strings.Repeat("x", 60<<10)))
		k.Ends("lead", "noted")
	}
	k.Do(domaintest.Say("", "and now?"))
	plan, _ := k.State.StepPlan("lead")
	mustEqual(t, "objective", assigned(k, plan), "the goal")
	mustEqual(t, "it is shown before what is left", plan.Omitted > 0 && len(plan.Context) > 3, true)
}

// Long mail of members counts as what a frame shows of it.
func TestLongMailLeavesTheTranscript(t *testing.T) {
	k := leading(t, "A")
	k.Do(domaintest.Say("m1", "tell the Lead"))
	for range 20 {
		k.Acts("m1", "send_message", args{"to": "Lead", "text": strings.Repeat("x", 60<<10)})
	}
	k.Acts("lead", "task_list", args{})
	plan, _ := k.State.StepPlan("lead")
	mustEqual(t, "omitted", plan.Omitted, 0)
}

func TestConsumedMailCanBeReadAgain(t *testing.T) {
	k := leading(t, "A")
	k.Do(domaintest.Say("m1", "ask the Lead"))
	k.Acts("m1", "send_message", args{"to": "Lead", "text": "a question"})
	k.Acts("lead", "task_list", args{})
	k.Act("lead", domaintest.Call("file_write", args{}))
	plan, ok := k.State.ToolPlan("lead")
	mustEqual(t, "a tool runs", ok, true)
	var read []string
	for _, m := range plan.Mail {
		read = append(read, k.Event(m.GetRef()).GetMessageDelivered().GetBody().GetText())
	}
	mustBe(t, "mailbox-consumed-kept", read, []string{"do it", "go on", "a question"})
	mustEqual(t, "its names", plan.Names["m1"], "A")
}

func TestTranscriptIsBounded(t *testing.T) {
	k := open(t)
	for range 12 {
		k.Do(domaintest.Say("", strings.Repeat("x", 60<<10)))
		k.Ends("lead", "noted")
	}
	k.Do(domaintest.Say("", "and now?"))
	plan, _ := k.State.StepPlan("lead")
	var size uint64
	for _, e := range plan.Context {
		size += e.Ref.GetSize()
		for _, m := range e.Mail {
			size += m.GetRef().GetSize()
		}
	}
	if size > 400<<10 || size < 300<<10 {
		t.Fatalf("the context has %d bytes", size)
	}
	// Whole turns, the newest kept, the rest counted.
	mustEqual(t, "turns", len(plan.Context), 6*3+1)
	mustEqual(t, "omitted", plan.Omitted, 6*3)
	mustEqual(t, "begins with a turn", domain.EventName(k.Event(plan.Context[0].Ref)), "RunStarted")
	// What the open run brings takes the place of older turns.
	k.Ends("lead", "nothing")
	k.Do(domaintest.Say("", strings.Repeat("y", 60<<10)))
	plan, _ = k.State.StepPlan("lead")
	mustEqual(t, "turns", len(plan.Context), (1+5)*3+1)
	mustEqual(t, "omitted", plan.Omitted, 7*3)
	mustEqual(t, "members omit the rest", k.Member("lead").Omitted, 6*3)
}

func TestReadableFiles(t *testing.T) {
	k := leading(t, "A", "B")
	create(k, "one", "A")
	write := func(member string, files ...*rollcallv1.FileChange) {
		k.Helper()
		k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_WriteFiles{WriteFiles: &rollcallv1.WriteFiles{Member: member, Files: files}}})
	}
	write("m1", domaintest.File("api/a.json", "aa"), domaintest.File("draft.md", "dd"))
	write("", domaintest.File("plan.md", "pp"))
	files := func(member string) []string {
		k.Helper()
		k.Act(member, domaintest.Call("file_write", args{}))
		plan, ok := k.State.ToolPlan(member)
		if !ok {
			k.Fatalf("%s has no open tool call", member)
		}
		k.Do(k.ToolDone(member, "ok"))
		var paths []string
		for _, p := range []string{"A/api/a.json", "A/draft.md", "Lead/plan.md", "plan.md", "api/a.json"} {
			if plan.Files[p] != nil {
				paths = append(paths, p)
			}
		}
		return paths
	}
	mustBe(t, "mailbox-lead-reads-members-files", files("lead"), []string{"A/api/a.json", "A/draft.md", "plan.md"})
	k.Do(domaintest.Say("m2", "look"))
	mustBe(t, "of B before the delivery", files("m2"), []string{"Lead/plan.md"})
	mustContain(t, "a path that is missing", k.Fails("m1", "task_complete", args{"task_id": "t1", "result": "x", "paths": []string{"api/b.json"}}), "[file-not-found]", "api/a.json")
	mustContain(t, "a path outside", k.Fails("m1", "task_complete", args{"task_id": "t1", "result": "x", "paths": []string{"../x"}}), "[path-invalid]")
	mustEqual(t, "t1 stays open", k.Task("t1").Status, isClaimable)
	k.Acts("m1", "task_complete", args{"task_id": "t1", "result": "x", "paths": []string{"./api/a.json"}})
	mustBe(t, "of B after it", files("m2"), []string{"A/api/a.json", "Lead/plan.md"})
	mustBe(t, "of A itself", files("m1"), []string{"Lead/plan.md", "api/a.json"})
	all := texts(k, "lead")
	mustContain(t, "the Lead reads", all[len(all)-1]+strings.Join(all, "|"), "go on")
	k.Acts("lead", "task_get", args{"task_id": "t1"})
	mustContain(t, "the Lead was told", strings.Join(texts(k, "lead"), "|"), "A/api/a.json")
	write("m1", &rollcallv1.FileChange{Path: "draft.md"})
	mustEqual(t, "files of A", len(k.Member("m1").Files), 1)
}

func TestCleanPath(t *testing.T) {
	for p, want := range map[string]string{"a": "a", "a/b.txt": "a/b.txt", "./a//b": "a/b", "a/../b": "b", "..a": "..a"} {
		if got, refusal := domain.CleanPath(p); refusal != nil || got != want {
			t.Errorf("%q: %q %v, want %q", p, got, refusal, want)
		}
	}
	for _, p := range []string{"", ".", "/", "/etc/passwd", "..", "../a", "a/../../b", `a\b`, "a/", "a\x00", "a\xff", strings.Repeat("a", 501)} {
		if got, refusal := domain.CleanPath(p); refusal == nil {
			t.Errorf("%q: accepted as %q", p, got)
		}
	}
}

func TestToolOutputs(t *testing.T) {
	k := leading(t, "A")
	create(k, "one", "A")
	k.Acts("m1", "task_complete", args{"task_id": "t1", "result": "the result"})
	mustContain(t, "task_list", k.Acts("lead", "task_list", args{}), `{"tasks":[{"task_id":"t1","title":"one","status":"completed","owner":"A"}]}`)
	mustContain(t, "task_get", k.Acts("lead", "task_get", args{"task_id": "t1"}), `"result":"the result"`, `"creator":"Lead"`, `"completed_by":"A"`)
}
