package actors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// The story has what can go wrong: tasks with a dependency, messages, a wait
// for a reply, an interruption, files, a timer. The Lead's first call never
// answers; the operator's second message interrupts it.
const (
	objective = "Paint the shed."
	hurry     = "Go on, and use the team."
	dry       = "look whether it is dry"
)

var questionID = regexp.MustCompile(`<message id="(msg\d+)" from="Ana"[^>]*>\s*which colour\?`)

func storyBrain(ctx context.Context, from model.Caller, r request) (model.Reply, error) {
	switch from.Member {
	case "Lead":
		switch {
		case !r.has(hurry):
			<-ctx.Done()
			return model.Reply{}, ctx.Err()
		case r.called("team_create") == 0:
			return calls(
				call("team_create", `{"name":"painters"}`),
				call("team_member_add", `{"name":"Ana","initial_prompt":"Buy the paint."}`),
				call("team_member_add", `{"name":"Ben","initial_prompt":"Paint."}`),
				call("task_create", `{"title":"paint","description":"buy it","owner":"Ana"}`),
				call("task_create", `{"title":"shed","description":"paint it","owner":"Ben","dependencies":["t1"]}`),
			), nil
		case r.has("the shed is") && r.has(dry):
			return say("Done: " + regexp.MustCompile(`the shed is \w+`).FindString(r.text()) + " and dry"), nil
		}
		return say("Working on it."), nil
	case "Ana":
		switch {
		case r.called("file_write") == 0:
			return calls(
				call("task_update", `{"task_id":"t1","owner":"Ana","status":"in_progress"}`),
				call("file_write", `{"path":"paint.txt","content":"a pot of paint"}`),
			), nil
		case r.called("send_message") == 0:
			return calls(call("send_message", `{"to":"Ben","text":"which colour?","wait_for_reply":true}`)), nil
		case r.has("in blue, please") && r.called("task_complete") == 0:
			return calls(call("task_complete", `{"task_id":"t1","result":"blue paint bought","paths":["paint.txt"]}`)), nil
		}
		return say("Nothing to do."), nil
	case "Ben":
		switch id := questionID.FindStringSubmatch(r.text()); {
		case id != nil && r.called("send_message") == 0:
			return calls(call("send_message", fmt.Sprintf(`{"to":"Ana","text":"in blue, please","reply_to":%q}`, id[1]))), nil
		case r.has("blue paint bought") && r.called("file_read") == 0:
			return calls(
				call("task_update", `{"task_id":"t2","owner":"Ben","status":"in_progress"}`),
				call("file_read", `{"path":"Ana/paint.txt"}`),
			), nil
		case r.has("a pot of paint") && r.called("task_complete") == 0:
			return calls(
				call("file_write", `{"path":"shed.txt","content":"blue shed"}`),
				call("task_complete", `{"task_id":"t2","result":"painted","paths":["shed.txt"]}`),
				call("send_message", `{"to":"lead","text":"the shed is blue"}`),
			), nil
		}
		return say("Ready."), nil
	}
	return model.Reply{}, fmt.Errorf("nobody called %q", from.Member)
}

// messageID names a message by the order in which members spoke, which differs.
var messageID = regexp.MustCompile(`\bmsg\d+\b`)

// ending is what the story comes to, whatever crashed on the way.
func ending(t *testing.T, s *domain.State, events []*rollcallv1.Event) string {
	t.Helper()
	type task struct{ ID, Title, Status, Owner, Result string }
	var out struct {
		Members []string
		Held    []string `json:",omitempty"`
		Tasks   []task
		Files   []string
		Mail    []string
		Answer  string
		Teams   int
		Status  string
	}
	for _, m := range s.Members {
		out.Members = append(out.Members, fmt.Sprintf("%s %s %s unread %d", m.ID, m.Name, domain.Word(m.Status), len(m.Unread)))
		for path, b := range m.Files {
			out.Files = append(out.Files, m.Name+"/"+path+" "+b.SHA256[:8])
		}
	}
	slices.Sort(out.Files)
	for _, a := range s.Approvals {
		out.Held = append(out.Held, fmt.Sprintf("%s %s of %s %s by %s", a.ID, a.Tool, a.Member, a.Outcome, a.By))
	}
	for _, k := range s.Tasks {
		out.Tasks = append(out.Tasks, task{k.ID, k.Title, domain.Word(k.Status), k.Owner, k.Result})
	}
	for _, e := range events {
		switch k := e.GetKind().(type) {
		case *rollcallv1.Event_MessageDelivered:
			d := k.MessageDelivered
			words := messageID.ReplaceAllString(first(d.GetBody().GetText()), "msg")
			out.Mail = append(out.Mail, fmt.Sprintf("%s to %s %s %s", d.GetFrom(), d.GetTo(), domain.Word(d.GetKind()), words))
		case *rollcallv1.Event_LeadReplied:
			out.Answer = k.LeadReplied.GetText().GetText()
		}
	}
	slices.Sort(out.Mail)
	out.Teams, out.Status = len(s.Teams), s.Status()
	data, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func first(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// justified checks the promises that hold for any log: every run has unread
// mail that starts it, no message is consumed twice without a return, no two
// runs of a member are open at once, and the model was not called more often
// than the log began to call it.
func justified(t *testing.T, events []*rollcallv1.Event, called int) {
	t.Helper()
	unread, open, begun := map[string]bool{}, map[string]string{}, 0
	consume := func(what string, refs []*rollcallv1.MessageRef) {
		for _, r := range refs {
			if !unread[r.GetMessage()] {
				t.Errorf("%s consumes %s, which is not unread", what, r.GetMessage())
			}
			unread[r.GetMessage()] = false
		}
	}
	for _, e := range events {
		switch k := e.GetKind().(type) {
		case *rollcallv1.Event_MessageDelivered:
			unread[k.MessageDelivered.GetMessage()] = true
		case *rollcallv1.Event_RunStarted:
			if len(k.RunStarted.GetConsumed()) == 0 {
				t.Errorf("run %s has no mail that justifies it", k.RunStarted.GetRun())
			}
			if r := open[k.RunStarted.GetMember()]; r != "" {
				t.Errorf("run %s starts while %s is open", k.RunStarted.GetRun(), r)
			}
			open[k.RunStarted.GetMember()] = k.RunStarted.GetRun()
			consume(k.RunStarted.GetRun(), k.RunStarted.GetConsumed())
		case *rollcallv1.Event_MessagesConsumed:
			consume(k.MessagesConsumed.GetRun(), k.MessagesConsumed.GetMessages())
		case *rollcallv1.Event_MessagesReturned:
			for _, r := range k.MessagesReturned.GetMessages() {
				unread[r.GetMessage()] = true
			}
		case *rollcallv1.Event_RunFinished:
			open[k.RunFinished.GetMember()] = ""
		case *rollcallv1.Event_ModelCallStarted:
			begun++
		}
	}
	if called > begun {
		t.Errorf("the model was called %d times, the log began %d calls", called, begun)
	}
}
