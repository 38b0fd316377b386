package e2e_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// fact is an event with the version of its commit.
type fact struct {
	version uint64
	*rollcallv1.Event
}

// facts of a conversation, in order.
func (p *place) facts(c *api.Client, id string) (all []fact) {
	p.t.Helper()
	_, sealed := p.sealed(c, id)
	for _, raw := range sealed {
		commit, err := domain.Unseal(raw)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, e := range commit.GetEvents() {
			all = append(all, fact{commit.GetVersion(), e})
		}
	}
	return all
}

// only are the facts of one type.
func only[Kind proto.Message](facts []fact, of func(*rollcallv1.Event) Kind) (found []Kind) {
	for _, f := range facts {
		if k := of(f.Event); k.ProtoReflect().IsValid() {
			found = append(found, k)
		}
	}
	return found
}

// versionOf is the version of the first event that ok accepts.
func versionOf(t *testing.T, facts []fact, what string, ok func(*rollcallv1.Event) bool) uint64 {
	t.Helper()
	i := slices.IndexFunc(facts, func(f fact) bool { return ok(f.Event) })
	if i < 0 {
		t.Fatalf("it never happened: %s", what)
	}
	return facts[i].version
}

func claimed(task string) func(*rollcallv1.Event) bool {
	return func(e *rollcallv1.Event) bool { return e.GetTaskClaimed().GetTask() == task }
}

func completed(task string) func(*rollcallv1.Event) bool {
	return func(e *rollcallv1.Event) bool { return e.GetTaskCompleted().GetTask() == task }
}

func promoted(task string) func(*rollcallv1.Event) bool {
	return func(e *rollcallv1.Event) bool { return e.GetTaskPromoted().GetTask() == task }
}

// outcomes are what calls of a tool came to, in order.
func outcomes(facts []fact, tool string) (all []*rollcallv1.ToolCallFinished) {
	for _, f := range only(facts, (*rollcallv1.Event).GetToolCallFinished) {
		if f.GetName() == tool {
			all = append(all, f)
		}
	}
	return all
}

// runs of a member that began, in order.
func runsOf(facts []fact, member string) (all []*rollcallv1.RunStarted) {
	for _, r := range only(facts, (*rollcallv1.Event).GetRunStarted) {
		if r.GetMember() == member {
			all = append(all, r)
		}
	}
	return all
}

// ended says why a run ended; empty while it is open.
func ended(facts []fact, run string) string {
	for _, f := range only(facts, (*rollcallv1.Event).GetRunFinished) {
		if f.GetRun() == run {
			return domain.Word(f.GetReason())
		}
	}
	return ""
}

// delivered are the messages to a member, in order.
func delivered(facts []fact, to string) (all []*rollcallv1.MessageDelivered) {
	for _, m := range only(facts, (*rollcallv1.Event).GetMessageDelivered) {
		if m.GetTo() == to {
			all = append(all, m)
		}
	}
	return all
}

// ids of the messages that refs name.
func ids(refs []*rollcallv1.MessageRef) (all []string) {
	for _, r := range refs {
		all = append(all, r.GetMessage())
	}
	return all
}

func idle(name string) func(*domain.State) bool {
	return func(s *domain.State) bool {
		m := s.Named(name)
		return m != nil && m.Run == nil && m.Status == rollcallv1.MemberStatus_MEMBER_STATUS_IDLE
	}
}

// resting checks that all members are idle with nothing to read.
func resting(t *testing.T, s *domain.State) {
	t.Helper()
	for _, m := range s.Members {
		if domain.Word(m.Status) != "idle" || len(m.Unread) > 0 || m.Held {
			t.Errorf("%s is %s with %d unread messages", m.Name, domain.Word(m.Status), len(m.Unread))
		}
	}
}
