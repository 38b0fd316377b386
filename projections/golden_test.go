package projections

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore/memory"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

var update = flag.Bool("update", false, "write the golden documents again")

// golden writes a conversation in which everything happens that a document
// shows, by hand, so that the documents change only when they are meant to.
func golden(t *testing.T, db *DB) *chain {
	t.Helper()
	log := memory.New()
	c := newChain(t, log, "01golden", "Café")
	text := func(s string) *rollcallv1.Body { return &rollcallv1.Body{Text: s} }
	ref := func(id string) []*rollcallv1.MessageRef { return []*rollcallv1.MessageRef{{Message: id}} }
	c.add(
		domain.NewEvent(&rollcallv1.TeamCreated{Team: "team1", Name: "crew"}),
		domain.NewEvent(&rollcallv1.MemberAdded{
			Member: "m1", Name: "Ana", Role: rollcallv1.MemberRole_MEMBER_ROLE_MEMBER, AgentType: "general", Team: "team1",
		}),
		domain.NewEvent(&rollcallv1.MessageDelivered{
			Message: "msg1", Kind: rollcallv1.MailKind_MAIL_KIND_BRIEF, From: domain.Framework, To: "m1", Body: text("write"),
		}),
		domain.NewEvent(&rollcallv1.TaskCreated{
			Task: "t1", Title: "write", Description: "a page", Owner: "Ana", Creator: domain.LeadID, Team: "team1",
			Status: rollcallv1.TaskStatus_TASK_STATUS_CLAIMABLE,
		}),
		domain.NewEvent(&rollcallv1.TaskCreated{
			Task: "t2", Title: "read it", Owner: domain.User, Creator: "m1", Dependencies: []string{"t1"}, Status: rollcallv1.TaskStatus_TASK_STATUS_PENDING,
		}),
		domain.NewEvent(&rollcallv1.RunStarted{Run: "r1", Member: "m1", Consumed: ref("msg1"), AgentHash: "abcd"}),
		domain.NewEvent(&rollcallv1.ModelCallStarted{Run: "r1", Member: "m1", Step: 1, Attempt: 1}),
	)
	c.add(
		domain.NewEvent(&rollcallv1.ModelCallFailed{Run: "r1", Member: "m1", Step: 1, Attempt: 1, Code: "model-timeout", Retry: true}),
		domain.NewEvent(&rollcallv1.ModelCallStarted{Run: "r1", Member: "m1", Step: 1, Attempt: 2}),
	)
	c.add(
		domain.NewEvent(&rollcallv1.ModelReplied{
			Run: "r1", Member: "m1", Step: 1, Attempt: 2, Text: text("Here."), Finish: "tool_calls", Model: "m-1", RequestHash: "ef01",
			Usage: &rollcallv1.Usage{InputTokens: 1200, OutputTokens: 34, CachedTokens: 1000, CostMicros: 31_000},
		}),
		domain.NewEvent(&rollcallv1.ToolCallFinished{Run: "r1", Member: "m1", Step: 1, Call: "1", Name: "file_write"}),
		domain.NewEvent(&rollcallv1.FileWritten{Member: "m1", Path: "page.md", Blob: &rollcallv1.Blob{Sha256: "0123", Size: 5}}),
		domain.NewEvent(&rollcallv1.TaskClaimed{Task: "t1", Owner: "Ana", By: "m1"}),
		domain.NewEvent(&rollcallv1.TaskCompleted{Task: "t1", By: "m1", Delivery: &rollcallv1.Delivery{Summary: "a page", Paths: []string{"page.md"}}}),
		domain.NewEvent(&rollcallv1.TaskPromoted{Task: "t2", Status: rollcallv1.TaskStatus_TASK_STATUS_CLAIMABLE}),
		domain.NewEvent(&rollcallv1.MessageDelivered{
			Message: "msg2", Kind: rollcallv1.MailKind_MAIL_KIND_TEXT, From: "m1", To: domain.LeadID,
			Body: &rollcallv1.Body{Blob: &rollcallv1.Blob{Sha256: "4567", Size: 70_000}}, ReplyTo: "msg1",
		}),
		domain.NewEvent(&rollcallv1.RunFinished{Run: "r1", Member: "m1", Reason: rollcallv1.FinishReason_FINISH_REASON_IDLE}),
		domain.NewEvent(&rollcallv1.RunStarted{Run: "r2", Member: domain.LeadID, Consumed: ref("msg2"), AgentHash: "abcd"}),
		domain.NewEvent(&rollcallv1.ModelCallStarted{Run: "r2", Member: domain.LeadID, Step: 1, Attempt: 1}),
	)
	c.add(
		domain.NewEvent(&rollcallv1.RunResumed{Run: "r2", Member: domain.LeadID, Node: "n2", Attempt: 1}),
		domain.NewEvent(&rollcallv1.ModelReplied{
			Run: "r2", Member: domain.LeadID, Step: 1, Attempt: 1, Text: text("It is written."), Finish: "stop", Model: "m-2",
			Usage: &rollcallv1.Usage{InputTokens: 10, OutputTokens: 2, Estimated: true},
		}),
		domain.NewEvent(&rollcallv1.LeadReplied{Run: "r2", Text: text("It is written.")}),
		domain.NewEvent(&rollcallv1.MessageDelivered{Message: "msg3", Kind: rollcallv1.MailKind_MAIL_KIND_TEXT, From: domain.LeadID, To: domain.User, Body: text("Look.")}),
	)
	stop := following(t, db, log)
	waitFor(t, db, c.key, c.at.Version)
	stop()
	return c
}

func TestGoldenDocuments(t *testing.T) {
	db := open(t)
	c := golden(t, db)
	ctx := t.Context()
	for name, query := range map[string]func() (any, error){
		"ls": func() (any, error) {
			all, err := db.Conversations(ctx, "main")
			return List{Conversations: all}, err
		},
		"show":  func() (any, error) { return db.Conversation(ctx, c.key) },
		"mail":  func() (any, error) { return db.Mail(ctx, c.key, "", 0, false) },
		"runs":  func() (any, error) { return db.Runs(ctx, c.key, "") },
		"usage": func() (any, error) { return db.Usage(ctx, c.key) },
		"files": func() (any, error) { return db.Files(ctx, c.key, "") },
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := query()
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			enc := json.NewEncoder(&got)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			if err := enc.Encode(doc); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("%s (-want +got; go test -update writes it again):\n%s", path, diff)
			}
		})
	}
}

func TestMailOfAMember(t *testing.T) {
	db := open(t)
	c := golden(t, db)
	for _, q := range []struct {
		member string
		limit  int
		unread bool
		want   []string
	}{
		{"", 0, false, []string{"msg1", "msg2", "msg3"}},
		{"", 2, false, []string{"msg2", "msg3"}},
		{"m1", 0, false, []string{"msg1"}},
		{domain.User, 0, false, []string{"msg3"}},
		{domain.User, 0, true, nil},
		{"", 0, true, nil},
		{"m9", 0, false, nil},
	} {
		found, err := db.Mail(t.Context(), c.key, q.member, q.limit, q.unread)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range found {
			got = append(got, m.ID)
		}
		if diff := cmp.Diff(q.want, got); diff != "" {
			t.Errorf("Mail(%q, %d, %t) (-want +got):\n%s", q.member, q.limit, q.unread, diff)
		}
	}
}

func TestResolveAndRefusals(t *testing.T) {
	db := open(t)
	c := golden(t, db)
	ctx := t.Context()
	for _, ref := range []string{"01golden", "01g", "Café", "caf"} {
		if key, err := db.Resolve(ctx, "main", ref); err != nil || key != c.key {
			t.Errorf("Resolve(%q) = %v, %v", ref, key, err)
		}
	}
	_, err := db.Resolve(ctx, "main", "cafe")
	refused(t, err, "conversation-not-found", "Café", "rollcall ls")
	_, err = db.Resolve(ctx, "other", "01golden")
	refused(t, err, "conversation-not-found")
	for ref, want := range map[string]string{"lead": "lead", "LEAD": "lead", "m1": "m1", "an": "m1"} {
		if id, err := db.Member(ctx, c.key, ref); err != nil || id != want {
			t.Errorf("Member(%q) = %q, %v", ref, id, err)
		}
	}
	_, err = db.Member(ctx, c.key, "Zoe")
	refused(t, err, "member-not-found", "Lead", "Ana")

	nobody := domain.Key{Tenant: "main", Conversation: "99"}
	_, err = db.Conversation(ctx, nobody)
	refused(t, err, "conversation-not-found")
	_, err = db.Mail(ctx, nobody, "", 0, false)
	refused(t, err, "conversation-not-found")
	_, err = db.Runs(ctx, nobody, "")
	refused(t, err, "conversation-not-found")
	_, err = db.Usage(ctx, nobody)
	refused(t, err, "conversation-not-found")
	_, err = db.Files(ctx, nobody, "")
	refused(t, err, "conversation-not-found")
	_, err = db.Member(ctx, nobody, "lead")
	refused(t, err, "conversation-not-found")
	if all, err := db.Conversations(ctx, "other"); err != nil || all == nil || len(all) != 0 {
		t.Errorf("a tenant without conversations: %v, %v", all, err)
	}
}
