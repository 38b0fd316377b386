package domain_test

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// history is a short log with many kinds of events.
func history(t domaintest.T) []*rollcallv1.Commit {
	k := domaintest.Team(t, domaintest.Open(t, rules(), "mailbox"), "A", "B")
	k.Do(domaintest.Say("", "go"), domaintest.Say("m1", "ask"))
	k.Acts("lead", "task_create", args{"title": "one", "description": "x", "owner": "B"})
	k.Act("m1", domaintest.Call("send_message", args{"to": "B", "text": "?", "wait_for_reply": true}))
	k.Acts("m2", "task_complete", args{"task_id": "t1", "result": "ok"})
	k.Do(domaintest.Say("", "stop"))
	k.Do(pause())
	return k.Commits
}

func FuzzUnseal(f *testing.F) {
	for _, c := range history(f) {
		raw, err := domain.Seal(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
		f.Add(raw[:len(raw)-1])
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := domain.Unseal(raw)
		if err != nil {
			if !errors.Is(err, domain.ErrNotCommit) && !errors.Is(err, domain.ErrHash) {
				t.Fatalf("error without a name: %v", err)
			}
			return
		}
		if !bytes.HasSuffix(raw, c.GetHash()) {
			t.Fatal("the hash is not what ends the bytes")
		}
		domain.New(domaintest.Key).Evolve(c)
	})
}

func TestUnsealNoticesEveryFlippedByte(t *testing.T) {
	raw, err := domain.Seal(history(t)[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		bad := bytes.Clone(raw)
		bad[i] ^= 0x20
		if _, err := domain.Unseal(bad); err == nil {
			t.Fatalf("byte %d may change unnoticed", i)
		}
	}
}

// The fold never fails, whatever the log holds.
func FuzzEvolve(f *testing.F) {
	commits := history(f)
	for _, c := range commits {
		raw, err := proto.Marshal(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, uint8(len(commits)))
		f.Add(raw, uint8(0))
	}
	f.Fuzz(func(t *testing.T, raw []byte, after uint8) {
		c := new(rollcallv1.Commit)
		if proto.Unmarshal(raw, c) != nil {
			return
		}
		s := domain.New(domaintest.Key)
		for i, known := range commits {
			if i < int(after) {
				s.Evolve(known)
			}
		}
		s.Evolve(c)
		data, err := s.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		back, err := domain.Unmarshal(data)
		if err != nil {
			t.Fatal(err)
		}
		if back.Hash() != s.Hash() {
			t.Fatal("a snapshot does not come back equal")
		}
		domain.Due(s)
		s.Verdict()
		s.Status()
		for _, m := range s.Members {
			s.StepPlan(m.ID)
			s.ToolPlan(m.ID)
		}
	})
}

// Whatever a model writes as a tool call, it gets an outcome and the run goes on.
func FuzzToolArguments(f *testing.F) {
	for _, name := range []string{"team_create", "team_member_add", "team_member_remove", "send_message", "task_create", "task_update", "task_complete", "task_get", "file_write", "x\xff"} {
		f.Add(name, `{"name":"A","initial_prompt":"x","to":"user","text":"x","title":"t","description":"d","task_id":"t1","result":"r"}`)
	}
	f.Add("send_message", `{"to":"A","text":"`+"\xff"+`"}`)
	f.Add("task_update", `{"task_id":"t1","dependencies":["t1"],"status":"claimable","owner":null}`)
	f.Add("task_create", `{"title":"\ud800","description":"\u0000","dependencies":null}`)
	k := domaintest.Open(f, rules(), "mailbox")
	k.Do(domaintest.Say("", "go"))
	k.Acts("lead", "task_create", args{"title": "one", "description": "x"})
	snapshot, err := k.State.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	run := k.Member("lead").Run
	f.Fuzz(func(t *testing.T, name, arguments string) {
		reply := &rollcallv1.RecordReply{
			Member: "lead", Run: run.ID, Step: run.Step, Attempt: run.Attempt, Finish: "tool_calls",
			Calls: []*rollcallv1.ToolCall{{Name: name, Arguments: arguments}},
		}
		s, err := domain.Unmarshal(snapshot)
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Begin(k.Rules, domain.Stamp{Time: domaintest.Start, Epoch: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Decide(&rollcallv1.Command{Kind: &rollcallv1.Command_RecordReply{RecordReply: reply}}); err != nil {
			t.Fatal(err)
		}
		if s.Lead().Run == nil {
			t.Fatal("the run ended")
		}
		events := b.Commit().GetEvents()
		if started := domaintest.Count(events, "ToolCallStarted"); started+len(domaintest.Finished(events)) != 1 && len(arguments) < 256<<10 {
			t.Fatalf("no outcome: %s", domaintest.Names(events))
		}
		if _, err := domain.Seal(b.Commit()); err != nil {
			t.Fatal(err)
		}
	})
}
