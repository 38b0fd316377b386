package domain_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// said is a conversation whose Lead works on the operator's first words.
func said(t *testing.T) *domaintest.Kit {
	t.Helper()
	k := open(t)
	k.Do(domaintest.Say("", "do it"))
	return k
}

func resumeRun(k *domaintest.Kit, member string) *rollcallv1.Command {
	return &rollcallv1.Command{Kind: &rollcallv1.Command_ResumeRun{ResumeRun: &rollcallv1.ResumeRun{Member: member, Run: k.Member(member).Run.ID}}}
}

func TestRunStartsWithItsMail(t *testing.T) {
	k := open(t)
	events := k.Do(domaintest.Say("", "do it"))
	mustEqual(t, "events", domaintest.Names(events), "MessageDelivered AgentBound RunStarted ModelCallStarted")
	bound := events[1].GetAgentBound()
	mustEqual(t, "model", bound.GetDefinition().GetModel(), "test-model")
	mustEqual(t, "hash", events[2].GetRunStarted().GetAgentHash(), bound.GetHash())
	k.Ends("lead", "done")
	events = k.Do(domaintest.Say("", "again"))
	mustEqual(t, "a binding is recorded once", domaintest.Names(events), "MessageDelivered RunStarted ModelCallStarted")
	// An edit reaches the next run, never the open one.
	k.Rules.DefaultModel = "newer-model"
	events = k.Events("lead", domaintest.Call("task_list", args{}))
	mustEqual(t, "bindings", domaintest.Count(events, "AgentBound"), 0)
	k.Ends("lead", "done")
	events = k.Do(domaintest.Say("", "once more"))
	mustEqual(t, "bindings", domaintest.Count(events, "AgentBound"), 1)
}

func TestToolCallsRunInOrder(t *testing.T) {
	k := said(t)
	events := k.Events("lead", domaintest.Call("task_create", args{"title": "a", "description": "x"}), domaintest.Call("file_write", args{"path": "p"}),
		domaintest.Call("task_create", args{"title": "b", "description": "x"}))
	mustEqual(t, "up to the external tool", domaintest.Names(events), "ModelReplied TaskCreated ToolCallFinished ToolCallStarted")
	plan, ok := k.State.ToolPlan("lead")
	if !ok || plan.Call.GetName() != "file_write" {
		t.Fatalf("tool plan %+v %v", plan, ok)
	}
	mustEqual(t, "due", domain.Due(k.State)[0].Kind, domain.CallTool)
	late := k.ToolDone("lead", "again")
	events = k.Do(k.ToolDone("lead", "written", domaintest.File("p", "abc")))
	mustEqual(t, "then on", domaintest.Names(events), "FileWritten ToolCallFinished TaskCreated ToolCallFinished ModelCallStarted")
	mustEqual(t, "file", k.Member("lead").Files["p"].SHA256, "abc")
	k.Refused("stale-outcome", late)
	mustEqual(t, "step", k.Member("lead").Run.Step, 2)
}

func TestBadToolCalls(t *testing.T) {
	raw := func(name, arguments string) *rollcallv1.ToolCall {
		return &rollcallv1.ToolCall{Name: name, Arguments: arguments}
	}
	for _, c := range []struct {
		call *rollcallv1.ToolCall
		want []string
	}{
		{raw("team_magic", "{}"), []string{"tool-unknown", "team_create", "task_list", "file_write"}},
		{raw("task_create", "{not json"), []string{"argument-invalid", "title (required)", "dependencies"}},
		{raw("task_create", `"a string"`), []string{"argument-invalid", "JSON object"}},
		{raw("task_create", ``), []string{"argument-invalid", `argument "description" is missing`}},
		{raw("task_create", `{"title":"x"}`), []string{"argument-invalid", `argument "description" is missing`}},
		{raw("task_create", `{"title":1,"description":"x"}`), []string{"argument-invalid", "title"}},
		{raw("task_create", `{"title":"x","description":"x","colour":"red"}`), []string{"argument-invalid", "colour", "owner"}},
		{raw("task_get", `{"task_id":"t1","task_id":"t2","id":3}`), []string{"argument-invalid", `"id"`}},
		{raw("file_write", `[1]`), []string{"argument-invalid"}},
		{&rollcallv1.ToolCall{Name: "task_create", ArgumentsBlob: &rollcallv1.Blob{Sha256: "a", Size: 70000}}, []string{"text-too-long", "file"}},
		{raw("task_create", `{"title":"`+strings.Repeat("x", 300)+`","description":"x"}`), []string{"text-too-long", "file"}},
		{raw("send_message", `{"to":"user","text":" "}`), []string{"text-empty"}},
		{raw("send_message", `{"to":"user","text":"a\u0000b"}`), []string{"text-invalid"}},
		{raw("send_message", `{"to":"user","text":"x","reply_to":"msg99"}`), []string{"message-not-found"}},
		{raw("send_message", `{"to":"Lead","text":"x"}`), []string{"message-to-self"}},
	} {
		k := said(t)
		done := k.Act("lead", c.call)
		if len(done) != 1 || !done[0].GetError() {
			t.Fatalf("%v: %v, want an error", c.call, done)
		}
		mustContain(t, c.call.String(), done[0].GetOutput().GetText(), c.want...)
		mustEqual(t, "the run goes on", k.Member("lead").Run.Phase, domain.Calling)
	}
}

func TestMembersHaveNoTeamTools(t *testing.T) {
	k := team(t, "A")
	k.Do(domaintest.Say("m1", "make a team"))
	mustContain(t, "refusal", k.Fails("m1", "team_create", args{"name": "mine"}), "tool-unknown", "send_message")
}

func TestCallIDsAreUniqueInARun(t *testing.T) {
	k := said(t)
	list := func(id string) *rollcallv1.ToolCall {
		return &rollcallv1.ToolCall{Id: id, Name: "task_list", Arguments: "{}"}
	}
	seen := map[string]bool{}
	for range 2 {
		for _, f := range k.Act("lead", list("call_1"), list("call_1"), list(""), list(strings.Repeat("x", 500))) {
			if f.GetCall() == "" || len(f.GetCall()) > 100 || seen[f.GetCall()] {
				t.Fatalf("call id %q", f.GetCall())
			}
			seen[f.GetCall()] = true
		}
	}
	mustEqual(t, "calls", len(seen), 8)
	mustEqual(t, "a good id is kept", seen["call_1"], true)
}

func TestTooManyCalls(t *testing.T) {
	k := said(t)
	var calls []*rollcallv1.ToolCall
	for range 70 {
		calls = append(calls, domaintest.Call("task_list", args{}))
	}
	done := k.Act("lead", calls...)
	mustEqual(t, "outcomes", len(done), 70)
	mustEqual(t, "the last that ran", done[63].GetError(), false)
	mustContain(t, "the first that did not", done[64].GetOutput().GetText(), "[limit-reached]")
}

// A model gone wild: more calls than a commit holds outcomes of are not run at
// all; as many as are recorded fit, whatever they come to.
func TestRepliesWithTooManyCalls(t *testing.T) {
	for n, runs := range map[int]bool{512: true, 513: false, 10_000: false} {
		k := said(t)
		calls := make([]*rollcallv1.ToolCall, n)
		for i := range calls {
			calls[i] = domaintest.Call("task_list", args{})
		}
		events := k.Events("lead", calls...)
		size := 0
		for _, e := range events {
			size += proto.Size(e)
		}
		outcomes := domaintest.Count(events, "ToolCallFinished")
		if size > 700<<10 || runs && outcomes != n || !runs && outcomes > 0 {
			t.Errorf("%d calls had %d outcomes, in %d bytes", n, outcomes, size)
		}
		if !runs {
			mustContain(t, "note", texts(k, "lead")[1], "512 tool calls", "None of them was run")
		}
		mustEqual(t, "Lead", k.Member("lead").Status, isWorking)
	}
}

func TestCutReplies(t *testing.T) {
	for _, finish := range []string{"length", "content_filter"} {
		k := said(t)
		events := k.Do(k.ReplyFinish("lead", finish, "half a", domaintest.Call("task_create", args{"title": "a", "description": "x"})))
		mustEqual(t, "no tool runs", domaintest.Names(events), "ModelReplied MessageDelivered MessagesConsumed ModelCallStarted")
		mustEqual(t, "calls are dropped", len(events[0].GetModelReplied().GetCalls()), 0)
		mustContain(t, "note", texts(k, "lead")[1], "cut off")
		events = k.Do(k.ReplyFinish("lead", finish, "half a"))
		mustEqual(t, "events", domaintest.Names(events), "ModelReplied RunFinished")
		mustEqual(t, "code", events[1].GetRunFinished().GetCode(), "reply-cut")
		mustEqual(t, "exit", k.State.Verdict().Exit, 7)
	}
	t.Run("not in a row", func(t *testing.T) {
		k := said(t)
		for range 3 {
			k.Do(k.ReplyFinish("lead", "length", "half a"))
			k.Act("lead", domaintest.Call("task_list", args{}))
		}
		mustEqual(t, "Lead", k.Member("lead").Status, isWorking)
	})
	t.Run("arguments that fit no commit", func(t *testing.T) {
		k := said(t)
		big := domaintest.Call("send_message", args{"to": "user", "text": strings.Repeat("x", 60<<10)})
		events := k.Events("lead", big, big, big, big, big)
		mustEqual(t, "no tool runs", domaintest.Count(events, "ToolCallFinished"), 0)
		mustContain(t, "note", texts(k, "lead")[1], "fewer calls")
	})
}

func TestEmptyReplies(t *testing.T) {
	k := said(t)
	events := k.Do(k.Reply("lead", " \n"))
	mustEqual(t, "one nudge", domaintest.Names(events), "ModelReplied MessageDelivered MessagesConsumed ModelCallStarted")
	events = k.Do(k.Reply("lead", ""))
	mustEqual(t, "code", events[len(events)-1].GetRunFinished().GetCode(), "reply-empty")
	t.Run("after a delivery silence is fine", func(t *testing.T) {
		k := leading(t, "A")
		create(k, "one", "A")
		k.Acts("m1", "task_complete", args{"task_id": "t1", "result": "ok"})
		events := k.Do(k.Reply("m1", ""))
		mustEqual(t, "reason", events[1].GetRunFinished().GetReason(), rollcallv1.FinishReason_FINISH_REASON_COMPLETED)
	})
}

func TestModelFailures(t *testing.T) {
	k := said(t)
	for attempt := uint32(1); attempt < 6; attempt++ {
		mustEqual(t, "attempt", k.Member("lead").Run.Attempt, attempt)
		events := k.Do(k.ModelFails("lead", "model-server-error", true))
		mustEqual(t, "events", domaintest.Names(events), "ModelCallFailed ModelCallStarted")
		mustEqual(t, "retry", events[0].GetModelCallFailed().GetRetry(), true)
	}
	events := k.Do(k.ModelFails("lead", "model-server-error", true))
	mustEqual(t, "events", domaintest.Names(events), "ModelCallFailed MessagesReturned RunFinished")
	mustEqual(t, "code", events[2].GetRunFinished().GetCode(), "model-server-error")
	mustEqual(t, "exit", k.State.Verdict().Exit, 7)
	t.Run("a busy server is asked longer", func(t *testing.T) {
		k := said(t)
		for range 29 {
			mustEqual(t, "retry", k.Do(k.ModelFails("lead", "model-rate-limited", true))[0].GetModelCallFailed().GetRetry(), true)
		}
		mustEqual(t, "retry", k.Do(k.ModelFails("lead", "model-rate-limited", true))[0].GetModelCallFailed().GetRetry(), false)
	})
	t.Run("a new step counts anew", func(t *testing.T) {
		k := said(t)
		for range 4 {
			k.Do(k.ModelFails("lead", "model-cut", true))
			k.Do(k.ModelFails("lead", "model-cut", true))
			k.Act("lead", domaintest.Call("task_list", args{}))
		}
		mustEqual(t, "Lead", k.Member("lead").Status, isWorking)
	})
	t.Run("permanent", func(t *testing.T) {
		k := said(t)
		events := k.Do(k.ModelFails("lead", "model-key-refused", false))
		mustEqual(t, "retry", events[0].GetModelCallFailed().GetRetry(), false)
		mustEqual(t, "Lead", k.Member("lead").Status, isIdle)
	})
}

func TestFailRun(t *testing.T) {
	k := said(t)
	fail := &rollcallv1.Command{Kind: &rollcallv1.Command_FailRun{FailRun: &rollcallv1.FailRun{
		Member: "lead", Run: k.Member("lead").Run.ID, Code: "run-panicked", Error: "nil map \xff",
	}}}
	events := k.Do(fail)
	mustEqual(t, "events", domaintest.Names(events), "MessagesReturned RunFinished")
	mustEqual(t, "code", events[1].GetRunFinished().GetCode(), "run-panicked")
	k.Refused("stale-outcome", &rollcallv1.Command{Kind: fail.Kind})
}

func TestResume(t *testing.T) {
	t.Run("a model call is made again", func(t *testing.T) {
		k := said(t)
		k.Restart()
		mustEqual(t, "open runs", len(domain.Due(k.State)), 1)
		late := k.Reply("lead", "from the lost node")
		k.Node, k.Epoch = "n2", 2
		events := k.Do(resumeRun(k, "lead"))
		mustEqual(t, "events", domaintest.Names(events), "RunResumed ModelCallStarted")
		mustEqual(t, "node", events[0].GetRunResumed().GetNode(), "n2")
		mustEqual(t, "attempt", events[1].GetModelCallStarted().GetAttempt(), 2)
		k.Refused("stale-outcome", late)
	})
	t.Run("an idempotent tool runs again", func(t *testing.T) {
		k := said(t)
		k.Act("lead", domaintest.Call("file_write", args{"path": "p"}))
		call := k.Member("lead").Run.Calls[0].ID
		events := k.Do(resumeRun(k, "lead"))
		mustEqual(t, "events", domaintest.Names(events), "RunResumed")
		mustEqual(t, "due", domain.Due(k.State)[0].Call, call)
		k.Do(k.ToolDone("lead", "written"))
	})
	t.Run("any other has an unknown outcome", func(t *testing.T) {
		k := said(t)
		k.Act("lead", domaintest.Call("deploy", args{}), domaintest.Call("task_list", args{}))
		events := k.Do(resumeRun(k, "lead"))
		mustEqual(t, "events", domaintest.Names(events), "RunResumed ToolCallFinished ToolCallFinished ModelCallStarted")
		mustEqual(t, "unknown", events[1].GetToolCallFinished().GetUnknown(), true)
		mustContain(t, "output", events[1].GetToolCallFinished().GetOutput().GetText(), "unknown", "Verify first")
	})
	t.Run("a bounded number of times", func(t *testing.T) {
		k := said(t)
		for range 10 {
			k.Do(resumeRun(k, "lead"))
		}
		events := k.Do(resumeRun(k, "lead"))
		mustEqual(t, "code", events[len(events)-1].GetRunFinished().GetCode(), "too-many-resumes")
	})
	t.Run("counted from the last reply on", func(t *testing.T) {
		k := said(t)
		for range 3 {
			for range 10 {
				k.Do(resumeRun(k, "lead"))
			}
			k.Act("lead", domaintest.Call("task_list", args{}))
		}
		mustEqual(t, "it is open", k.Member("lead").Run != nil, true)
		mustEqual(t, "resumes", k.Member("lead").Run.Resumes, 0)
	})
	t.Run("suspended in good order", func(t *testing.T) {
		k := said(t)
		suspend := func() *rollcallv1.Command {
			return &rollcallv1.Command{Kind: &rollcallv1.Command_SuspendRun{SuspendRun: &rollcallv1.SuspendRun{
				Member: "lead", Run: k.Member("lead").Run.ID, Reason: "drain",
			}}}
		}
		mustEqual(t, "events", domaintest.Names(k.Do(suspend())), "RunSuspended")
		mustEqual(t, "again", len(k.Do(suspend())), 0)
		mustEqual(t, "it is still owed", len(domain.Due(k.State)), 1)
		mustEqual(t, "events", domaintest.Names(k.Do(resumeRun(k, "lead"))), "RunResumed ModelCallStarted")
		mustEqual(t, "it counts as no loss", k.Member("lead").Run.Resumes, 0)
	})
}

func TestStaleEpoch(t *testing.T) {
	k := said(t)
	k.Epoch = 5
	k.Do(domaintest.Say("", "on"))
	if _, err := k.State.Begin(k.Rules, domain.Stamp{Epoch: 4}); err == nil || !strings.Contains(err.Error(), "[stale-epoch]") {
		t.Fatalf("epoch 4 after 5: %v", err)
	}
}

func TestPause(t *testing.T) {
	k := team(t, "A")
	k.Do(domaintest.Say("m1", "work"))
	mustEqual(t, "events", domaintest.Names(k.Do(pause())), "ConversationPaused")
	mustEqual(t, "again", len(k.Do(pause())), 0)
	k.Do(domaintest.Say("", "hello"))
	mustEqual(t, "Lead", k.Member("lead").Status, isIdle)
	events := k.Events("m1", domaintest.Call("task_list", args{}))
	mustEqual(t, "parks at the boundary", domaintest.Names(events), "ModelReplied ToolCallFinished RunSuspended")
	mustEqual(t, "due", len(domain.Due(k.State)), 0)
	mustEqual(t, "status", k.State.Status(), "paused")
	mustEqual(t, "exit", k.State.Verdict().Exit, 6)
	mustEqual(t, "a parked run is not resumed by a load", len(k.Do(resumeRun(k, "m1"))), 0)
	k.Do(domaintest.Say("m1", "steer"))
	events = k.Do(resume())
	mustEqual(t, "events", domaintest.Names(events), "ConversationResumed RunResumed MessagesConsumed ModelCallStarted RunStarted ModelCallStarted")
	mustEqual(t, "step", k.Member("m1").Run.Step, 2)
	mustEqual(t, "again", len(k.Do(resume())), 0)
	t.Run("a lost call", func(t *testing.T) {
		k := said(t)
		k.Do(pause())
		mustEqual(t, "events", domaintest.Names(k.Do(resumeRun(k, "lead"))), "RunResumed RunSuspended")
		events := k.Do(resume())
		mustEqual(t, "attempt", events[2].GetModelCallStarted().GetAttempt(), 2)
	})
	t.Run("a run may end", func(t *testing.T) {
		k := said(t)
		k.Do(pause())
		mustEqual(t, "events", domaintest.Names(k.Ends("lead", "done")), "ModelReplied LeadReplied RunFinished")
	})
}

// A run that only waited for its turn goes on with the call that it started:
// nothing was lost, and nothing is asked twice.
func TestARunThatWaited(t *testing.T) {
	waiting := func(t *testing.T) *domaintest.Kit {
		k := said(t)
		k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_SuspendRun{SuspendRun: &rollcallv1.SuspendRun{Member: "lead", Run: "r1", Reason: "no slot"}}})
		mustEqual(t, "suspended", k.Member("lead").Run.Suspended, true)
		return k
	}
	goOn := func() *rollcallv1.Command {
		return &rollcallv1.Command{Kind: &rollcallv1.Command_ResumeRun{ResumeRun: &rollcallv1.ResumeRun{Member: "lead", Run: "r1", Waited: true}}}
	}
	k := waiting(t)
	mustEqual(t, "events", domaintest.Names(k.Do(goOn())), "RunResumed")
	mustEqual(t, "attempt", k.Member("lead").Run.Attempt, 1)
	mustEqual(t, "suspended", k.Member("lead").Run.Suspended, false)
	mustEqual(t, "again", len(k.Do(goOn())), 0)
	k.Ends("lead", "done")
	k.Refused("stale-outcome", goOn())

	k = waiting(t)
	k.Do(pause())
	mustEqual(t, "paused meanwhile", domaintest.Names(k.Do(goOn())), "RunSuspended")
	mustEqual(t, "phase", k.Member("lead").Run.Phase, domain.Parked)
	mustEqual(t, "it goes on", domaintest.Names(k.Do(resume())), "ConversationResumed RunResumed ModelCallStarted")

	k = waiting(t)
	mustEqual(t, "lost meanwhile", domaintest.Names(k.Do(resumeRun(k, "lead"))), "RunResumed ModelCallStarted")
	mustEqual(t, "which counts as none", k.Member("lead").Run.Resumes, 0)
}

func TestInterruptByHand(t *testing.T) {
	k := said(t)
	events := k.Do(interrupt(""))
	mustEqual(t, "events", domaintest.Names(events), "MessageDelivered MessagesReturned RunFinished")
	mustEqual(t, "by control mail", domain.Word(events[0].GetMessageDelivered().GetKind())+" "+events[0].GetMessageDelivered().GetTopic(), "control cancel")
	mustBe(t, "which is not unread", unread(k.Member("lead")), []string{"msg1"})
	mustEqual(t, "held", k.Member("lead").Held, true)
	mustEqual(t, "exit", k.State.Verdict().Exit, 6)
	k.Refused("not-working", interrupt("lead"))
	k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_RetryMember{RetryMember: &rollcallv1.RetryMember{}}})
	mustEqual(t, "Lead", k.Member("lead").Status, isWorking)
	k.Refused("not-held", &rollcallv1.Command{Kind: &rollcallv1.Command_RetryMember{RetryMember: &rollcallv1.RetryMember{Member: "lead"}}})
	k.Refused("not-held", &rollcallv1.Command{Kind: &rollcallv1.Command_RetryMember{RetryMember: &rollcallv1.RetryMember{}}})
}

func TestCommandIDs(t *testing.T) {
	k := open(t)
	say := func(n int) *rollcallv1.Command {
		c := domaintest.Alert("", "x")
		c.Id = fmt.Sprintf("id-%d", n)
		return c
	}
	k.Do(pause())
	// One commit of many: the kit folds it and compares.
	var cmds []*rollcallv1.Command
	for n := range 10_005 {
		cmds = append(cmds, say(n))
	}
	k.Do(cmds...)
	mustEqual(t, "remembered", len(k.State.Commands), 10_000)
	if _, known := k.State.Effect("id-3"); known {
		t.Fatal("the oldest id is still known")
	}
	r, refusal := k.Try(say(10_004))
	if refusal != nil || !r.Duplicate || r.Subject != "msg10005" {
		t.Fatalf("the newest id again: %+v %v", r, refusal)
	}
}

// A turn that ends without completing its task keeps its words where those who
// are told of it can read them; a finished one has nothing to explain.
func TestLastWordsOfAnUndeliveredTurn(t *testing.T) {
	k := leading(t, "A")
	create(k, "one", "A")
	k.Acts("m1", "task_update", args{"task_id": "t1", "status": "in_progress"})
	k.Ends("m1", "I  could not\nfind the schema.")
	mustEqual(t, "kept", k.Member("m1").LastDetail, "I could not find the schema.")
	k.Ends("lead", "waiting")
	mustContain(t, "the report", strings.Join(texts(k, "lead"), "|"), "A ended its turn without completing it", "I could not find the schema.")
	k.Do(domaintest.Say("m1", "try again"))
	k.Acts("m1", "task_complete", args{"task_id": "t1", "result": "found"})
	k.Ends("m1", "done")
	mustEqual(t, "nothing to explain", k.Member("m1").LastDetail, "")
}

// What cannot be seen is no answer.
func TestInvisibleReply(t *testing.T) {
	k := said(t)
	mustEqual(t, "events", domaintest.Names(k.Ends("lead", "\u200b\ufeff \u2060")), "ModelReplied MessageDelivered MessagesConsumed ModelCallStarted")
}
