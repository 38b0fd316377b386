package api_test

import (
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// names are the tools of a list, each with where it comes from.
func names(tools []api.AssembledTool) string {
	var all []string
	for _, t := range tools {
		all = append(all, t.Name+" "+strings.TrimSpace(t.Source+" "+t.From))
	}
	return strings.Join(all, ", ")
}

// Whoever may read a conversation reads what a member can call, over NATS as on
// the command line.
func TestToolsetOfAMember(t *testing.T) {
	w := newWorld(t)
	tools := func(names ...string) (all []*rollcallv1.ToolDefinition) {
		for _, n := range names {
			all = append(all, &rollcallv1.ToolDefinition{Name: n, Schema: `{"type":"object"}`, Idempotent: n != "deploy"})
		}
		return all
	}
	w.rules.Tools, w.rules.Origins = tools("file_read", "deploy"), map[string]string{"file_read": "files"}
	a, err := w.client.Open(w.context(), &rollcallv1.OpenConversation{
		Name: "harbor", Contract: "dag", LeadAgent: "reader", Objective: &rollcallv1.Body{Text: "go on"},
		Agents: []*rollcallv1.AgentDefinition{{Name: "reader", Tools: []string{"file_read"}, Approve: []string{"file_read"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	shown := func(r api.ReadRequest) *api.Toolset {
		t.Helper()
		d, err := w.client.Show(w.context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return d.Toolset
	}
	got := shown(api.ReadRequest{Conversation: "harbor", Member: "lead"})
	want := "team_create contract dag, team_status contract dag, team_send_message contract dag, team_replan contract dag, team_dissolve contract dag, file_read node files"
	if got.Node != "n-test" || got.Run != "r1" || names(got.Next) != want || names(got.Pinned) != want || !got.SameTools() {
		t.Errorf("the Lead has %s, its run %s: %+v", names(got.Next), names(got.Pinned), got)
	}
	if left := names(got.LeftOut); left != "complete contract dag, deploy node" {
		t.Errorf("left out is %s", left)
	}
	if last := got.Next[len(got.Next)-1]; !last.NeedsApproval || last.Once || last.Why != "agent type reader names it" || !got.Next[1].Once {
		t.Errorf("file_read is %+v, team_status %+v", last, got.Next[1])
	}

	// Another node has other tools: the run keeps its own.
	w.rules.Tools = tools("search")
	got = shown(api.ReadRequest{Conversation: "harbor", Member: "lead"})
	if strings.Contains(names(got.Next), "file_read") || names(got.Pinned) != want || got.SameTools() {
		t.Errorf("next are %s, the run has %s", names(got.Next), names(got.Pinned))
	}
	if left := names(got.LeftOut); left != "complete contract dag, search node, file_read node" {
		t.Errorf("left out is %s", left)
	}

	// The past has no next run; without a member there is nothing to tell.
	if past := shown(api.ReadRequest{Conversation: "harbor", Member: "lead", At: a.Version}); len(past.Next) > 0 || names(past.Pinned) != want {
		t.Errorf("the past: %+v", past)
	}
	if all := shown(api.ReadRequest{Conversation: "harbor"}); all != nil {
		t.Errorf("of nobody: %+v", all)
	}
	answer, refusal := w.ask("show", `{"conversation":"harbor","member":"Lead"}`)
	if refusal != nil || answer["toolset"].(map[string]any)["node"] != "n-test" {
		t.Errorf("over NATS: %v, %v", answer["toolset"], refusal)
	}
}
