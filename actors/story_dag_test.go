package actors_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/faulty"
	"github.com/rollcall-dev/rollcall/internal/model"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// dagStory is a team with assignments: two side by side, a third that depends on
// both; a question that only the operator can decide, with a restart while it is
// waited on; a delivery that is revised, and what was built on it after it. A call
// of task waits for the operator's approval, over that restart and while the others
// work; when it is approved a subagent works for it, and nobody else.
var dagStory = scenario{think: dagBrain, play: playDag, members: 1, thin: 6, pairs: 12, points: map[faulty.Point]int{
	faulty.Append: 30, faulty.PutBlob: 6, faulty.Snapshot: 4,
	faulty.Publish: 3, faulty.Ack: 2, faulty.DeadLetter: 1,
	faulty.ConsumerDelete: 2, faulty.ConsumerCreate: 2,
	faulty.Claim: 2, faulty.Renew: 1, faulty.Release: 2,
	faulty.Reply: 3,
}}

// TestCrashEverywhereDag is crash-everywhere for the contract dag.
func TestCrashEverywhereDag(t *testing.T) { dagStory.everywhere(t) }

const inBlue = "Make it blue, please."

// longWay is more than stands in the log: the arguments it is in lie in the
// object store. Only the subagent reads them again.
var longWay = strings.Repeat(", and on", eventstore.InlineBody/8)

var openQuestion = regexp.MustCompile(`Ana waits for Lead to answer (msg\d+)`)

func dagBrain(_ context.Context, from model.Caller, r request) (model.Reply, error) {
	switch from.Member {
	case "Lead":
		return dagLead(r), nil
	case "Ana":
		switch {
		case r.has("Buy red paint"):
			return calls(call("file_write", `{"path":"red.txt","content":"a pot of red"}`), call("complete", `{"summary":"red paint bought","paths":["red.txt"]}`)), nil
		case r.has("It shall be blue"):
			return calls(call("file_write", `{"path":"blue.txt","content":"a pot of blue"}`), call("complete", `{"summary":"blue paint bought","paths":["blue.txt"]}`)), nil
		}
		return calls(
			call("file_write", `{"path":"size.txt","content":"one pot is enough"}`),
			call("team_send_message", `{"to":"Lead","text":"which colour?","wait_for_reply":true}`),
		), nil
	case "Cid":
		switch {
		case r.called("task") == 0:
			return calls(call("task", `{"brief":"Look for the brushes."}`)), nil
		case !r.has("under the bench"):
			return say("Nobody looked for them."), nil
		}
		return calls(call("complete", `{"summary":"the brushes are clean","paths":["where.txt"]}`)), nil
	case "Cid/task1":
		if r.called("file_write") == 0 {
			return calls(call("file_write", fmt.Sprintf(`{"path":"where.txt","content":"under the bench%s"}`, longWay))), nil
		}
		return calls(call("complete", `{"summary":"they are under the bench","paths":["where.txt"]}`)), nil
	case "Ben":
		paint := "blue"
		if r.has("red paint bought") {
			paint = "red"
		}
		if !r.has("a pot of " + paint) {
			return calls(call("file_read", fmt.Sprintf(`{"path":"Ana/%s.txt"}`, paint))), nil
		}
		return calls(
			call("file_write", fmt.Sprintf(`{"path":"%s-shed.txt","content":"a shed in %s"}`, paint, paint)),
			call("complete", fmt.Sprintf(`{"summary":"the shed is %s","paths":["%s-shed.txt"]}`, paint, paint)),
		), nil
	}
	return model.Reply{}, fmt.Errorf("nobody called %q", from.Member)
}

// dagLead looks for the newest that it was told first.
func dagLead(r request) model.Reply {
	switch question := openQuestion.FindStringSubmatch(r.Messages[0].Content); {
	case r.has("the shed is red") && r.called("team_dissolve") == 0:
		return calls(call("team_dissolve", `{}`))
	case r.has("the shed is red"):
		return say("Done: the shed is red")
	case r.has("red paint bought") && r.called("team_replan") == 0:
		return calls(call("team_replan", `{"operations":[{"op":"revise","name":"Ben","brief":"Paint the shed again."}]}`))
	case r.has("the shed is blue") && !r.has("red paint bought") && r.called("team_replan") == 0:
		return calls(call("team_replan", `{"operations":[{"op":"revise","name":"Ana","brief":"Buy red paint after all."}]}`))
	case r.has(inBlue) && question != nil && r.called("team_send_message") == 0:
		return calls(call("team_send_message", fmt.Sprintf(`{"to":"Ana","text":"It shall be blue","reply_to":%q}`, question[1])))
	case !r.has("which colour?") && !r.has("team_report") && r.called("team_create") == 0:
		return calls(call("team_create", `{"goal":"a painted shed","members":[
			{"name":"Ben","brief":"Paint the shed.","depends_on":["Ana","Cid"]},
			{"name":"Ana","brief":"Buy the paint."},
			{"name":"Cid","brief":"Clean the brushes."}]}`))
	}
	return say("They are at it. Which colour shall it be?")
}

// playDag drives the story to its end.
func playDag(w *world, away time.Duration, faults ...faulty.Fault) *course {
	w.t.Helper()
	w.snapshotEvery = 6 // one is taken while the subagent works
	w.warm = -1         // nothing is found again but by its anchor
	c := &course{world: w, next: faults, away: away}
	c.fresh()
	opening := openCommand("Paint the shed.")
	opening.GetOpenConversation().Contract = "dag"
	opening.GetOpenConversation().Approvals = &rollcallv1.ApprovalPolicy{Tools: []string{domain.TaskTool}}
	c.say(opening)
	c.tellNobody()
	waits := func(s *domain.State) bool {
		return s.Opened && len(domain.Due(s)) == 0 && len(s.Members) == 4 && len(s.PendingApprovals()) == 1 && w.disk.Pending(key.Partition()) == 0
	}
	c.until("Ana waits, Cid's call waits, and nobody works", func(s *domain.State) bool {
		return waits(s) && len(s.Member("m2").Waits) == 1 && len(s.OpenTasks()) == 3
	})
	asked := w.brain.count("Ana") + w.brain.count("Cid")
	c.restart()
	<-time.After(5 * time.Second)
	if n := w.brain.count("Ana") + w.brain.count("Cid"); n != asked {
		w.t.Errorf("those who wait were called %d times by a restart", n-asked)
	}
	decision := post("lead", inBlue, rollcallv1.MailMode_MAIL_MODE_UNSPECIFIED)
	decision.Id = "decision"
	c.say(decision)
	c.until("the paint is there, and Cid's call waits", func(s *domain.State) bool { return waits(s) && len(s.OpenTasks()) == 2 })
	c.say(&rollcallv1.Command{Id: "approval", Kind: &rollcallv1.Command_DecideApproval{DecideApproval: &rollcallv1.DecideApproval{
		Approval: "a1", Approve: true,
	}}})
	c.until("the story ends", func(s *domain.State) bool {
		return len(domain.Due(s)) == 0 && s.ActiveTeam() == nil && len(s.Teams) == 1 && w.disk.Pending(key.Partition()) == 0
	})
	w.close(c.node)
	c.count()
	return c
}
