package domain_test

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

func external(names ...string) []*rollcallv1.ToolDefinition {
	var tools []*rollcallv1.ToolDefinition
	for _, name := range names {
		tools = append(tools, &rollcallv1.ToolDefinition{Name: name, Schema: `{"type":"object"}`})
	}
	return tools
}

// told is a tool in words.
func told(t domain.AssembledTool) string {
	left := ""
	if t.Left {
		left = "left out "
	}
	return left + strings.TrimSpace(t.Source+" "+t.From) + ": " + t.Why
}

func toolset(k *domaintest.Kit, r *domain.Rules, member string) map[string]string {
	all := map[string]string{}
	for _, t := range k.State.Toolset(r, k.Member(member)) {
		all[t.Definition.GetName()] = told(t)
	}
	return all
}

func TestToolsetSaysWhereEachToolComesFrom(t *testing.T) {
	r := &domain.Rules{
		Contracts: contract.All(), Tools: external("file_read", "deploy", "mail_read", "send_message"),
		Origins: map[string]string{"file_read": "files", "mail_read": "mail"},
	}
	k := domaintest.New(t, r)
	k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_OpenConversation{OpenConversation: &rollcallv1.OpenConversation{
		Contract: "dag", LeadAgent: "reader", Objective: domaintest.Text("go"),
		Agents: []*rollcallv1.AgentDefinition{{Name: "reader", Tools: []string{"file_read"}, Approve: []string{"team_dissolve"}}},
	}}})
	k.Acts("lead", "team_create", args{"goal": "g", "members": []args{{"name": "Ana", "brief": "work"}}})
	lead, ana := toolset(k, r, "lead"), toolset(k, r, "m1")
	for name, want := range map[string][2]string{
		"team_create":  {"contract dag: the contract gives it to the role lead", "left out contract dag: the contract gives it to the role lead only"},
		"complete":     {"left out contract dag: the contract gives it to the role member only", "contract dag: the contract gives it to the role member"},
		"file_read":    {"node files: agent type reader names it", "node files: agent type general names no tools, so it has all of the node"},
		"deploy":       {"left out node: agent type reader names other tools", "node: agent type general names no tools, so it has all of the node"},
		"mail_read":    {"node mail: every member has it", "node mail: every member has it"},
		"send_message": {"left out node: the contract mailbox has a tool of that name", "left out node: the contract mailbox has a tool of that name"},
	} {
		if got := [2]string{lead[name], ana[name]}; got != want {
			t.Errorf("%s:\n got %q\nwant %q", name, got, want)
		}
	}
	for _, tool := range k.State.Toolset(r, k.Member("lead")) {
		if tool.Definition.GetNeedsApproval() != (tool.Definition.GetName() == "team_dissolve") || tool.Definition.GetOnce() != (tool.Definition.GetName() == "team_status") {
			t.Errorf("%v", tool.Definition)
		}
	}
}

// What is told of the next run is what the next run is bound to: one decides
// and the other repeats it.
func TestToolsetIsWhatTheNextRunHas(t *testing.T) {
	for _, name := range []string{"dag", "mailbox", "none"} {
		r := rules()
		k := domaintest.New(t, r)
		k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_OpenConversation{OpenConversation: &rollcallv1.OpenConversation{
			Contract: name, LeadAgent: "ops", Agents: []*rollcallv1.AgentDefinition{{Name: "ops", Tools: []string{"deploy"}}},
		}}})
		var want []string
		for _, tool := range k.State.Toolset(r, k.Member("lead")) {
			if !tool.Left {
				want = append(want, tool.Definition.GetName())
			}
		}
		k.Do(domaintest.Say("", "go"))
		var got []string
		for _, tool := range k.State.Bindings[k.Member("lead").Run.Agent].Tools {
			got = append(got, tool.GetName())
		}
		if !slices.Equal(got, want) || slices.Contains(got, "file_write") {
			t.Errorf("%s: the run has %v, told was %v", name, got, want)
		}
		if name == "none" && slices.ContainsFunc(got, func(n string) bool { return strings.HasPrefix(n, "team_") || strings.HasPrefix(n, "task_") }) {
			t.Errorf("without a team there are %v", got)
		}
	}
}

// A node that was started anew with other tools, another model and other
// prompts changes the next run, and never one that is open.
func TestAnOpenRunKeepsItsTools(t *testing.T) {
	before := rules()
	k := domaintest.Open(t, before, "mailbox")
	k.Do(domaintest.Say("", "go"))
	pinned := k.Member("lead").Run.Agent
	names := func(all []domain.AssembledTool) string {
		var out []string
		for _, t := range all {
			if t.Source == domain.FromNode && !t.Left {
				out = append(out, fmt.Sprint(t.Definition.GetName(), ":", t.From))
			}
		}
		return strings.Join(out, " ")
	}
	after := &domain.Rules{Contracts: contract.All(), DefaultModel: "other-model", Tools: external("file_write", "search"), Origins: map[string]string{"file_write": "files"}}
	*before = *after // the kit's node
	k.Restart()
	k.Do(k.Reply("lead", "", domaintest.Call("task_list", args{})))
	mustEqual(t, "the open run", k.Member("lead").Run.Agent, pinned)
	mustEqual(t, "its model", k.State.Bindings[pinned].Model, "test-model")
	mustEqual(t, "its tools", names(k.State.Pinned(after, k.Member("lead"), pinned)), "deploy: file_write:files")
	mustEqual(t, "the next tools", names(k.State.Toolset(after, k.Member("lead"))), "file_write:files search:")
	k.Ends("lead", "done")
	k.Do(domaintest.Say("", "again"))
	next := k.Member("lead").Run.Agent
	mustEqual(t, "tools of the next run", names(k.State.Pinned(after, k.Member("lead"), next)), "file_write:files search:")
	mustEqual(t, "model of the next run", k.State.Bindings[next].Model, "other-model")
}

func TestToolsetOfWhoIsGone(t *testing.T) {
	r := rules()
	k := domaintest.Open(t, r, "mailbox")
	k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_PostMessage{PostMessage: &rollcallv1.PostMessage{Body: domaintest.Text("go")}}})
	k.Acts("lead", "team_create", args{"name": "crew"})
	k.Acts("lead", "team_member_add", args{"name": "Ana", "initial_prompt": "work"})
	k.Acts("lead", "team_member_remove", args{"name": "Ana"})
	if got := k.State.Toolset(r, k.Member("m1")); got != nil {
		t.Errorf("who was shut down will have %v", got)
	}
	if got := k.State.Pinned(r, k.Member("m1"), "unknown"); got != nil {
		t.Errorf("an unknown binding holds %v", got)
	}
}

func TestToolsetNamesToolsThatAreGone(t *testing.T) {
	r := rules()
	k := domaintest.New(t, r)
	k.Do(&rollcallv1.Command{Kind: &rollcallv1.Command_OpenConversation{OpenConversation: &rollcallv1.OpenConversation{
		Contract: "none", LeadAgent: "ops", Agents: []*rollcallv1.AgentDefinition{{Name: "ops", Tools: []string{"deploy"}}},
	}}})
	r.Tools = external("file_write")
	mustEqual(t, "deploy", toolset(k, r, "lead")["deploy"], "left out node: agent type ops names it, and this node does not have it")
}

// A subagent is an expert alone: what it has is the runtime's and the node's,
// nothing of the contract beside which it works.
func TestToolsetOfASubagent(t *testing.T) {
	t.Run("dag-expert-no-team-tools", func(t *testing.T) {
		k := caller(t, "dag")
		r := delegating()
		k.Do(k.Reply("lead", "", piece("count")))
		mustEqual(t, "task of the Lead", toolset(k, r, "lead")["task"], "runtime subagents: every lead has it")
		mustEqual(t, "complete of the subagent", toolset(k, r, "m1")["complete"], "runtime subagents: every subagent has it")
		for _, id := range []string{"lead", "m1"} {
			m := k.Member(id)
			pinned := k.State.Pinned(r, m, m.Run.Agent)
			for _, tool := range pinned {
				fromContract := strings.HasPrefix(tool.Definition.GetName(), "team_")
				if fromContract != (tool.Source == domain.FromContract) || fromContract && id == "m1" {
					t.Errorf("the run of %s has %s from %s %s", id, tool.Definition.GetName(), tool.Source, tool.From)
				}
			}
			if len(pinned) < 3 {
				t.Errorf("%s has %v", id, pinned)
			}
		}
	})
}
