package domain_test

import (
	"maps"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// crews is a conversation with a history: m1 Gone went with its team, crew 1;
// m4 Left was removed from crew 2, where m2 researcher and m3 Zoë are. All rest.
func crews(t *testing.T) *domaintest.Kit {
	t.Helper()
	k := open(t)
	add := func(names ...string) (calls []*rollcallv1.ToolCall) {
		for _, name := range names {
			calls = append(calls, domaintest.Call("team_member_add", args{"name": name, "initial_prompt": "be " + name}))
		}
		return calls
	}
	k.Do(domaintest.Say("", "a first team"))
	k.Act("lead", append([]*rollcallv1.ToolCall{domaintest.Call("team_create", args{"name": "crew 1"})}, add("Gone")...)...)
	k.Ends("m1", "here")
	k.Acts("lead", "team_dissolve", args{})
	k.Act("lead", append([]*rollcallv1.ToolCall{domaintest.Call("team_create", args{"name": "crew 2"})}, add("researcher", "Zoë", "Left")...)...)
	k.Ends("m2", "here")
	k.Ends("m3", "here")
	k.Ends("m4", "here")
	k.Acts("lead", "team_member_remove", args{"name": "Left"})
	k.Rests("lead")
	k.Rests("lead")
	return k
}

// nobody are names that mean nobody in crews, however near they come.
var nobody = []string{
	"Researcher", "RESEARCHER", "researcher2", "research", "resear cher", "research er", "researcher.", "@researcher", "researcher,Zoë",
	"ｒｅｓｅａｒｃｈｅｒ", "rеsearcher" /* a Cyrillic letter */, "research\u200ber", "researcher\u200b", "\ufeffresearcher", "re\u00adsearcher",
	"Zoe", "zoë", "ZOË", "Gone", "Left", "crew 1", "crew 2", "team2", "m2", "m1", "m9", "t1",
	"", " ", "\u200b", "*", "all", "everyone", "leader", "lead ead", "ｌｅａｄ", "l\u200bead", "ｕｓｅｒ", "users", "framework", "null", "researcher/notes.txt",
}

// somebody are the spellings that do mean somebody, and whom.
var somebody = map[string]string{
	"researcher": "m2", " researcher ": "m2", "researcher\t": "m2", "researcher\n": "m2",
	"Zoë": "m3", "Zoe\u0308": "m3", " Zoe\u0308": "m3",
	"lead": "lead", "Lead": "lead", "LEAD ": "lead",
	"user": "user", "User": "user", " USER": "user", "operator": "user",
}

// Elsewhere a message to a name that nobody has succeeded, and a mailbox that
// nobody reads was made for it. Here every door refuses such a name and says
// whom one can write to; nothing is delivered and nobody comes into being.
func TestB01UnknownRecipient(t *testing.T) {
	atWork := func(t *testing.T) *domaintest.Kit {
		k := crews(t)
		k.Do(domaintest.Say("", "go on"), domaintest.Say("m2", "go on"))
		return k
	}
	const members = 5
	untouched := func(t *testing.T, k *domaintest.Kit, events []*rollcallv1.Event) {
		t.Helper()
		for _, e := range events {
			switch domain.EventName(e) {
			case "ModelReplied", "ToolCallFinished", "ModelCallStarted":
			default:
				t.Fatalf("it came to %v", e)
			}
		}
		mustEqual(t, "members", len(k.State.Members), members)
	}
	for _, door := range []struct {
		name, member, tool string
		more               args
		valid              []string
	}{
		{"the Lead writes", "lead", "send_message", args{"text": "hello"}, []string{"researcher", "Zoë", "user"}},
		{"a member writes", "m2", "send_message", args{"text": "hello"}, []string{"Lead", "Zoë", "user"}},
		{"a member asks", "m2", "send_message", args{"text": "hello?", "wait_for_reply": true}, []string{"Lead", "Zoë", "user"}},
		{"a member answers", "m2", "send_message", args{"text": "as you asked", "reply_to": "msg1"}, []string{"Lead", "Zoë", "user"}},
		{"the Lead removes", "lead", "team_member_remove", nil, []string{"researcher", "Zoë"}},
	} {
		t.Run(door.name, func(t *testing.T) {
			k := atWork(t)
			var calls []*rollcallv1.ToolCall
			for _, name := range nobody {
				a := args{"to": name}
				if door.tool == "team_member_remove" {
					a = args{"name": name}
				}
				maps.Copy(a, door.more)
				calls = append(calls, domaintest.Call(door.tool, a))
			}
			events := k.Events(door.member, calls...)
			untouched(t, k, events)
			done := domaintest.Finished(events)
			mustEqual(t, "outcomes", len(done), len(nobody))
			for i, name := range nobody {
				if !done[i].GetError() {
					t.Fatalf("%q came to %v", name, done[i])
				}
				mustContain(t, name, done[i].GetOutput().GetText(), door.valid...)
			}
		})
	}
	t.Run("a task's owner that was shut down", func(t *testing.T) {
		k := atWork(t)
		for _, name := range []string{"Gone", "Left", " Left "} {
			events := k.Events("lead", domaintest.Call("task_create", args{"title": "x", "description": "x", "owner": name}))
			mustContain(t, "refusal", domaintest.Finished(events)[0].GetOutput().GetText(), "[member-shut-down]", "researcher", "Zoë", "user")
			untouched(t, k, events)
		}
	})
	t.Run("the operator's ids", func(t *testing.T) {
		k := atWork(t)
		for _, id := range []string{"m9", "m1", "m4", "M2", " m2", "m2 ", "m02", "m2.x", "researcher", "Zoë", "Lead", "user", "*", ">", "_", "m-1", "m18446744073709551618"} {
			for what, cmd := range map[string]*rollcallv1.Command{
				"word": domaintest.Say(id, "hello"), "alert": domaintest.Alert(id, "hello"), "interrupt": interrupt(id),
				"retry": {Kind: &rollcallv1.Command_RetryMember{RetryMember: &rollcallv1.RetryMember{Member: id}}},
			} {
				_, refusal := k.Try(cmd) // which also holds that nothing changed
				if refusal == nil || refusal.Code != "member-not-found" && refusal.Code != "member-shut-down" {
					t.Fatalf("%s to %q: %v", what, id, refusal)
				}
				mustContain(t, what+" to "+id, refusal.Try, "lead (Lead)", "m2 (researcher)", "m3 (Zoë)")
			}
		}
	})
	t.Run("who is meant is found", func(t *testing.T) {
		k := atWork(t)
		for name, id := range somebody {
			sender := "lead"
			if id == "lead" {
				sender = "m2"
			}
			events := k.Events(sender, domaintest.Call("send_message", args{"to": name, "text": "hello"}))
			mail := domaintest.Delivered(events, "")
			if len(mail) != 1 || mail[0].GetTo() != id {
				t.Fatalf("%q: %v", name, mail)
			}
		}
		mustEqual(t, "members", len(k.State.Members), members)
	})
}

// Any string may own a task. One that names nobody wakes nobody, makes nobody,
// and the owner is shown as it was written, so that a slip can be seen.
func TestB01OwnerThatIsNobody(t *testing.T) {
	t.Run("b01-unknown-recipient", func(t *testing.T) {
		k := crews(t)
		k.Do(domaintest.Say("", "go on"))
		members := len(k.State.Members)
		for _, name := range []string{"Researcher", "researcher\u200b", "ｒｅｓｅａｒｃｈｅｒ", "crew 2", "m2"} {
			events := k.Events("lead", domaintest.Call("task_create", args{"title": "x", "description": "x", "owner": name}))
			done := domaintest.Finished(events)
			mustEqual(t, "error", done[0].GetError(), false)
			mustContain(t, "output", done[0].GetOutput().GetText(), `"owner":"`+domain.Name(name)+`"`)
			mustEqual(t, "mail", len(domaintest.Delivered(events, "")), 0)
			mustEqual(t, "members", len(k.State.Members), members)
		}
	})
}
