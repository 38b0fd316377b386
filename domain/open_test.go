package domain_test

import (
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func opening(change func(*rollcallv1.OpenConversation)) *rollcallv1.Command {
	o := &rollcallv1.OpenConversation{Contract: "mailbox"}
	change(o)
	return &rollcallv1.Command{Kind: &rollcallv1.Command_OpenConversation{OpenConversation: o}}
}

func TestOpen(t *testing.T) {
	k := domaintest.New(t, rules())
	k.Refused("conversation-not-found", domaintest.Say("", "hello"))
	cmd := opening(func(o *rollcallv1.OpenConversation) {
		o.Name = " Cafe\u0301  noir "
		o.Agents = []*rollcallv1.AgentDefinition{{Name: "reviewer", Description: "reads", Tools: []string{"file_write"}}}
		o.Members = []*rollcallv1.MemberSpec{{Name: "Ada", AgentType: "reviewer", Brief: "read it"}, {Name: "Bob"}}
		o.Objective = domaintest.Text("review this")
		o.Files = []*rollcallv1.FileChange{domaintest.File("in/./a.txt", "abc")}
	})
	cmd.Id = "open-1"
	events := k.Do(cmd)
	mustEqual(t, "name", k.State.Name, "Café noir")
	mustEqual(t, "members", len(k.State.Members), 3)
	mustEqual(t, "Ada works on her brief", k.Member("m1").Status, isWorking)
	mustEqual(t, "Bob has none and rests", k.Member("m2").Status, isIdle)
	mustEqual(t, "the Lead works on the objective", k.Member("lead").Status, isWorking)
	mustEqual(t, "file", k.Member("lead").Files["in/a.txt"].SHA256, "abc")
	mustEqual(t, "model calls", domaintest.Count(events, "ModelCallStarted"), 2)
	if k.State.Agents["general"] == nil {
		t.Fatal("there is no general agent type")
	}
	// Ada has the tools that her agent type names, and those of the contract.
	bound := k.State.Bindings[k.Member("m1").Run.Agent]
	var names []string
	for _, tool := range bound.Tools {
		names = append(names, tool.GetName())
	}
	mustBe(t, "tools", names, []string{"send_message", "task_create", "task_update", "task_complete", "task_list", "task_get", "file_write"})

	again, refusal := k.Try(cmd)
	if refusal != nil || !again.Duplicate || again.Subject != domaintest.Key.Conversation {
		t.Fatalf("the same opening again: %+v %v", again, refusal)
	}
	k.Refused("conversation-exists", opening(func(*rollcallv1.OpenConversation) {}))
}

func TestOpenNone(t *testing.T) {
	k := domaintest.New(t, rules())
	k.Refused("contract-unfit", opening(func(o *rollcallv1.OpenConversation) {
		o.Contract, o.Members = "none", []*rollcallv1.MemberSpec{{Name: "A"}}
	}))
	k.Do(opening(func(o *rollcallv1.OpenConversation) { o.Contract, o.Objective = "none", domaintest.Text("hello") }))
	var names []string
	for _, tool := range k.State.Bindings[k.Member("lead").Run.Agent].Tools {
		names = append(names, tool.GetName())
	}
	mustBe(t, "tools", names, []string{"deploy", "file_write"})
	mustContain(t, "refusal", k.Fails("lead", "task_list", args{}), "[tool-unknown]", "deploy")
	plan, _ := k.State.StepPlan("lead")
	mustEqual(t, "situation", plan.Situation, "")
	k.Ends("lead", "hello")
	mustEqual(t, "exit", k.State.Verdict().Exit, 0)
}

func TestOpenRefusals(t *testing.T) {
	for code, changes := range map[string][]func(*rollcallv1.OpenConversation){
		"contract-unknown": {func(o *rollcallv1.OpenConversation) { o.Contract = "round-robin" }, func(o *rollcallv1.OpenConversation) { o.Contract = "" }},
		"contract-unfit": {func(o *rollcallv1.OpenConversation) {
			o.Members = []*rollcallv1.MemberSpec{{Name: "A", DependsOn: []string{"B"}}}
		}},
		"conversation-invalid": {func(o *rollcallv1.OpenConversation) { o.Conversation = "another" }, func(o *rollcallv1.OpenConversation) { o.Tenant = "other" }},
		"agent-type-unknown": {
			func(o *rollcallv1.OpenConversation) { o.LeadAgent = "expert" },
			func(o *rollcallv1.OpenConversation) {
				o.Members = []*rollcallv1.MemberSpec{{Name: "A", AgentType: "x"}}
			},
		},
		"agent-type-invalid": {
			func(o *rollcallv1.OpenConversation) { o.Agents = []*rollcallv1.AgentDefinition{{Name: ""}} },
			func(o *rollcallv1.OpenConversation) {
				o.Agents = []*rollcallv1.AgentDefinition{{Name: "a"}, {Name: "a"}}
			},
		},
		"tool-unknown": {func(o *rollcallv1.OpenConversation) {
			o.Agents = []*rollcallv1.AgentDefinition{{Name: "a", Tools: []string{"fly"}}}
		}},
		"name-taken": {func(o *rollcallv1.OpenConversation) { o.Members = []*rollcallv1.MemberSpec{{Name: "A"}, {Name: " A "}} }},
		"name-reserved": {func(o *rollcallv1.OpenConversation) {
			o.Members = []*rollcallv1.MemberSpec{{Name: "Operator"}}
		}},
		"text-too-long": {
			func(o *rollcallv1.OpenConversation) { o.Name = strings.Repeat("x", 201) },
			func(o *rollcallv1.OpenConversation) {
				o.Agents = []*rollcallv1.AgentDefinition{{Name: "a", Prompt: strings.Repeat("x", 600<<10)}}
			},
			func(o *rollcallv1.OpenConversation) { o.Objective = domaintest.Text(strings.Repeat("x", 65<<10)) },
		},
		"text-invalid":  {func(o *rollcallv1.OpenConversation) { o.Objective = domaintest.Text("a\x00b") }},
		"path-invalid":  {func(o *rollcallv1.OpenConversation) { o.Files = []*rollcallv1.FileChange{domaintest.File("../a", "x")} }},
		"limit-reached": {func(o *rollcallv1.OpenConversation) { o.Members = make([]*rollcallv1.MemberSpec, 64) }},
	} {
		for _, change := range changes {
			domaintest.New(t, rules()).Refused(code, opening(change))
		}
	}
}

func TestMessagesFromOutside(t *testing.T) {
	k := open(t)
	for code, p := range map[string]*rollcallv1.PostMessage{
		"text-empty":        {Body: domaintest.Text(" ")},
		"text-invalid":      {Body: domaintest.Text("a\xff")},
		"text-too-long":     {Body: &rollcallv1.Body{Blob: &rollcallv1.Blob{Sha256: "a", Size: 600 << 10}}},
		"kind-refused":      {Body: domaintest.Text("x"), Kind: rollcallv1.MailKind_MAIL_KIND_TEAM_REPORT},
		"message-not-found": {Body: domaintest.Text("x"), ReplyTo: "msg7"},
		"member-not-found":  {Body: domaintest.Text("x"), To: "Lead"},
	} {
		k.Refused(code, &rollcallv1.Command{Kind: &rollcallv1.Command_PostMessage{PostMessage: p}})
	}
	k.Refused("command-unknown", &rollcallv1.Command{})
	events := k.Do(domaintest.Alert("", "it is nine o'clock"))
	mustEqual(t, "from", domaintest.Delivered(events, "lead")[0].GetFrom(), "framework")
	mustEqual(t, "an alert interrupts nobody", domaintest.Names(k.Do(domaintest.Alert("", "it is ten"))), "MessageDelivered")
}

func TestNames(t *testing.T) {
	for _, name := range []string{
		"Lead", "lead", "LEAD", " lead ", "L e a d", "Lеad", "ｌｅａｄ", "Ｌｅａｄ", "l\u200deаd", "Iead", "1ead", "𝓛ead", "Léad", "le-ad", "lead.",
		"user", "USER", "us\u0435r", "operator", "0perator", "Operatοr", "framework", "frаmework", "FRAMEW0RK", "m1", "m12",
	} {
		if code := nameRefusal(t, name); code != "name-reserved" && code != "name-invalid" {
			t.Errorf("%q: %q, want a refusal", name, code)
		}
	}
	for _, name := range []string{"", "  ", "a/b", `a\b`, "a\nb", "a\tb", "a\u202eb", "a\u2028b", "a\u0000b", "a\u200bb", strings.Repeat("ä", 65), "a\xffb", ".", "..", strings.Repeat("😀", 64)} {
		if code := nameRefusal(t, name); code != "name-invalid" {
			t.Errorf("%q: %q, want name-invalid", name, code)
		}
	}
	for _, name := range []string{"Backend", "后端", "Zoë", "محمد", "नेहा", "Leader", "user experience", "M1", "m0x", "👩‍💻", strings.Repeat("ä", 64), "a.b-c_d", "Leda", "...", strings.Repeat("😀", 63)} {
		if code := nameRefusal(t, name); code != "" {
			t.Errorf("%q: refused with %s", name, code)
		}
	}
	t.Run("equal after NFC", func(t *testing.T) {
		k := leading(t, "Zoë")
		mustContain(t, "refusal", k.Fails("lead", "team_member_add", args{"name": "Zoe\u0308", "initial_prompt": "x"}), "[name-taken]")
		k.Acts("lead", "send_message", args{"to": " Zoe\u0308", "text": "x"})
	})
}

// nameRefusal is the code with which a member of that name is refused.
func nameRefusal(t *testing.T, name string) string {
	t.Helper()
	k := domaintest.New(t, rules())
	_, refusal := k.Try(opening(func(o *rollcallv1.OpenConversation) { o.Members = []*rollcallv1.MemberSpec{{Name: name}} }))
	if refusal == nil {
		return ""
	}
	return refusal.Code
}

func TestMemberLimits(t *testing.T) {
	r := rules()
	r.Limits = domain.Limits{Members: 3, Tasks: 2}
	k := domaintest.Open(t, r, "mailbox")
	k.Do(domaintest.Say("", "do it"))
	mustContain(t, "without a team", k.Fails("lead", "team_member_add", args{"name": "A", "initial_prompt": "x"}), "[team-not-found]")
	k.Acts("lead", "team_create", args{"name": "crew"})
	mustContain(t, "unknown type", k.Fails("lead", "team_member_add", args{"name": "A", "initial_prompt": "x", "agent_type": "wizard"}), "[agent-type-unknown]", "general")
	mustContain(t, "empty brief", k.Fails("lead", "team_member_add", args{"name": "A", "initial_prompt": " "}), "[text-empty]")
	k.Acts("lead", "team_member_add", args{"name": "A", "initial_prompt": "x"})
	k.Acts("lead", "team_member_add", args{"name": "B", "initial_prompt": "x"})
	mustContain(t, "a third", k.Fails("lead", "team_member_add", args{"name": "C", "initial_prompt": "x"}), "[limit-reached]")
	k.Acts("lead", "team_member_remove", args{"name": "A"})
	k.Acts("lead", "team_member_add", args{"name": "C", "initial_prompt": "x"})
	create(k, "one", "")
	create(k, "two", "")
	mustContain(t, "a third", k.Fails("lead", "task_create", args{"title": "x", "description": "x"}), "[limit-reached]")
}
