package domain_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Elsewhere a step read a session that did not yet show the answer before it.
// Ten thousand times a word follows an answer at once, or is decided in one commit
// with it: the plan of the turn ends with that answer, the end of its turn, and
// the word.
func TestB49FollowUpSeesTheAnswer(t *testing.T) {
	const conversations, rounds = 250, 40
	r := rules()
	for c := range conversations {
		s, commits := domain.New(domaintest.Key), []*rollcallv1.Commit(nil)
		decide := func(cmds ...*rollcallv1.Command) {
			b, err := s.Begin(r, domain.Stamp{Time: domaintest.Start.Add(time.Duration(len(commits)) * time.Second), Epoch: 1, CommitID: fmt.Sprint("commit-", len(commits))})
			if err != nil {
				t.Fatal(err)
			}
			for i, cmd := range cmds {
				cmd.Id = fmt.Sprint("command-", len(commits), "-", i)
				if _, err := b.Decide(cmd); err != nil {
					t.Fatal(err)
				}
			}
			commit := b.Commit()
			if _, err := domain.Seal(commit); err != nil {
				t.Fatal(err)
			}
			s.Committed(commit)
			commits = append(commits, commit)
		}
		event := func(ref *rollcallv1.Ref) *rollcallv1.Event {
			return commits[ref.GetVersion()-1].GetEvents()[ref.GetIndex()]
		}
		decide(&rollcallv1.Command{Kind: &rollcallv1.Command_OpenConversation{OpenConversation: &rollcallv1.OpenConversation{Contract: "mailbox"}}})
		decide(domaintest.Say("", "word 0"))
		for round := range rounds {
			run := s.Lead().Run
			answer := &rollcallv1.Command{Actor: "lead", Kind: &rollcallv1.Command_RecordReply{RecordReply: &rollcallv1.RecordReply{
				Member: "lead", Run: run.ID, Step: run.Step, Attempt: run.Attempt, Finish: "stop", Text: domaintest.Text(fmt.Sprint("answer ", round)),
			}}}
			word := domaintest.SayMode("", fmt.Sprint("word ", round+1), rollcallv1.MailMode_MAIL_MODE_QUEUE)
			switch (c + round) % 3 {
			case 0: // after it
				decide(answer)
				decide(word)
			case 1: // in one commit with it
				decide(answer, word)
			default: // before it
				decide(word, answer)
			}
			plan, ok := s.StepPlan("lead")
			if !ok || len(plan.Context) != 3*(round+1)+1 {
				t.Fatalf("turn %d has a context of %d events", round+1, len(plan.Context))
			}
			last := plan.Context[len(plan.Context)-3:]
			if got := event(last[0].Ref).GetModelReplied().GetText().GetText(); got != fmt.Sprint("answer ", round) {
				t.Fatalf("turn %d is shown %q as the answer before it", round+1, got)
			}
			if event(last[1].Ref).GetRunFinished().GetRun() != run.ID || len(last[2].Mail) != 1 {
				t.Fatalf("turn %d: %v", round+1, last)
			}
			if got := event(last[2].Mail[0].GetRef()).GetMessageDelivered().GetBody().GetText(); got != fmt.Sprint("word ", round+1) {
				t.Fatalf("turn %d is shown %q", round+1, got)
			}
		}
	}
}
