package domain_test

import (
	"fmt"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// The whole wake rule in one table: every kind of message meets a member in
// every status. The message is put into the log as it is, so that kinds which
// only the framework sends, and statuses that they never meet, are in it too;
// TestWakeTable brings those that a team can bring by its own means.
func TestEveryKindMeetsEveryStatus(t *testing.T) {
	const (
		starts  = "a run starts and reads it"
		kept    = "it is unread and starts nothing"
		nothing = "it is not among the mail"
	)
	waking := map[rollcallv1.MemberStatus]string{isSpawning: kept, isWorking: kept, isIdle: starts, isWaiting: starts, isShutdown: nothing}
	quiet := map[rollcallv1.MemberStatus]string{isSpawning: kept, isWorking: kept, isIdle: kept, isWaiting: kept, isShutdown: nothing}
	never := map[rollcallv1.MemberStatus]string{isSpawning: nothing, isWorking: nothing, isIdle: nothing, isWaiting: nothing, isShutdown: nothing}
	table := map[rollcallv1.MailKind]map[rollcallv1.MemberStatus]string{
		rollcallv1.MailKind_MAIL_KIND_BRIEF:             waking,
		rollcallv1.MailKind_MAIL_KIND_TEXT:              waking,
		rollcallv1.MailKind_MAIL_KIND_USER_MESSAGE:      waking,
		rollcallv1.MailKind_MAIL_KIND_TASK_READY:        waking,
		rollcallv1.MailKind_MAIL_KIND_TASK_NOTIFICATION: quiet,
		rollcallv1.MailKind_MAIL_KIND_TEAM_REPORT:       waking,
		rollcallv1.MailKind_MAIL_KIND_FRAMEWORK_ALERT:   waking,
		rollcallv1.MailKind_MAIL_KIND_CONTROL:           never, // acts at once, is never shown
	}
	if want := len(rollcallv1.MailKind_name) - 1; len(table) != want {
		t.Fatalf("%d kinds in the table, there are %d", len(table), want)
	}
	if want := len(rollcallv1.MemberStatus_name) - 1; len(waking) != want {
		t.Fatalf("%d statuses in the table, there are %d", len(waking), want)
	}
	for kind, row := range table {
		for status, want := range row {
			t.Run(domain.Word(kind)+"/"+domain.Word(status), func(t *testing.T) {
				k := inStatus(t, status)
				mustEqual(t, "status before", k.Member("m1").Status, status)
				s := k.State
				s.Evolve(&rollcallv1.Commit{Version: s.Version + 1, Epoch: 1, Events: []*rollcallv1.Event{domain.NewEvent(&rollcallv1.MessageDelivered{
					Message: "msg999", Kind: kind, From: domain.Framework, To: "m1", Body: &rollcallv1.Body{Text: "hello"},
				})}})
				mustEqual(t, string(want), meets(t, k), want)
			})
		}
	}
}

// Shutdown is control mail too, in the commit that it acts in.
func TestShutdownIsControlMail(t *testing.T) {
	for what, end := range map[string]func(k *domaintest.Kit) []*rollcallv1.Event{
		"removed": func(k *domaintest.Kit) []*rollcallv1.Event {
			return k.Events("lead", domaintest.Call("team_member_remove", args{"name": "A"}))
		},
		"dissolved": func(k *domaintest.Kit) []*rollcallv1.Event {
			return k.Events("lead", domaintest.Call("team_dissolve", args{}))
		},
	} {
		k := leading(t, "A")
		k.Do(domaintest.Say("m1", "work"))
		events := end(k)
		var control []*rollcallv1.MessageDelivered
		for _, m := range domaintest.Delivered(events, "m1") {
			if m.GetKind() == rollcallv1.MailKind_MAIL_KIND_CONTROL {
				control = append(control, m)
			}
		}
		if len(control) != 1 || control[0].GetTopic() != "shutdown" || control[0].GetFrom() != domain.Framework || control[0].GetBody().GetText() != "shutdown: "+what {
			t.Errorf("%s: %v", what, control)
		}
		mustEqual(t, what, k.Member("m1").Status, isShutdown)
	}
}

// meets lets the conversation come to rest after any other command, and says
// what became of the message.
func meets(t *testing.T, k *domaintest.Kit) string {
	t.Helper()
	b, err := k.State.Begin(k.Rules, domain.Stamp{Time: domaintest.Start, Epoch: 1})
	if err != nil {
		t.Fatal(err)
	}
	write := &rollcallv1.WriteFiles{Member: "lead", Files: []*rollcallv1.FileChange{{Path: "note.txt", Blob: &rollcallv1.Blob{Sha256: fmt.Sprintf("%064d", 1), Size: 1}}}}
	if _, err := b.Decide(&rollcallv1.Command{Kind: &rollcallv1.Command_WriteFiles{WriteFiles: write}}); err != nil {
		t.Fatal(err)
	}
	for _, id := range consumed(b.Commit().GetEvents(), "m1") {
		if id == "msg999" {
			return "a run starts and reads it"
		}
	}
	for _, id := range unread(k.Member("m1")) {
		if id == "msg999" {
			return "it is unread and starts nothing"
		}
	}
	return "it is not among the mail"
}
