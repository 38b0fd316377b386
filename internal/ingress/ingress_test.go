package ingress

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

var stored = time.Unix(1_700_000_000, 42)

func envelope(to, contentType, data string) eventstore.Envelope {
	e := eventstore.Envelope{Key: domain.Key{Tenant: "main", Conversation: "c"}, To: to, Header: map[string]string{}, Data: []byte(data)}
	if contentType != "" {
		e.Header[eventstore.HeaderContentType] = contentType
	}
	return e
}

func said(to string, kind rollcallv1.MailKind, mode rollcallv1.MailMode, text, replyTo string) *rollcallv1.Command {
	return &rollcallv1.Command{Id: "in-7-1700000000000000042", Actor: "operator", Kind: &rollcallv1.Command_PostMessage{PostMessage: &rollcallv1.PostMessage{
		To: to, Kind: kind, Mode: mode, Body: &rollcallv1.Body{Text: text}, ReplyTo: replyTo,
	}}}
}

const (
	user  = rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE
	alert = rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT
)

func TestMessages(t *testing.T) {
	for name, c := range map[string]struct {
		to, contentType, data string
		want                  *rollcallv1.Command
	}{
		"plain":              {"lead", "", "Hello\n", said("lead", user, 0, "Hello\n", "")},
		"plain with type":    {"m1", "text/plain; charset=UTF-8", "語 😀", said("m1", user, 0, "語 😀", "")},
		"plain with a mark":  {"lead", "", "\uFEFFHello", said("lead", user, 0, "Hello", "")},
		"plain JSON is text": {"lead", "", `{"kind":"control"}`, said("lead", user, 0, `{"kind":"control"}`, "")},
		"json":               {"lead", "application/json", `{"text":"Hello"}`, said("lead", user, 0, "Hello", "")},
		"json in full":       {"m2", "Application/JSON; charset=utf-8", `{"kind":"user_message","text":"Hello","mode":"queue","reply_to":"msg3"}`, said("m2", user, rollcallv1.MailMode_MAIL_MODE_QUEUE, "Hello", "msg3")},
		"steer":              {"lead", "application/json", `{"text":"x","mode":"steer"}`, said("lead", user, rollcallv1.MailMode_MAIL_MODE_STEER, "x", "")},
		"interrupt":          {"lead", "application/json", `{"text":"x","mode":"interrupt"}`, said("lead", user, rollcallv1.MailMode_MAIL_MODE_INTERRUPT, "x", "")},
		"alert":              {"lead", "application/json", `{"kind":"framework_alert","text":"It is noon."}`, said("lead", alert, 0, "It is noon.", "")},
		"unknown fields":     {"lead", "application/json", `{"text":"x","new":{"text":"\ud800"},"Text":"y","KIND":"control"}`, said("lead", user, 0, "x", "")},
		"null is absent":     {"lead", "application/json", `{"text":"x","mode":null,"kind":null}`, said("lead", user, 0, "x", "")},
		"surrogate pair":     {"lead", "application/json", `{"text":"\ud83d\ude00 \\ud800 \\\\ \u00e9"}`, said("lead", user, 0, `😀 \ud800 \\ é`, "")},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decode(envelope(c.to, c.contentType, c.data), 7, stored)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got, protocmp.Transform()); d != "" {
				t.Error(d)
			}
		})
	}
}

func refuses(t *testing.T, e eventstore.Envelope, code, why string) {
	t.Helper()
	got, err := Decode(e, 7, stored)
	r, ok := errors.AsType[*domain.Refusal](err)
	if !ok || got != nil {
		t.Fatalf("Decode gave %v, %v, want a refusal %s", got, err, code)
	}
	if r.Code != code || !strings.Contains(r.Why, why) || r.What == "" || r.Try == "" || !utf8.ValidString(r.Error()) {
		t.Errorf("got %+v, want code %s and why %q", r, code, why)
	}
}

func TestRefusedMessages(t *testing.T) {
	const j = "application/json"
	for name, c := range map[string]struct{ to, contentType, data, code, why string }{
		"no member's id":       {"Backend", "", "x", "member-not-found", `"Backend"`},
		"id not UTF-8":         {"\xf5", "", "x", "member-not-found", "no id of a member"},
		"empty":                {"lead", "", "", "text-empty", "it is empty"},
		"blank":                {"lead", "", " \n\t", "text-empty", "it is empty"},
		"not UTF-8":            {"lead", "", "caf\xe9", "text-invalid", "not valid UTF-8"},
		"surrogate in UTF-8":   {"lead", "", "\xed\xa0\x80", "text-invalid", "not valid UTF-8"},
		"NUL":                  {"lead", "", "a\x00b", "text-invalid", "NUL"},
		"too long":             {"lead", "", strings.Repeat("x", eventstore.MaxInbox+1), "text-too-long", "524289 bytes"},
		"charset":              {"lead", "text/plain; charset=latin1", "x", "text-invalid", `charset is "latin1"`},
		"other type":           {"lead", "image/png", "x", "content-type-unknown", "image/png"},
		"broken type":          {"lead", "/;;=", "x", "content-type-unknown", "cannot be read"},
		"json broken":          {"lead", j, `{"text":`, "json-invalid", "no JSON object"},
		"json trailing":        {"lead", j, `{"text":"x"} y`, "json-invalid", "no JSON object"},
		"json array":           {"lead", j, `["x"]`, "json-invalid", "no JSON object"},
		"json null":            {"lead", j, `null`, "json-invalid", "it is null"},
		"json not UTF-8":       {"lead", j, "{\"text\":\"\xff\"}", "text-invalid", "not valid UTF-8"},
		"json NUL":             {"lead", j, `{"text":"a\u0000"}`, "text-invalid", "NUL"},
		"json no text":         {"lead", j, `{"kind":"user_message"}`, "text-empty", "it is empty"},
		"json Text":            {"lead", j, `{"Text":"x"}`, "text-empty", "it is empty"},
		"json number":          {"lead", j, `{"text":5}`, "json-invalid", `"text" is no string`},
		"json lone high":       {"lead", j, `{"text":"\ud800"}`, "text-invalid", "half of a character"},
		"json lone low":        {"lead", j, `{"text":"\\\udc00x"}`, "text-invalid", "half of a character"},
		"json two highs":       {"lead", j, `{"text":"\uD83D\uD83D\uDE00"}`, "text-invalid", "half of a character"},
		"json high then text":  {"lead", j, `{"text":"\uD83Dabcdefgh"}`, "text-invalid", "half of a character"},
		"json surrogate reply": {"lead", j, `{"text":"x","reply_to":"\udfff"}`, "text-invalid", `"reply_to"`},
		"kind text":            {"lead", j, `{"kind":"text","text":"x"}`, "kind-refused", `"text"`},
		"kind control":         {"lead", j, `{"kind":"control","text":"x"}`, "kind-refused", `"control"`},
		"kind in capitals":     {"lead", j, `{"kind":"USER_MESSAGE","text":"x"}`, "kind-refused", `"USER_MESSAGE"`},
		"kind too long":        {"lead", j, `{"kind":"` + strings.Repeat("語", 500) + `","text":"x"}`, "kind-refused", "…"},
		"mode":                 {"lead", j, `{"text":"x","mode":"now"}`, "mode-invalid", `"now"`},
		"mode of an alert":     {"lead", j, `{"kind":"framework_alert","text":"x","mode":"steer"}`, "mode-invalid", "only a user_message"},
		"text to _":            {"_", "", "x", "content-type-unknown", "text/plain"},
		"json to _":            {"_", j, `{"text":"x"}`, "content-type-unknown", j},
		"protobuf to a member": {"lead", "application/protobuf", "", "content-type-unknown", "not commands"},
		"no protobuf":          {"_", "application/protobuf", "\xff", "command-invalid", "no rollcall.v1.Command"},
		"empty command":        {"_", "application/protobuf", "", "command-unknown", "no kind"},
	} {
		t.Run(name, func(t *testing.T) { refuses(t, envelope(c.to, c.contentType, c.data), c.code, c.why) })
	}
}

func wire(t *testing.T, c *rollcallv1.Command) eventstore.Envelope {
	t.Helper()
	data, err := proto.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return envelope("_", "application/protobuf", string(data))
}

// Every kind of command is either an operator's, a timer's, or refused: a new
// one must choose.
func TestEveryCommandKindIsDecided(t *testing.T) {
	outside := map[string]string{
		"open_conversation": "operator", "post_message": "operator", "interrupt_member": "operator", "pause_conversation": "operator",
		"resume_conversation": "operator", "retry_member": "operator", "dissolve_team": "operator", "change_task": "operator",
		"raise_budget": "operator", "decide_approval": "operator", "write_files": "operator", "fire_timer": "framework",
		"record_reply": "", "record_model_failure": "", "record_tool_outcome": "", "fail_run": "", "resume_run": "", "suspend_run": "",
	}
	kinds := new(rollcallv1.Command).ProtoReflect().Descriptor().Oneofs().ByName("kind").Fields()
	for i := range kinds.Len() {
		field := kinds.Get(i)
		t.Run(string(field.Name()), func(t *testing.T) {
			actor, known := outside[string(field.Name())]
			if !known {
				t.Fatal("this kind is not in the table: may it come from outside?")
			}
			c := &rollcallv1.Command{Id: "k1"}
			c.ProtoReflect().Set(field, c.ProtoReflect().NewField(field))
			if p := c.GetPostMessage(); p != nil {
				p.Body = &rollcallv1.Body{Text: "x"}
			}
			if actor == "" {
				refuses(t, wire(t, c), "command-internal", "never comes from outside")
				return
			}
			got, err := Decode(wire(t, c), 7, stored)
			if err != nil {
				t.Fatal(err)
			}
			c.Actor = actor
			if d := cmp.Diff(c, got, protocmp.Transform()); d != "" {
				t.Error(d)
			}
			c.Actor = "m1"
			refuses(t, wire(t, c), "actor-refused", `"m1"`)
		})
	}
}

func TestCommandBodiesAreChecked(t *testing.T) {
	open := func(b *rollcallv1.Body) *rollcallv1.Command {
		return &rollcallv1.Command{Kind: &rollcallv1.Command_OpenConversation{OpenConversation: &rollcallv1.OpenConversation{Objective: b}}}
	}
	mail := func(b *rollcallv1.Body) *rollcallv1.Command {
		return &rollcallv1.Command{Kind: &rollcallv1.Command_PostMessage{PostMessage: &rollcallv1.PostMessage{Body: b}}}
	}
	refuses(t, wire(t, mail(nil)), "text-empty", "empty")
	refuses(t, wire(t, mail(&rollcallv1.Body{Text: "a\x00"})), "text-invalid", "NUL")
	refuses(t, wire(t, open(&rollcallv1.Body{Text: "a\x00"})), "text-invalid", "NUL")
	for _, c := range []*rollcallv1.Command{open(nil), open(&rollcallv1.Body{}), open(&rollcallv1.Body{Text: "x"}), mail(&rollcallv1.Body{Blob: &rollcallv1.Blob{Sha256: "00"}})} {
		if _, err := Decode(wire(t, c), 7, stored); err != nil {
			t.Errorf("%v: %v", c, err)
		}
	}
}

func TestIDs(t *testing.T) {
	id := func(header, own string) eventstore.Envelope {
		e := wire(t, &rollcallv1.Command{Id: own, Kind: &rollcallv1.Command_PauseConversation{PauseConversation: &rollcallv1.PauseConversation{}}})
		if header != "" {
			e.Header["rollcall-id"] = header
		}
		return e
	}
	for _, c := range []struct{ header, own, want string }{
		{"k1", "", "k1"},
		{"k1", "k2", "k1"},
		{"", "k2", "k2"},
		{"", "", "in-7-1700000000000000042"},
		{"päckchen-7", "", "päckchen-7"},
	} {
		if got, err := Decode(id(c.header, c.own), 7, stored); err != nil || got.GetId() != c.want {
			t.Errorf("header %q and own %q gave %q, %v, want %q", c.header, c.own, got.GetId(), err, c.want)
		}
	}
	for bad, why := range map[string]string{
		"in-8-1": "made by Rollcall", "timer-budget-5": "made by Rollcall", "a b": "not visible", "a\x00": "not visible", "\xff": "not visible",
		strings.Repeat("x", maxID+1): "129 bytes",
	} {
		refuses(t, id(bad, ""), "id-invalid", why)
	}
	refuses(t, id("", "in-8-1"), "id-invalid", "made by Rollcall")
	due, err := eventstore.TimerEnvelope(domain.Key{Tenant: "main", Conversation: "c"}, "wake", stored)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(due, 7, stored)
	if err != nil || got.GetFireTimer().GetTimer() != "wake" || !strings.HasPrefix(got.GetId(), "timer-wake-") || got.GetActor() != domain.Framework {
		t.Errorf("a timer gave %v, %v", got, err)
	}
}

// A redelivery is the same command.
func TestDecodeIsPure(t *testing.T) {
	e := envelope("lead", "application/json", `{"text":"x"}`)
	first, err := Decode(e, 7, stored)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Decode(e, 7, stored)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(first, again, protocmp.Transform()); d != "" {
		t.Error(d)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("lead", "", "hello", "")
	f.Add("\xf5", "", "0", "0")
	f.Add("lead", "application/json", `{"text":"\ud83d\ude00","mode":"steer"}`, "k1")
	f.Add("lead", "application/json", `{"text":"\ud800\`, "in-1-1")
	f.Add("_", "application/protobuf", "\x0a\x01a\x5a\x00", "")
	f.Add("_", "application/protobuf", "\x12\x02m1\xf2\x01\x00", "")
	f.Fuzz(func(t *testing.T, to, contentType, data, id string) {
		e := envelope(to, contentType, data)
		e.Header[eventstore.HeaderID] = id
		cmd, err := Decode(e, 7, stored)
		if err != nil {
			r, ok := errors.AsType[*domain.Refusal](err)
			if !ok || cmd != nil || r.Code == "" || r.What == "" || r.Why == "" || r.Try == "" || !utf8.ValidString(r.Error()) {
				t.Fatalf("Decode gave %v and the error %#v", cmd, err)
			}
			return
		}
		if cmd.GetId() == "" || len(cmd.GetId()) > maxID || cmd.GetActor() != domain.Operator && cmd.GetFireTimer() == nil {
			t.Fatalf("Decode gave %v", cmd)
		}
		if p := cmd.GetPostMessage(); p != nil && to != eventstore.ToCommand {
			words := p.GetBody().GetText()
			if p.GetTo() != to || p.GetKind() != user && p.GetKind() != alert || !utf8.ValidString(words) || strings.TrimSpace(words) == "" || strings.Contains(words, "\x00") {
				t.Fatalf("Decode gave %v", cmd)
			}
		}
		if _, err := proto.Marshal(cmd); err != nil {
			t.Fatalf("the command cannot be stored: %v", err)
		}
	})
}

// The node is not made to speak on subjects that are not the asker's.
func TestAnswersGoOnlyToWhoeverAsked(t *testing.T) {
	for subject, want := range map[string]string{
		"_INBOX.abc.1":                   "_INBOX.abc.1",
		"answer.here":                    "answer.here",
		"":                               "",
		"rollcall.in.other.c1.lead":      "",
		"rollcall.events.7.main.c1":      "",
		"rollcall":                       "",
		"$JS.API.STREAM.DELETE.ROLLCALL": "",
		"$KV.ROLLCALL_NODES.owner.1":     "",
		"_INBOX.>":                       "",
		"_INBOX.*":                       "",
		"_INBOX.a b":                     "",
		"_INBOX.a\r\nPUB x":              "",
		"_INBOX..a":                      "",
		"_INBOX.":                        "",
		".rollcall.in.main.c1.lead":      "",
		"_INBOX.\xff":                    "",
	} {
		e := eventstore.Envelope{Header: map[string]string{eventstore.HeaderReply: subject}}
		if got := ReplyTo(e); got != want {
			t.Errorf("%q answers on %q, want %q", subject, got, want)
		}
	}
}
