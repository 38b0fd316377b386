package domain_test

import (
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/domain/domaintest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func TestMentioned(t *testing.T) {
	names := []string{"Back", "Backend", "Backend Two", "Über", "語", "A.B"}
	for text, want := range map[string]string{
		"@Backend use blue":       "Backend",
		"@Backend":                "Backend",
		"@Backend: use blue":      "Backend",
		"@Backend, use blue":      "Backend",
		"@Backend:blue":           "Backend",
		"@Backend.\nBlue.":        "Backend",
		"@Backend - blue":         "Backend",
		"@Backend Two, go on":     "Backend Two",
		"@Backend Twofold":        "Backend",
		"@U\u0308ber alles":       "Über", // written in two characters
		"@語、":                     "語",
		"@A.B ok":                 "A.B",
		"@Back":                   "Back",
		"@Backender":              "",
		"@Back-end":               "",
		"@Backend/api.json is ok": "",
		"@Backend@example.org":    "",
		"@backend use blue":       "",
		"@ Backend":               "",
		"Backend: use blue":       "",
		"ask @Backend":            "",
		"@Frontend":               "",
		"@語語":                     "",
		"@":                       "",
		"":                        "",
	} {
		if got := domain.Mentioned(text, names); got != want {
			t.Errorf("%q mentions %q, want %q", text, got, want)
		}
	}
	if got := domain.Mentioned("@ x", []string{""}); got != "" {
		t.Errorf("an empty name is mentioned: %q", got)
	}
}

// Words to the Lead that begin with a member's name are that member's mail, as
// if they had been sent to it.
func TestMentionAddressesTheMember(t *testing.T) {
	k := team(t, "Backend", "Frontend")
	k.Do(domaintest.Say("", "go on"))
	run := k.Member("lead").Run.ID
	events := k.Do(domaintest.Say("", "@Backend: use blue"))
	mustEqual(t, "events", domaintest.Names(events), "MessageDelivered RunStarted ModelCallStarted")
	mail := events[0].GetMessageDelivered()
	mustEqual(t, "to", mail.GetTo(), "m1")
	mustEqual(t, "from", mail.GetFrom(), domain.Operator)
	mustEqual(t, "text", mail.GetBody().GetText(), "@Backend: use blue")
	mustEqual(t, "mode", mail.GetMode(), rollcallv1.MailMode_MAIL_MODE_STEER)
	mustEqual(t, "the Lead's run", k.Member("lead").Run.ID, run)

	mine := k.Member("m1").Run.ID
	k.Do(domaintest.Say("lead", "@Backend and green"))
	mustEqual(t, "Backend's run", k.Member("m1").Run.ID, mine)
	k.Do(domaintest.SayMode("", "@Backend stop", rollcallv1.MailMode_MAIL_MODE_INTERRUPT))
	if k.Member("m1").Run.ID == mine || k.Member("lead").Run.ID != run {
		t.Error("what interrupts is not the run of the member that is mentioned")
	}
}

func TestMentionOfNobodyIsForTheLead(t *testing.T) {
	k := team(t, "Backend", "Frontend")
	k.Do(domaintest.Say("", "remove Frontend"))
	k.Acts("lead", "team_member_remove", args{"name": "Frontend"})
	for _, text := range []string{"@Frontend: hello", "@backend hello", "@Nobody hello", "@Lead hello", "@m1 hello", "@user hello"} {
		mail := domaintest.Delivered(k.Do(domaintest.Say("", text)), "lead")
		if len(mail) != 1 || mail[0].GetBody().GetText() != text {
			t.Errorf("%q: the Lead has %v", text, mail)
		}
	}
	t.Run("sent to another member", func(t *testing.T) {
		k := team(t, "Backend", "Frontend")
		if mail := domaintest.Delivered(k.Do(domaintest.Say("m2", "@Backend is wrong")), "m2"); len(mail) != 1 {
			t.Errorf("Frontend has %v", mail)
		}
	})
	t.Run("an alert", func(t *testing.T) {
		if mail := domaintest.Delivered(k.Do(domaintest.Alert("", "@Backend is down")), "lead"); len(mail) != 1 {
			t.Errorf("the Lead has %v", mail)
		}
	})
}
