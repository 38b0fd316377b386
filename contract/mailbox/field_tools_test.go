package mailbox_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/contract/mailbox"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// calling is a team of two in which both members' calls are open.
func calling(t *testing.T) *domaintest.Kit {
	t.Helper()
	k := domaintest.Team(t, domaintest.Open(t, &domain.Rules{Contracts: contract.All()}, "mailbox"), "Backend", "Frontend")
	k.Do(domaintest.Say("", "go"), domaintest.Say("m1", "go"))
	k.Acts("lead", "task_create", domaintest.Args{"title": "API", "description": "d"})
	return k
}

// refusedCalls lets a member make calls that cannot be made. Each gets an
// error with the words; nothing else happens, and the turn goes on. They are
// made in groups that a reply may have.
func refusedCalls(t *testing.T, member, code string, calls []*rollcallv1.ToolCall, words ...string) {
	t.Helper()
	for group := range slices.Chunk(calls, 50) {
		k := calling(t)
		run := k.Member(member).Run.ID
		events := k.Events(member, group...)
		for _, e := range events {
			switch domain.EventName(e) {
			case "ModelReplied", "ToolCallFinished", "ModelCallStarted":
			default:
				t.Fatalf("it came to %v", e)
			}
		}
		done := domaintest.Finished(events)
		if len(done) != len(group) {
			t.Fatalf("%d outcomes of %d calls", len(done), len(group))
		}
		for i, call := range group {
			text := done[i].GetOutput().GetText()
			if !done[i].GetError() || !strings.Contains(text, "["+code+"]") {
				t.Errorf("%s(%s) came to %q, want %s", call.GetName(), call.GetArguments(), text, code)
				continue
			}
			for _, word := range words {
				if !strings.Contains(text, word) {
					t.Errorf("%s(%s) came to %q, which lacks %q", call.GetName(), call.GetArguments(), text, word)
				}
			}
		}
		if m := k.Member(member); m.Run == nil || m.Run.ID != run || m.Run.Phase != domain.Calling {
			t.Fatalf("the turn does not go on: %+v", m.Run)
		}
	}
}

var roles = map[string]rollcallv1.MemberRole{"lead": lead, "m1": member}

// Elsewhere a call of a tool that does not exist ended the session, or its
// arguments were mended by guess. Here every name that is not exact, and
// arguments that are not what the tool takes, come back as an error that says
// what is valid, and the turn goes on.
func TestB45UnknownTool(t *testing.T) {
	for id, role := range roles {
		tools := mailbox.Contract{}.Tools(role)
		valid := names(tools)
		t.Run(id+"/names", func(t *testing.T) {
			bad := []string{"", " ", "tool", "functions", "null", "send message", "complete", "team_status", "team_sendMessage", "file_write2", "__proto__", "发送消息"}
			if role == member {
				bad = append(bad, "team_create", "team_member_add", "team_member_remove", "team_dissolve") // the Lead's alone
			}
			for _, name := range valid {
				bad = append(bad, strings.ToUpper(name), strings.ToUpper(name[:1])+name[1:], strings.ReplaceAll(name, "_", "-"), strings.ReplaceAll(name, "_", ""),
					strings.ReplaceAll(name, "_", "."), "team_"+name, "functions."+name, "mcp__"+name, name+"()", name+" ", " "+name, name+"\u200b",
					strings.Replace(name, "_", "＿", 1), strings.Replace(name, "a", "а", 1)+" ", name+name)
			}
			var calls []*rollcallv1.ToolCall
			for _, name := range bad {
				if slices.Contains(valid, name) {
					t.Fatalf("%q is valid", name)
				}
				calls = append(calls, &rollcallv1.ToolCall{Name: name, Arguments: `{"to":"user","text":"x"}`})
			}
			refusedCalls(t, id, "tool-unknown", calls, valid...)
		})
		for _, tool := range tools {
			t.Run(id+"/"+tool.GetName(), func(t *testing.T) {
				properties, required := argumentsOf(t, tool)
				refusedCalls(t, id, "argument-invalid", badArguments(t, tool.GetName(), properties, required), slices.Sorted(maps.Keys(properties))...)
			})
		}
	}
}

// argumentsOf reads the types of a tool's arguments, and which it must have.
func argumentsOf(t *testing.T, tool *rollcallv1.ToolDefinition) (types map[string]string, required []string) {
	t.Helper()
	var schema struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if err := json.Unmarshal([]byte(tool.GetSchema()), &schema); err != nil {
		t.Fatal(err)
	}
	types = map[string]string{}
	for name, p := range schema.Properties {
		types[name] = p.Type
	}
	return types, schema.Required
}

// wrong are values that are not of a type.
var wrong = map[string][]any{
	"string":  {1, true, []string{"x"}, domaintest.Args{"text": "x"}},
	"boolean": {1, "maybe", []bool{true}, domaintest.Args{}},
	"array":   {1, true, []int{1}, []any{nil}, domaintest.Args{"0": "t1"}},
}

var right = map[string]any{"string": "x", "boolean": true, "array": []string{"t1"}}

func badArguments(t *testing.T, name string, types map[string]string, required []string) (calls []*rollcallv1.ToolCall) {
	t.Helper()
	raw := func(arguments string) { calls = append(calls, &rollcallv1.ToolCall{Name: name, Arguments: arguments}) }
	for _, text := range []string{"{", "}", "{,}", `{"a":}`, `{"a":1`, "[]", `["x"]`, "null", "1", "true", `"x"`, "{} {}", "{}}", "{'a':1}", "{a:1}", `{"a":1,}`, "```json\n{}\n```", "x", `{"a":NaN}`, "\u200b{}", "<args/>"} {
		raw(text)
	}
	full := domaintest.Args{}
	for arg, of := range types {
		if right[of] == nil {
			t.Fatalf("argument %s of %s is a %q, which this test does not know", arg, name, of)
		}
		full[arg] = right[of]
	}
	with := func(change func(domaintest.Args)) {
		a := maps.Clone(full)
		change(a)
		calls = append(calls, domaintest.Call(name, a))
	}
	with(func(a domaintest.Args) { a["colour"] = "red" })
	for _, arg := range required {
		with(func(a domaintest.Args) { delete(a, arg) })
		with(func(a domaintest.Args) { a[arg] = nil })
	}
	for arg, of := range types {
		with(func(a domaintest.Args) { delete(a, arg); a[strings.ToUpper(arg)] = full[arg] })
		with(func(a domaintest.Args) { delete(a, arg); a[arg+" "] = full[arg] })
		for _, value := range wrong[of] {
			with(func(a domaintest.Args) { a[arg] = value })
		}
	}
	return calls
}
