package domain_test

import (
	"fmt"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// stubborn is a conversation of a Lead at work where identical calls are counted.
func stubborn(t *testing.T) *domaintest.Kit {
	t.Helper()
	r := rules()
	r.Limits = domain.Limits{}
	k := domaintest.Team(t, domaintest.Open(t, r, "mailbox"), "A")
	k.Do(domaintest.Say("", "go"))
	return k
}

// The same call, 20 times: five are made, five are refused, and the run ends.
func TestB39IdenticalCallsStop(t *testing.T) {
	for what, call := range map[string]*rollcallv1.ToolCall{
		"a look":     domaintest.Call("task_list", args{}),
		"a message":  domaintest.Call("send_message", args{"to": "user", "text": "please do it"}),
		"a task":     domaintest.Call("task_create", args{"title": "do it", "description": "d"}),
		"a refusal":  domaintest.Call("task_get", args{"task_id": "t99"}),
		"no tool":    domaintest.Call("nothing_such", args{}),
		"no words":   {Name: "task_list"},
		"no JSON":    {Name: "task_get", Arguments: "{"},
		"from afar":  domaintest.Call("deploy", args{"to": "A"}),
		"from afar2": domaintest.Call("file_write", args{"path": "a"}),
	} {
		for _, atOnce := range []bool{true, false} {
			t.Run(fmt.Sprint(what, ", at once ", atOnce), func(t *testing.T) {
				k := stubborn(t)
				n := len(k.All())
				var batch []*rollcallv1.ToolCall
				for range 20 {
					batch = append(batch, &rollcallv1.ToolCall{Name: call.GetName(), Arguments: call.GetArguments()})
				}
				for range 20 {
					if k.Member("lead").Run == nil {
						break
					}
					if k.Member("lead").Run.Phase == domain.InTool {
						k.Do(k.ToolDone("lead", "the same"))
						continue
					}
					if !atOnce {
						batch = batch[:1]
					}
					k.Do(k.Reply("lead", "", batch...))
				}
				made, refused := 0, 0
				for _, f := range domaintest.Finished(k.All()[n:]) {
					if domainCode(f) == "repeated-call" {
						refused++
					} else {
						made++
					}
				}
				mustEqual(t, "made", made, 5)
				mustEqual(t, "refused", refused, 5)
				m := k.Member("lead")
				mustEqual(t, "reason", m.LastReason, rollcallv1.FinishReason_FINISH_REASON_FAILED)
				mustEqual(t, "code", m.LastCode, "repeated-call")
				mustContain(t, "detail", m.LastDetail, call.GetName()+" 10 times")
				mustEqual(t, "hits", k.State.Guards["identical_calls"], 6)
			})
		}
	}
}

func domainCode(f *rollcallv1.ToolCallFinished) string {
	text := f.GetOutput().GetText()
	if f.GetError() && len(text) > 15 && text[len(text)-15:] == "[repeated-call]" {
		return "repeated-call"
	}
	return ""
}

// Whatever changes between them makes calls that look the same different ones.
func TestIdenticalCallsAfterAChange(t *testing.T) {
	t.Run("other arguments, however written", func(t *testing.T) {
		k := stubborn(t)
		for range 4 {
			k.Act("lead", &rollcallv1.ToolCall{Name: "task_get", Arguments: `{"task_id": "t1", "n":1}`})
		}
		k.Act("lead", &rollcallv1.ToolCall{Name: "task_get", Arguments: ` { "n":1,"task_id":"t1"}`})
		done := k.Act("lead", &rollcallv1.ToolCall{Name: "task_get", Arguments: `{"task_id": "t1", "n":1}`})
		mustEqual(t, "the sixth", domainCode(done[0]), "repeated-call")
		done = k.Act("lead", &rollcallv1.ToolCall{Name: "task_get", Arguments: `{"task_id": "t1", "n":2}`})
		mustEqual(t, "another", domainCode(done[0]), "")
	})
	t.Run("mail came", func(t *testing.T) {
		k := stubborn(t)
		for i := range 20 {
			if i%4 == 3 {
				k.Do(domaintest.SayMode("", "look again", rollcallv1.MailMode_MAIL_MODE_STEER))
			}
			mustEqual(t, "refused", domainCode(k.Act("lead", domaintest.Call("task_list", args{}))[0]), "")
		}
	})
	t.Run("it came to something else", func(t *testing.T) {
		k := stubborn(t)
		for i := range 20 {
			k.Act("lead", domaintest.Call("deploy", args{}))
			mustEqual(t, "phase", k.Member("lead").Run.Phase, domain.InTool)
			k.Do(k.ToolDone("lead", fmt.Sprintf("%d%% done", i)))
		}
	})
	t.Run("work between", func(t *testing.T) { // change a file, try, change it again, try
		k := stubborn(t)
		for i := range 12 {
			k.Do(k.Reply("lead", "", domaintest.Call("file_write", args{"path": "a", "text": i}), domaintest.Call("deploy", args{})))
			k.Do(k.ToolDone("lead", "written"))
			mustEqual(t, "phase", k.Member("lead").Run.Phase, domain.InTool)
			k.Do(k.ToolDone("lead", "it does not work"))
		}
	})
	t.Run("nothing but another call between", func(t *testing.T) { // A, B, A, B, ...
		k := stubborn(t)
		for range 40 {
			if k.Member("lead").Run == nil {
				break
			}
			k.Act("lead", domaintest.Call("task_list", args{}), domaintest.Call("task_get", args{"task_id": "t9"}))
		}
		mustEqual(t, "code", k.Member("lead").LastCode, "repeated-call")
	})
	t.Run("another run", func(t *testing.T) {
		k := stubborn(t)
		for range 8 {
			k.Acts("lead", "task_list", args{})
			k.Ends("lead", "done")
			k.Do(domaintest.Say("", "again"))
		}
	})
	t.Run("off", func(t *testing.T) {
		k := stubborn(t)
		k.Rules.Limits.IdenticalCalls = domain.Off
		for range 40 {
			k.Acts("lead", "task_list", args{})
		}
	})
}
