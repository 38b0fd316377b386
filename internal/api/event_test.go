package api_test

import (
	"encoding/json"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func lines(t *testing.T, names api.Names, events ...*rollcallv1.Event) []string {
	t.Helper()
	c := &rollcallv1.Commit{
		Version: 7, Events: events,
		Time: timestamppb.New(time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.FixedZone("", 3600))),
	}
	var out []string
	for _, l := range api.Render("01conv", c, names.Of) {
		b, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	return out
}

func TestRenderLine(t *testing.T) {
	names := api.Names{"m1": "Backend"}
	head := `{"type":"event","conversation":"01conv","version":7,"time":"2026-01-02T02:04:05.6Z",`
	for _, c := range []struct {
		name  string
		event *rollcallv1.Event
		want  string
	}{
		{
			"whoever completed a task is the member",
			&rollcallv1.Event{Kind: &rollcallv1.Event_TaskCompleted{TaskCompleted: &rollcallv1.TaskCompleted{
				Task: "t1", By: "m1", Delivery: &rollcallv1.Delivery{Summary: "done", Paths: []string{"a", "b"}},
			}}},
			`"event":"TaskCompleted","member":"Backend","data":{"by":"m1","delivery":{"paths":["a","b"],"summary":"done"},"task":"t1"}}`,
		},
		{
			"a text is a string, an enum its word",
			&rollcallv1.Event{Kind: &rollcallv1.Event_MessageDelivered{MessageDelivered: &rollcallv1.MessageDelivered{
				Message: "msg1", Kind: rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, From: "operator", To: "lead",
				Body: &rollcallv1.Body{Text: "héllo <b>"},
			}}},
			`"event":"MessageDelivered","member":"operator","data":{"body":"héllo \u003cb\u003e","from":"operator","kind":"user_message","message":"msg1","to":"lead"}}`,
		},
		{
			"a long text is referenced",
			&rollcallv1.Event{Kind: &rollcallv1.Event_LeadReplied{LeadReplied: &rollcallv1.LeadReplied{
				Run: "r1", Text: &rollcallv1.Body{Blob: &rollcallv1.Blob{Sha256: "ab", Size: 70000}},
			}}},
			`"event":"LeadReplied","member":"Lead","data":{"run":"r1","text_blob":"ab","text_size":70000}}`,
		},
		{
			"times are RFC 3339",
			&rollcallv1.Event{Kind: &rollcallv1.Event_TimerArmed{TimerArmed: &rollcallv1.TimerArmed{
				Timer: "x", Due: timestamppb.New(time.Unix(0, 0)),
			}}},
			`"event":"TimerArmed","member":"","data":{"due":"1970-01-01T00:00:00Z","timer":"x"}}`,
		},
		{
			"an enum value of a newer release is unknown",
			&rollcallv1.Event{Kind: &rollcallv1.Event_TaskPromoted{TaskPromoted: &rollcallv1.TaskPromoted{Task: "t1", Status: 99}}},
			`"event":"TaskPromoted","member":"","data":{"status":"unknown","task":"t1"}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := lines(t, names, c.event)[0]; got != head+c.want {
				t.Errorf("got  %s\nwant %s", got, head+c.want)
			}
		})
	}
}

func TestRenderUnknownEvent(t *testing.T) {
	raw := protowire.AppendTag(nil, 9999, protowire.BytesType)
	raw = protowire.AppendBytes(raw, []byte("future"))
	e := new(rollcallv1.Event)
	if err := proto.Unmarshal(raw, e); err != nil {
		t.Fatal(err)
	}
	got := lines(t, nil, e)[0]
	want := `{"type":"event","conversation":"01conv","version":7,"time":"2026-01-02T02:04:05.6Z","event":"Unknown","member":"","data":{}}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestNamesFollowMembers(t *testing.T) {
	n := api.Names{}
	n.Add(&rollcallv1.Commit{Events: []*rollcallv1.Event{
		{Kind: &rollcallv1.Event_MemberAdded{MemberAdded: &rollcallv1.MemberAdded{Member: "m1", Name: "Бэкенд"}}},
	}})
	for id, want := range map[string]string{"m1": "Бэкенд", "lead": "Lead", "operator": "operator", "m9": "m9"} {
		if got := n.Of(id); got != want {
			t.Errorf("name of %s: %q, want %q", id, got, want)
		}
	}
}
