package domain_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

type args = domaintest.Args

// rules of a node with two external tools, one of them safe to repeat.
func rules() *domain.Rules {
	return &domain.Rules{
		Contracts: contract.All(),
		Tools: []*rollcallv1.ToolDefinition{
			{Name: "file_write", Schema: `{"type":"object"}`, Idempotent: true},
			{Name: "deploy", Schema: `{"type":"object"}`},
		},
		DefaultModel: "test-model",
		Limits:       domain.Limits{IdenticalCalls: domain.Off}, // tests say the same again and again
	}
}

// open is a mailbox conversation where nobody has said anything.
func open(t *testing.T) *domaintest.Kit {
	t.Helper()
	return domaintest.Open(t, rules(), "mailbox")
}

// team is a mailbox conversation of a Lead and these members, all at rest.
func team(t *testing.T, names ...string) *domaintest.Kit {
	t.Helper()
	return domaintest.Team(t, open(t), names...)
}

// unread are the ids of a member's unread mail.
func unread(m *domain.Member) []string {
	var ids []string
	for _, mail := range m.Unread {
		ids = append(ids, mail.ID)
	}
	return ids
}

// consumed are the ids that runs of the member consumed among events, in order.
func consumed(events []*rollcallv1.Event, member string) []string {
	var ids []string
	for _, e := range events {
		var mail []*rollcallv1.MessageRef
		switch {
		case e.GetRunStarted().GetMember() == member:
			mail = e.GetRunStarted().GetConsumed()
		case e.GetMessagesConsumed().GetMember() == member:
			mail = e.GetMessagesConsumed().GetMessages()
		}
		for _, m := range mail {
			ids = append(ids, m.GetMessage())
		}
	}
	return ids
}

// texts are the bodies of the mail that a member's transcript shows, in order.
func texts(k *domaintest.Kit, member string) []string {
	k.Helper()
	plan, ok := k.State.StepPlan(member)
	if !ok {
		k.Fatalf("%s has no open model call", member)
	}
	var bodies []string
	for _, entry := range plan.Context {
		for _, mail := range entry.Mail {
			bodies = append(bodies, k.Event(mail.GetRef()).GetMessageDelivered().GetBody().GetText())
		}
	}
	return bodies
}

func mustEqual[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s is %v, want %v", what, got, want)
	}
}

func mustBe(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s is %q, want %q", what, got, want)
	}
}

func mustContain(t *testing.T, what, got string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Fatalf("%s is %q, which lacks %q", what, got, part)
		}
	}
}
