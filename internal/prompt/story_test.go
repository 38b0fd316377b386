package prompt

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// A story is a log told event by event, one commit each, with the plan of the
// step that comes after it.
type story struct {
	Commits
	plan domain.StepPlan
}

var began = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

func tell(role rollcallv1.MemberRole, name string, tools ...string) *story {
	s := &story{Commits: Commits{ByVersion: map[uint64]*rollcallv1.Commit{}}}
	bound := &rollcallv1.AgentBound{
		Definition:   &rollcallv1.AgentDefinition{Name: "general", Model: "m-1", Prompt: "You write plain Go."},
		Instructions: "Work in turns.\n",
		Renderer:     Renderer,
	}
	for _, t := range tools {
		bound.Tools = append(bound.Tools, &rollcallv1.ToolDefinition{Name: t, Schema: `{"type":"object"}`})
	}
	s.plan = domain.StepPlan{
		Key:       domain.Key{Tenant: "main", Conversation: "01kaaaaaaaaaaaaaaaaaaaaaaa"},
		Member:    domain.MemberView{ID: "m1", Name: name, Role: role},
		Run:       "r1",
		Step:      1,
		Names:     map[string]string{"lead": "Lead", "m1": "Frontend", "m2": "Backend"},
		Situation: "team page (active)\nmembers: Lead idle, Backend working, Frontend working\nt1 in_progress Backend \"Build <b>API</b>\"",
	}
	s.plan.Agent = s.commit(&rollcallv1.Event{Kind: &rollcallv1.Event_AgentBound{AgentBound: bound}})
	return s
}

func (s *story) commit(e *rollcallv1.Event) *rollcallv1.Ref {
	v := uint64(len(s.ByVersion) + 1)
	s.ByVersion[v] = &rollcallv1.Commit{
		Version: v,
		Time:    timestamppb.New(began.Add(time.Duration(v) * time.Second)),
		Events:  []*rollcallv1.Event{e},
	}
	return &rollcallv1.Ref{Version: v}
}

func (s *story) add(e *rollcallv1.Event, mail ...*rollcallv1.MessageRef) {
	s.plan.Context = append(s.plan.Context, domain.ContextEntry{Ref: s.commit(e), Mail: mail})
}

// mail delivers a message; change may fill what is rare.
func (s *story) mail(id, from string, kind rollcallv1.MailKind, text string, change ...func(*rollcallv1.MessageDelivered)) *rollcallv1.MessageRef {
	d := &rollcallv1.MessageDelivered{Message: id, From: from, To: s.plan.Member.ID, Kind: kind, Body: &rollcallv1.Body{Text: text}}
	for _, c := range change {
		c(d)
	}
	return &rollcallv1.MessageRef{Message: id, Ref: s.commit(&rollcallv1.Event{Kind: &rollcallv1.Event_MessageDelivered{MessageDelivered: d}})}
}

func (s *story) text(id, from, text string) *rollcallv1.MessageRef {
	return s.mail(id, from, rollcallv1.MailKind_MAIL_KIND_TEXT, text)
}

func (s *story) operator(id, text string) *rollcallv1.MessageRef {
	return s.mail(id, domain.Operator, rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE, text)
}

func (s *story) run(run string, mail ...*rollcallv1.MessageRef) {
	s.plan.Run = run
	s.add(&rollcallv1.Event{Kind: &rollcallv1.Event_RunStarted{RunStarted: &rollcallv1.RunStarted{Run: run, Member: s.plan.Member.ID, Consumed: mail}}}, mail...)
}

func (s *story) consume(run string, mail ...*rollcallv1.MessageRef) {
	s.add(&rollcallv1.Event{Kind: &rollcallv1.Event_MessagesConsumed{MessagesConsumed: &rollcallv1.MessagesConsumed{Run: run, Member: s.plan.Member.ID, Messages: mail}}}, mail...)
}

func (s *story) reply(run string, step uint32, text string, calls ...*rollcallv1.ToolCall) {
	s.add(&rollcallv1.Event{Kind: &rollcallv1.Event_ModelReplied{ModelReplied: &rollcallv1.ModelReplied{
		Run: run, Member: s.plan.Member.ID, Step: step, Text: &rollcallv1.Body{Text: text}, Calls: calls,
	}}})
}

func call(id, name, args string) *rollcallv1.ToolCall {
	return &rollcallv1.ToolCall{Id: id, Name: name, Arguments: args}
}

func (s *story) result(run string, step uint32, call, text string, change ...func(*rollcallv1.ToolCallFinished)) {
	f := &rollcallv1.ToolCallFinished{Run: run, Member: s.plan.Member.ID, Step: step, Call: call, Output: &rollcallv1.Body{Text: text}}
	for _, c := range change {
		c(f)
	}
	s.add(&rollcallv1.Event{Kind: &rollcallv1.Event_ToolCallFinished{ToolCallFinished: f}})
}

func (s *story) finish(run string, reason rollcallv1.FinishReason, code string) {
	s.add(&rollcallv1.Event{Kind: &rollcallv1.Event_RunFinished{RunFinished: &rollcallv1.RunFinished{Run: run, Member: s.plan.Member.ID, Reason: reason, Code: code}}})
}

func failed(f *rollcallv1.ToolCallFinished)      { f.Error = true }
func outcomeLost(f *rollcallv1.ToolCallFinished) { f.Unknown = true }

// strict is a Source that refuses what Needs did not ask for.
type strict struct {
	Commits
	needs map[uint64]bool
}

func (s strict) Event(ref *rollcallv1.Ref) (*rollcallv1.Event, time.Time, error) {
	if !s.needs[ref.GetVersion()] {
		return nil, time.Time{}, fmt.Errorf("version %d was not among the plan's needs", ref.GetVersion())
	}
	return s.Commits.Event(ref)
}

func (s *story) source() Source {
	needs := map[uint64]bool{}
	for _, v := range Needs(s.plan) {
		needs[v] = true
	}
	return strict{s.Commits, needs}
}
