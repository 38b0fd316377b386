package checker_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	pb "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
	"github.com/rollcall-dev/rollcall/test/checker"
)

const (
	tenant       = "main"
	conversation = "01jd0000000000000000000000"
)

// hand is a log that is made by hand, and the record of a model server beside it.
type hand struct {
	commits []*pb.Commit
	record  []checker.Request
	// asked is how many commits there were when each call was made.
	asked []int
	// agent is the hash of the definition that runs are pinned to.
	agent string
	// names of members by id, for the record.
	names map[string]string
	// astray keeps what references say; without it they are made to fit.
	astray bool
}

func newHand() *hand {
	return &hand{names: map[string]string{"lead": "Lead", "m1": "Ana", "m2": "Ben", "m6": "Lead/task1", "m7": "Lead/task2", "m8": "Lead/task3"}}
}

// event wraps the message of an event.
func event(m proto.Message) *pb.Event {
	e := new(pb.Event)
	fields := e.ProtoReflect().Descriptor().Oneofs().ByName("kind").Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); f.Message().FullName() == m.ProtoReflect().Descriptor().FullName() {
			e.ProtoReflect().Set(f, protoreflect.ValueOfMessage(m.ProtoReflect()))
			return e
		}
	}
	panic(fmt.Sprintf("%T is no event", m))
}

// commit appends what happened.
func (h *hand) commit(events ...proto.Message) *pb.Commit {
	n := len(h.commits) + 1
	c := &pb.Commit{Version: uint64(n), Id: fmt.Sprintf("commit-%d", n), Node: "n1", Epoch: 1}
	for _, m := range events {
		c.Events = append(c.Events, event(m))
	}
	h.commits = append(h.commits, c)
	return c
}

// command appends what an outside command did; made is what it made.
func (h *hand) command(made string, events ...proto.Message) *pb.Commit {
	c := h.commit(events...)
	c.CommandIds, c.Subjects = []string{fmt.Sprintf("cmd-%d", c.GetVersion())}, []string{made}
	return c
}

// all puts events and lists of events in a row.
func all(parts ...any) (flat []proto.Message) {
	for _, p := range parts {
		switch p := p.(type) {
		case proto.Message:
			flat = append(flat, p)
		case []proto.Message:
			flat = append(flat, p...)
		}
	}
	return flat
}

// reply appends the answer to a model call, which the server recorded, and what
// followed from it.
func (h *hand) reply(r *pb.ModelReplied, then ...proto.Message) *pb.Commit {
	h.ask(r.GetMember(), r.GetRun(), r.GetStep())
	r.RequestHash = hash(h.record[len(h.record)-1].Body)
	return h.commit(append([]proto.Message{r}, then...)...)
}

// ask is a call that reaches the model server.
func (h *hand) ask(member, run string, step uint32) {
	h.asked = append(h.asked, len(h.commits))
	h.record = append(h.record, checker.Request{
		Conversation: conversation, Member: h.names[member], Run: run, Step: fmt.Sprint(step), Body: fmt.Appendf(nil, "request %d", len(h.record)+1),
	})
}

// until lets the log end with a version.
func (h *hand) until(version int) {
	h.commits = h.commits[:version]
	for i, after := range h.asked {
		if after >= version {
			h.record, h.asked = h.record[:i], h.asked[:i]
			return
		}
	}
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// log lets references point to where messages stand, and seals the commits, one
// after the other.
func (h *hand) log(t testing.TB) checker.Log {
	t.Helper()
	if !h.astray {
		h.point()
	}
	var previous []byte
	l := checker.Log{Tenant: tenant, Conversation: conversation}
	for _, c := range h.commits {
		c.PreviousHash, c.Hash = previous, nil
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(raw)
		c.Hash, previous = sum[:], sum[:]
		l.Commits = append(l.Commits, checker.Stored{Sealed: slices.Concat(raw, []byte{15<<3 | 2, 32}, sum[:])})
	}
	return l
}

func (h *hand) point() {
	at := map[string]*pb.Ref{}
	for _, c := range h.commits {
		for i, e := range c.GetEvents() {
			if id := e.GetMessageDelivered().GetMessage(); id != "" && at[id] == nil {
				at[id] = &pb.Ref{Version: c.GetVersion(), Index: uint32(i)}
			}
			for _, refs := range [][]*pb.MessageRef{e.GetRunStarted().GetConsumed(), e.GetMessagesConsumed().GetMessages(), e.GetMessagesReturned().GetMessages()} {
				for _, r := range refs {
					r.Ref = at[r.GetMessage()]
				}
			}
		}
	}
}

// The words of the log.

func refs(ids []string) (all []*pb.MessageRef) {
	for _, id := range ids {
		all = append(all, &pb.MessageRef{Message: id})
	}
	return all
}

// starts is a run that mail starts, with its first call.
func (h *hand) starts(run, member string, mail ...string) []proto.Message {
	return []proto.Message{
		&pb.RunStarted{Run: run, Member: member, Consumed: refs(mail), AgentHash: h.agent},
		calls(run, member, 1, 1),
	}
}

func reads(run, member string, mail ...string) *pb.MessagesConsumed {
	return &pb.MessagesConsumed{Run: run, Member: member, Messages: refs(mail)}
}

func returns(run, member string, mail ...string) *pb.MessagesReturned {
	return &pb.MessagesReturned{Run: run, Member: member, Messages: refs(mail)}
}

func calls(run, member string, step, attempt uint32) *pb.ModelCallStarted {
	return &pb.ModelCallStarted{Run: run, Member: member, Step: step, Attempt: attempt}
}

// says is a reply with text and no calls.
func says(run, member string, step uint32, text string) *pb.ModelReplied {
	return &pb.ModelReplied{Run: run, Member: member, Step: step, Attempt: 1, Text: body(text), Finish: "stop"}
}

// wants is a reply that asks for calls; each is "id name".
func wants(run, member string, step uint32, asked ...string) *pb.ModelReplied {
	r := &pb.ModelReplied{Run: run, Member: member, Step: step, Attempt: 1, Finish: "tool_calls"}
	for _, a := range asked {
		var c pb.ToolCall
		if _, err := fmt.Sscan(a, &c.Id, &c.Name); err != nil {
			panic(err)
		}
		r.Calls = append(r.Calls, &c)
	}
	return r
}

// did is the outcome of a call.
func did(run, member string, step uint32, call, name, output string) *pb.ToolCallFinished {
	return &pb.ToolCallFinished{Run: run, Member: member, Step: step, Call: call, Name: name, Output: body(output)}
}

func begins(run, member string, step uint32, call, name string, idempotent bool) *pb.ToolCallStarted {
	return &pb.ToolCallStarted{Run: run, Member: member, Step: step, Call: call, Name: name, Idempotent: idempotent}
}

func ends(run, member string, reason pb.FinishReason) *pb.RunFinished {
	e := &pb.RunFinished{Run: run, Member: member, Reason: reason}
	if reason == failed || reason == outOfBudget {
		e.Code = "some-code"
	}
	return e
}

func body(text string) *pb.Body { return &pb.Body{Text: text} }

func mail(id, from, to string, kind pb.MailKind) *pb.MessageDelivered {
	return &pb.MessageDelivered{Message: id, From: from, To: to, Kind: kind, Body: body("words of " + id)}
}

const (
	brief  = pb.MailKind_MAIL_KIND_BRIEF
	text   = pb.MailKind_MAIL_KIND_TEXT
	words  = pb.MailKind_MAIL_KIND_USER_MESSAGE
	ready  = pb.MailKind_MAIL_KIND_TASK_READY
	notice = pb.MailKind_MAIL_KIND_TASK_NOTIFICATION
	report = pb.MailKind_MAIL_KIND_TEAM_REPORT
	alert  = pb.MailKind_MAIL_KIND_FRAMEWORK_ALERT

	completed   = pb.FinishReason_FINISH_REASON_COMPLETED
	idle        = pb.FinishReason_FINISH_REASON_IDLE
	waiting     = pb.FinishReason_FINISH_REASON_WAITING
	interrupted = pb.FinishReason_FINISH_REASON_INTERRUPTED
	cancelled   = pb.FinishReason_FINISH_REASON_CANCELLED
	failed      = pb.FinishReason_FINISH_REASON_FAILED
	outOfBudget = pb.FinishReason_FINISH_REASON_OUT_OF_BUDGET

	pending   = pb.TaskStatus_TASK_STATUS_PENDING
	claimable = pb.TaskStatus_TASK_STATUS_CLAIMABLE
)

// bound is a definition with a coordination tool of each kind, a tool that can be
// repeated and one that cannot.
func bound() *pb.AgentBound {
	a := &pb.AgentBound{Definition: &pb.AgentDefinition{Name: "general", Model: "m"}, Renderer: 1}
	for _, name := range []string{"team_create", "team_member_add", "team_member_remove", "team_dissolve", "send_message", "task_create", "task_update", "task_complete", "task_list", "task", "complete"} {
		a.Tools = append(a.Tools, &pb.ToolDefinition{Name: name, Coordination: true})
	}
	a.Tools = append(a.Tools, &pb.ToolDefinition{Name: "file_write", Idempotent: true}, &pb.ToolDefinition{Name: "deploy"},
		&pb.ToolDefinition{Name: "publish", NeedsApproval: true})
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(a)
	if err != nil {
		panic(err)
	}
	a.Hash = hash(raw)
	return a
}
