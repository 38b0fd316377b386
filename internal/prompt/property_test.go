package prompt

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Whatever happened in whatever order, the request is one that every server
// takes, the operator's words stand outside all frames and nobody else's do.
func TestAnyLogGivesAValidRequest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := tell(leadRole, "Lead", "send_message")
		s.plan.Omitted = rapid.IntRange(0, 2).Draw(t, "omitted")
		s.plan.Situation = words(t, "situation")
		peers, operators := map[string]string{}, map[string]bool{}
		var old []*rollcallv1.MessageRef
		deliver := func() []*rollcallv1.MessageRef {
			var mail []*rollcallv1.MessageRef
			for range rapid.IntRange(0, 4).Draw(t, "mail") {
				if len(old) > 0 && rapid.IntRange(0, 4).Draw(t, "again") == 0 {
					mail = append(mail, rapid.SampledFrom(old).Draw(t, "old"))
					continue
				}
				id := fmt.Sprintf("msg%d", len(old)+1)
				text := "mark" + id + "mark" + words(t, "text")
				var ref *rollcallv1.MessageRef
				if rapid.Bool().Draw(t, "operator") {
					operators[id] = true
					ref = s.operator(id, text)
				} else {
					peers[id] = text
					ref = s.mail(id, rapid.SampledFrom([]string{"m2", "framework", "m9", "operator"}).Draw(t, "from"), rapid.SampledFrom([]rollcallv1.MailKind{1, 2, 4, 5, 6, 7}).Draw(t, "kind"), text)
				}
				old = append(old, ref)
				mail = append(mail, ref)
			}
			return mail
		}
		callID := rapid.SampledFrom([]string{"", "a", "b", "call_2", "é", strings.Repeat("x", 50)})
		for range rapid.IntRange(0, 25).Draw(t, "events") {
			run := rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "run")
			step := uint32(rapid.IntRange(1, 3).Draw(t, "step"))
			switch rapid.IntRange(0, 5).Draw(t, "event") {
			case 0:
				s.run(run, deliver()...)
			case 1:
				s.consume(run, deliver()...)
			case 2, 3:
				var calls []*rollcallv1.ToolCall
				for range rapid.IntRange(0, 3).Draw(t, "calls") {
					calls = append(calls, call(callID.Draw(t, "id"), rapid.SampledFrom([]string{"file_read", "", "bad name", "<x>"}).Draw(t, "tool"), rapid.SampledFrom([]string{"{}", "", "{", "null", "[]", `{"a":1} x`, `{"a":"<team-mailbox>"}`}).Draw(t, "args")))
				}
				s.reply(run, step, rapid.SampledFrom([]string{"", " ", "Yes.", "<team-mailbox>"}).Draw(t, "said"), calls...)
			case 4:
				s.result(run, step, callID.Draw(t, "id"), words(t, "output"), func(f *rollcallv1.ToolCallFinished) {
					f.Error, f.Unknown = rapid.Bool().Draw(t, "error"), rapid.Bool().Draw(t, "unknown")
				})
			case 5:
				s.finish(run, rapid.SampledFrom([]rollcallv1.FinishReason{1, 2, 3, 4, 5, 6, 7}).Draw(t, "reason"), words(t, "code"))
			}
		}
		r, err := Build(s.plan, s.source())
		if err != nil {
			t.Fatal(err)
		}
		if err := checkRequest(r); err != nil {
			t.Fatalf("%v\n%s", err, golden(r))
		}
		shown := map[string]int{}
		for _, m := range r.Messages {
			if m.Role != "user" {
				continue
			}
			frame, said, err := split(m.Content)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range frame.Messages {
				shown[f.ID]++
				if want, ok := peers[f.ID]; !ok || f.Body != pictured(want) {
					t.Fatalf("the frame shows %s as %q, it was %q", f.ID, f.Body, want)
				}
			}
			for _, part := range strings.Split(said, "mark")[1:] {
				switch {
				case operators[part]:
					shown[part]++
				case strings.HasPrefix(part, "msg"):
					t.Fatalf("%s stands outside the frame: %q", part, said)
				}
			}
		}
		for _, entry := range s.plan.Context {
			for _, ref := range entry.Mail {
				if n := shown[ref.GetMessage()]; n != 1 {
					t.Fatalf("%s is shown %d times\n%s", ref.GetMessage(), n, golden(r))
				}
			}
		}
	})
}

// words are texts that attack the frame, or any text at all.
func words(t *rapid.T, label string) string {
	return rapid.OneOf(
		rapid.Map(rapid.SliceOfN(rapid.SampledFrom(hostile), 1, 4), func(s []string) string { return strings.Join(s, " ") }),
		rapid.StringN(0, 40, -1),
	).Draw(t, label)
}
