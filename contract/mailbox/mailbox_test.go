package mailbox_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/contract/mailbox"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const (
	lead   = rollcallv1.MemberRole_MEMBER_ROLE_LEAD
	member = rollcallv1.MemberRole_MEMBER_ROLE_MEMBER
)

func names(tools []*rollcallv1.ToolDefinition) []string {
	var all []string
	for _, t := range tools {
		all = append(all, t.GetName())
	}
	return all
}

func TestToolsByRole(t *testing.T) {
	all := []string{"send_message", "task_create", "task_update", "task_complete", "task_list", "task_get"}
	if got := names(mailbox.Contract{}.Tools(member)); !slices.Equal(got, all) {
		t.Errorf("a member has %v, want %v", got, all)
	}
	want := append([]string{"team_create", "team_member_add", "team_member_remove", "team_dissolve"}, all...)
	if got := names(mailbox.Contract{}.Tools(lead)); !slices.Equal(got, want) {
		t.Errorf("the Lead has %v, want %v", got, want)
	}
}

// Outsiders rely on the names of arguments: see the design's section on contracts.
func TestArguments(t *testing.T) {
	want := map[string][2][]string{ // required, optional
		"team_create":        {{"name"}, nil},
		"team_member_add":    {{"name", "initial_prompt"}, {"agent_type"}},
		"team_member_remove": {{"name"}, nil},
		"team_dissolve":      {nil, nil},
		"send_message":       {{"to", "text"}, {"wait_for_reply", "reply_to"}},
		"task_create":        {{"title", "description"}, {"owner", "dependencies"}},
		"task_update":        {{"task_id"}, {"owner", "status", "failure_reason", "title", "description", "dependencies"}},
		"task_complete":      {{"task_id", "result"}, {"paths"}},
		"task_list":          {nil, nil},
		"task_get":           {{"task_id"}, nil},
	}
	for _, tool := range (mailbox.Contract{}).Tools(lead) {
		var schema struct {
			Type                 string                     `json:"type"`
			Properties           map[string]json.RawMessage `json:"properties"`
			Required             []string                   `json:"required"`
			AdditionalProperties json.RawMessage            `json:"additionalProperties"`
		}
		if err := json.Unmarshal([]byte(tool.GetSchema()), &schema); err != nil {
			t.Fatalf("%s: %v", tool.GetName(), err)
		}
		w := want[tool.GetName()]
		slices.Sort(schema.Required)
		slices.Sort(w[0])
		if schema.Type != "object" || schema.AdditionalProperties == nil || !slices.Equal(schema.Required, w[0]) {
			t.Errorf("%s: %s", tool.GetName(), tool.GetSchema())
		}
		for _, name := range append(w[0], w[1]...) {
			if schema.Properties[name] == nil {
				t.Errorf("%s has no argument %s", tool.GetName(), name)
			}
		}
		if len(schema.Properties) != len(w[0])+len(w[1]) {
			t.Errorf("%s has more arguments than %v", tool.GetName(), w)
		}
		if tool.GetDescription() == "" || !tool.GetCoordination() {
			t.Errorf("%s is not described, or no coordination tool", tool.GetName())
		}
	}
}

func TestInstructions(t *testing.T) {
	for name, c := range contract.All() {
		for _, role := range []rollcallv1.MemberRole{lead, member} {
			if c.Instructions(role) == "" {
				t.Errorf("contract %s has no words for %v", name, role)
			}
		}
	}
}

// What a model is shown after a call is JSON that names what was made.
func TestOutputs(t *testing.T) {
	k := domaintest.Open(t, &domain.Rules{Contracts: contract.All()}, "mailbox")
	k.Do(domaintest.Say("", "go"))
	for _, c := range []struct {
		name string
		args domaintest.Args
		want string
	}{
		{"team_create", domaintest.Args{"name": "crew"}, `{"team":"team1","name":"crew"}`},
		{"team_member_add", domaintest.Args{"name": "Backend", "initial_prompt": "go"}, `{"member":"m1","name":"Backend","note":"it starts on its assignment now; its mail wakes you"}`},
		{"task_create", domaintest.Args{"title": "API", "description": "d", "owner": "Backend"}, `{"task_id":"t1","title":"API","status":"claimable","owner":"Backend"}`},
		{"task_create", domaintest.Args{"title": "page", "description": "d", "dependencies": []string{"t1"}}, `{"task_id":"t2","title":"page","status":"pending","dependencies":["t1"]}`},
		{"task_update", domaintest.Args{"task_id": "t1", "status": "failed", "failure_reason": "no"}, `{"task_id":"t1","title":"API","status":"failed","owner":"Backend","reason":"no"}`},
		{"task_list", domaintest.Args{}, `{"tasks":[{"task_id":"t1","title":"API","status":"failed","owner":"Backend","reason":"no"},{"task_id":"t2","title":"page","status":"blocked","dependencies":["t1"],"reason":"t1 failed"}]}`},
		{"task_get", domaintest.Args{"task_id": "t1"}, `{"task_id":"t1","title":"API","status":"failed","owner":"Backend","reason":"no","description":"d","creator":"Lead","failure":"no"}`},
		{"send_message", domaintest.Args{"to": "backend", "text": "x"}, ""},
		{"send_message", domaintest.Args{"to": "Backend", "text": "x"}, `{"message":"msg5","to":"Backend"}`},
		{"team_member_remove", domaintest.Args{"name": "Backend"}, `{"member":"m1","name":"Backend","note":"shut down; its open tasks are free again"}`},
		{"team_dissolve", domaintest.Args{}, `{"note":"the team is dissolved: its members are shut down and its open tasks cancelled"}`},
	} {
		if c.want == "" {
			k.Fails("lead", c.name, c.args)
		} else if got := k.Acts("lead", c.name, c.args); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestTaskListIsBounded(t *testing.T) {
	k := domaintest.Open(t, &domain.Rules{Contracts: contract.All(), Limits: domain.Limits{IdenticalCalls: domain.Off}}, "mailbox")
	k.Do(domaintest.Say("", "go"))
	title := "a title that is not short at all, so that three hundred of them do not fit into one tool output of a model"
	for range 5 {
		var calls []*rollcallv1.ToolCall
		for range 60 {
			calls = append(calls, domaintest.Call("task_create", domaintest.Args{"title": title, "description": "d"}))
		}
		k.Act("lead", calls...)
	}
	var out struct {
		Tasks   []json.RawMessage `json:"tasks"`
		Omitted int               `json:"omitted"`
	}
	text := k.Acts("lead", "task_list", domaintest.Args{})
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	if len(text) > 32<<10 || out.Omitted == 0 || out.Omitted+len(out.Tasks) != 300 {
		t.Fatalf("%d bytes, %d tasks, %d omitted", len(text), len(out.Tasks), out.Omitted)
	}
}
