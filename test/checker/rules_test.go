package checker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
	"github.com/rollcall-dev/rollcall/test/checker"
)

// of is the first event of a kind in a commit of the story.
func of[Kind proto.Message](h *hand, version int) Kind {
	for _, e := range h.commits[version-1].GetEvents() {
		if k, ok := bodyOf(e).(Kind); ok {
			return k
		}
	}
	panic(fmt.Sprintf("version %d has no %T", version, *new(Kind)))
}

func bodyOf(e *pb.Event) proto.Message {
	r := e.ProtoReflect()
	return r.Get(r.WhichOneof(r.Descriptor().Oneofs().ByName("kind"))).Message().Interface()
}

// drop takes the first event of a kind out of a commit.
func drop[Kind proto.Message](h *hand, version int) {
	c := h.commits[version-1]
	i := slices.IndexFunc(c.GetEvents(), func(e *pb.Event) bool { _, ok := bodyOf(e).(Kind); return ok })
	c.Events = slices.Delete(c.GetEvents(), i, i+1)
}

// put puts events before the place in a commit; a negative place counts from the
// end, -1 being behind the last.
func put(h *hand, version, at int, events ...proto.Message) {
	c := h.commits[version-1]
	if at < 0 {
		at += len(c.GetEvents()) + 1
	}
	for i, e := range events {
		c.Events = slices.Insert(c.GetEvents(), at+i, event(e))
	}
}

// fault is one way to break a story, and the rules that must see it: mostly one.
type fault struct {
	rules string
	what  string
	do    func(h *hand)
}

var faults = [][]fault{
	commitFaults, rosterFaults, mailFaults, runFaults, callFaults, approvalFaults, subagentFaults, coordinationFaults, boardFaults, waitFaults, recordFaults,
}

// Each fault is one that a log can have with its chain whole, and each rule sees
// one that no other rule sees.
func TestFaults(t *testing.T) {
	alone := map[string]bool{}
	for _, list := range faults {
		for _, f := range list {
			t.Run(strings.ReplaceAll(f.rules, " ", "+")+"/"+f.what, func(t *testing.T) {
				h := story()
				f.do(h)
				found := checker.Check(h.log(t), h.record)
				var broken []string
				for _, one := range found {
					if !slices.Contains(broken, one.Rule) {
						broken = append(broken, one.Rule)
					}
					if one.What == "" || one.Conversation != conversation {
						t.Errorf("a finding says too little: %v", one)
					}
				}
				slices.Sort(broken)
				want := strings.Fields(f.rules)
				slices.Sort(want)
				if !slices.Equal(broken, want) {
					t.Errorf("seen by %v, want %v: %v", broken, want, found)
				}
				if len(broken) == 1 {
					alone[broken[0]] = true
				}
				if testing.Verbose() && len(found) > 0 {
					t.Log(found[0])
				}
			})
		}
	}
	for _, name := range checker.Rules() {
		if !alone[name] && name != "chain" { // see TestBrokenChain
			t.Errorf("no fault is seen by the rule %s alone", name)
		}
	}
}
