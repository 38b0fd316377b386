package checker_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	pb "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
	"github.com/rollcall-dev/rollcall/test/checker"
)

// A damaged log is read up to the damage, which is told once, with its version.
func TestBrokenChain(t *testing.T) {
	for what, damage := range map[string]struct {
		do      func([]checker.Stored) []checker.Stored
		version uint64
	}{
		"a flipped bit":         {func(s []checker.Stored) []checker.Stored { s[6].Sealed[20] ^= 1; return s }, 7},
		"a flipped bit of hash": {func(s []checker.Stored) []checker.Stored { s[6].Sealed[len(s[6].Sealed)-1] ^= 1; return s }, 7},
		"a gap":                 {func(s []checker.Stored) []checker.Stored { return slices.Delete(s, 6, 7) }, 7},
		"a lost beginning":      {func(s []checker.Stored) []checker.Stored { return s[1:] }, 1},
		"a commit twice":        {func(s []checker.Stored) []checker.Stored { return slices.Insert(s, 6, s[5]) }, 7},
		"two exchanged":         {func(s []checker.Stored) []checker.Stored { s[6], s[7] = s[7], s[6]; return s }, 7},
		"no commit":             {func(s []checker.Stored) []checker.Stored { s[6].Sealed = []byte("hello"); return s }, 7},
		"nothing":               {func(s []checker.Stored) []checker.Stored { s[6].Sealed = nil; return s }, 7},
		"another story's commit": {func(s []checker.Stored) []checker.Stored {
			other := story()
			other.commits[3].Id = "other"
			s[6] = other.log(t).Commits[6]
			return s
		}, 7},
	} {
		t.Run(what, func(t *testing.T) {
			l := story().log(t)
			l.Commits = damage.do(l.Commits)
			found := checker.CheckLog(l)
			if len(found) != 1 || found[0].Rule != "chain" || found[0].Version != damage.version {
				t.Errorf("found %v, want one of version %d", found, damage.version)
			}
		})
	}
}

// Every byte of a sealed commit counts.
func TestEveryByteCounts(t *testing.T) {
	l := story().log(t)
	l.Commits = l.Commits[:1]
	whole := l.Commits[0].Sealed
	for i := range whole {
		l.Commits[0].Sealed = bytes.Clone(whole)
		l.Commits[0].Sealed[i] ^= 0x20
		if len(checker.CheckLog(l)) == 0 {
			t.Errorf("byte %d of %d can be changed", i, len(whole))
		}
	}
}

// A message on the stream says in its headers and subject what its commit says.
func TestHeaders(t *testing.T) {
	with := func(change func(*checker.Stored)) []checker.Finding {
		one := checker.Stored{
			Sealed: single(t), Subject: "rollcall.events.29." + tenant + "." + conversation,
			Header: map[string][]string{
				"Nats-Msg-Id": {"commit-1"}, "Rollcall-Version": {"1"}, "Rollcall-Node": {"n1"}, "Rollcall-Epoch": {"1"}, "Rollcall-Types": {"RunSuspended"},
			},
		}
		change(&one)
		found := checker.CheckLog(checker.Log{Tenant: tenant, Conversation: conversation, Commits: []checker.Stored{one}})
		return slices.DeleteFunc(found, func(f checker.Finding) bool { return f.Rule != "commit-id" })
	}
	if found := with(func(*checker.Stored) {}); len(found) > 0 {
		t.Error(found)
	}
	for _, name := range []string{"Nats-Msg-Id", "Rollcall-Version", "Rollcall-Node", "Rollcall-Epoch", "Rollcall-Types"} {
		for _, value := range [][]string{nil, {"other"}} {
			found := with(func(s *checker.Stored) { s.Header[name] = value })
			if len(found) != 1 || !strings.Contains(found[0].What, name) {
				t.Errorf("%s is %v: found %v", name, value, found)
			}
		}
	}
	if found := with(func(s *checker.Stored) { s.Subject = strings.Replace(s.Subject, "29", "28", 1) }); len(found) != 1 {
		t.Errorf("a wrong subject: found %v", found)
	}
}

// single is a commit of one event, sealed.
func single(t *testing.T) []byte {
	h := newHand()
	h.commit(&pb.RunSuspended{Run: "r1", Member: "lead"})
	return h.log(t).Commits[0].Sealed
}

// A call that reaches the model server before its commit is stored was made
// before it was durable.
func TestCallsComeAfterTheirCommit(t *testing.T) {
	began := time.Unix(1000, 0)
	for _, early := range []bool{false, true} {
		h := story()
		l := h.log(t)
		for i := range l.Commits {
			l.Commits[i].Time = began.Add(time.Duration(i) * time.Second)
		}
		for i, after := range h.asked {
			h.record[i].Time = began.Add(time.Duration(after) * time.Second)
		}
		if early { // the call that version 40 begins
			h.record[len(h.record)-3].Time = began.Add(39*time.Second - 1)
		}
		found := checker.Check(l, h.record)
		if early != (len(found) == 1 && found[0].Rule == "called") || !early && len(found) > 0 {
			t.Errorf("early is %t: found %v", early, found)
		}
	}
}

// Calls of conversations that have no log are told.
func TestCallsOfNoLog(t *testing.T) {
	h := story()
	l := h.log(t)
	if found := checker.CheckAll([]checker.Log{l}, h.record); len(found) > 0 {
		t.Error(found)
	}
	h.record[2].Conversation = ""
	found := checker.CheckAll([]checker.Log{l}, h.record)
	if len(found) != 2 || found[0].Rule != "answered" || found[1].Rule != "called" {
		t.Errorf("found %v", found)
	}
}
