package domaintest

import (
	"fmt"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Long decides a conversation of so many commits: the operator writes, the
// Lead answers, again and again. Each commit is given to store, which seals
// and keeps it, before the next is decided. Unlike a Kit it checks nothing, so
// that tens of thousands of commits take seconds. The end state comes back.
func Long(t T, key domain.Key, rules *domain.Rules, commits int, store func(*rollcallv1.Commit)) *domain.State {
	t.Helper()
	s := domain.New(key)
	for n := 1; n <= commits; n++ {
		b, err := s.Begin(rules, domain.Stamp{
			Time: Start.Add(time.Duration(n) * time.Second), Node: "n1", Epoch: 1, CommitID: fmt.Sprintf("%s-%d", key.Conversation, n),
		})
		if err != nil {
			t.Fatalf("begin commit %d: %v", n, err)
		}
		if _, err := b.Decide(nextOfLong(s, key, n)); err != nil {
			t.Fatalf("decide commit %d: %v", n, err)
		}
		c := b.Commit()
		store(c)
		s.Committed(c)
	}
	return s
}

func nextOfLong(s *domain.State, key domain.Key, n int) *rollcallv1.Command {
	id := fmt.Sprintf("command-%d", n)
	if n == 1 {
		return &rollcallv1.Command{Id: id, Actor: domain.Operator, Kind: &rollcallv1.Command_OpenConversation{OpenConversation: &rollcallv1.OpenConversation{
			Conversation: key.Conversation, Tenant: key.Tenant, Name: "long", Contract: "mailbox", Objective: Text("word 1"),
		}}}
	}
	if run := s.Lead().Run; run != nil {
		return &rollcallv1.Command{Actor: domain.LeadID, Kind: &rollcallv1.Command_RecordReply{RecordReply: &rollcallv1.RecordReply{
			Member: domain.LeadID, Run: run.ID, Step: run.Step, Attempt: run.Attempt, Finish: "stop", Text: Text(fmt.Sprintf("answer %d", n)),
		}}}
	}
	c := Say(domain.LeadID, fmt.Sprintf("word %d", n))
	c.Id = id
	return c
}
