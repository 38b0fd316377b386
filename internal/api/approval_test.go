package api_test

import (
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// The first answer counts; who comes later is told of it, over NATS as by the
// client.
func TestApprovals(t *testing.T) {
	w := newWorld(t)
	answer, refused := w.ask("open", `{"name":"harbor","contract":"mailbox","objective":"go on",
		"approvals":{"tools":["team_create"],"timeout_seconds":3600,"default":"approve"}}`)
	if refused != nil {
		t.Fatal(refused)
	}
	id := answer["conversation"].(string)
	if _, err := w.decide(domain.Key{Tenant: "main", Conversation: id}, &rollcallv1.Command{Kind: &rollcallv1.Command_RecordReply{RecordReply: &rollcallv1.RecordReply{
		Member: "lead", Run: "r1", Step: 1, Attempt: 1, Calls: []*rollcallv1.ToolCall{{Name: "team_create", Arguments: `{"name":"crew"}`}},
	}}}); err != nil {
		t.Fatal(err)
	}
	d, err := w.client.Show(w.context(), api.ReadRequest{Conversation: id})
	if err != nil || len(d.Approvals) != 1 {
		t.Fatalf("shown %+v, %v", d.Approvals, err)
	}
	a := d.Approvals[0]
	if a.ID != "a1" || a.Status != "pending" || a.Tool != "team_create" || a.Arguments != `{"name":"crew"}` || a.Member != "Lead" ||
		a.Default != "approve" || !a.Due.After(a.Asked) || d.Verdict.Exit != 6 || len(d.NeedsOperator) != 1 {
		t.Errorf("shown %+v, %+v, %+v", a, d.Verdict, d.NeedsOperator)
	}
	if answer, refused = w.ask("approve", `{"conversation":"harbor","approval":"a1","reason":"a good plan"}`); refused != nil || answer["subject"] != "a1" {
		t.Fatalf("answered %v, %+v", answer, refused)
	}
	if _, err := w.client.Deny(w.context(), id, "a1", "too late"); api.AsRefusal(err).Code != "approval-decided" {
		t.Errorf("denied after it was approved: %v", err)
	}
	if d, err = w.client.Show(w.context(), api.ReadRequest{Conversation: id}); err != nil || len(d.Teams) != 1 {
		t.Fatalf("shown %+v, %v", d.Teams, err)
	}
	if a = d.Approvals[0]; a.Status != "approved" || a.By != "operator" || a.Reason != "a good plan" || a.Arguments != "" {
		t.Errorf("shown %+v", a)
	}
}
