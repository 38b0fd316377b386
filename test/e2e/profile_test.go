package e2e_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/model/scripted/demo"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// TestProfile plays the team in three notebooks under every policy and field,
// by one script: what the page shows can only come from what was delivered.
func TestProfile(t *testing.T) {
	t.Parallel()
	p := newPlace(t, demo.Script())
	p.start()
	c := p.client()
	rows := []struct {
		name   string
		policy demo.Policy
		field  string
		binds  string
		shows  string
		run    *command
	}{
		{name: "profile-send-update", policy: demo.SendUpdate, field: demo.NewField, binds: "display_name", shows: "Ada"},
		{name: "profile-stale-contract", policy: demo.StatusOnly, field: demo.NewField, binds: "name", shows: "Name unavailable"},
		{name: "profile-unchanged", policy: demo.StatusOnly, field: demo.OldField, binds: "name", shows: "Ada"},
		{name: "profile-send-unchanged", policy: demo.SendUpdate, field: demo.OldField, binds: "name", shows: "Ada"},
	}
	for i, row := range rows {
		rows[i].run = p.begin("run", demo.Objective(row.policy, row.field), "--name", row.name, "--contract", "mailbox", "--json")
	}
	var opened []string
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := p.on(t)
			end := row.run.wait().ended(t)
			id := end.Conversation
			opened = append(opened, id)
			if end.Status != "done" || end.Exit != 0 || !strings.HasPrefix(end.Answer, "Profile preview: "+row.shows+"\n") {
				t.Errorf("it ended with %+v, want %s", end, row.shows)
			}
			facts := p.facts(c, id)
			p.page(c, id, row.binds)
			p.overlap(id, facts)
			p.onlyItsReaders(id, row.policy, row.field)
			p.idleAtEnd(c, id, row.name, row.binds)
		})
	}
	p.settle(c, opened...)
}

// page checks what Frontend made of the contract it knew.
func (p *place) page(c *api.Client, id, binds string) {
	p.t.Helper()
	if page := p.ok("files", id+"/Frontend", "get", "page.html"); !strings.Contains(page, "response."+binds+";") {
		p.t.Errorf("the page is %q, want it to bind %s", page, binds)
	}
	s := p.state(c, id)
	for _, task := range s.Tasks {
		if domain.Word(task.Status) != "completed" {
			p.t.Errorf("%s is %s", task.ID, domain.Word(task.Status))
		}
	}
	if len(s.Tasks) != 3 {
		p.t.Errorf("there are %d tasks", len(s.Tasks))
	}
}

// overlap: t1 and t2 went on side by side, by the log and by the model server's
// record; t3 could start only when both were done, and did start.
func (p *place) overlap(id string, facts []fact) {
	p.t.Helper()
	at := func(what string, ok func(*rollcallv1.Event) bool) uint64 { return versionOf(p.t, facts, what, ok) }
	begun := max(at("t1 is claimed", claimed("t1")), at("t2 is claimed", claimed("t2")))
	first := min(at("t1 is completed", completed("t1")), at("t2 is completed", completed("t2")))
	both := max(at("t1 is completed", completed("t1")), at("t2 is completed", completed("t2")))
	if begun >= first {
		p.t.Errorf("both were claimed only at version %d, and one was completed at %d", begun, first)
	}
	if ready := at("t3 can start", promoted("t3")); ready != both || at("t3 is claimed", claimed("t3")) <= ready {
		p.t.Errorf("t3 could start at version %d, both were completed at %d", ready, both)
	}
	for _, created := range only(facts, (*rollcallv1.Event).GetTaskCreated) {
		if created.GetTask() == "t3" && domain.Word(created.GetStatus()) != "pending" {
			p.t.Errorf("t3 began as %s", domain.Word(created.GetStatus()))
		}
	}
	deliver := map[string]bool{"deliver t1": true, "deliver t1 and send the contract": true, "deliver t2": true}
	var starts, ends []time.Time
	for _, r := range p.asked(id, "") {
		switch {
		case r.RuleName == "claim t1", r.RuleName == "claim t2":
			starts = append(starts, r.Time)
		case deliver[r.RuleName]:
			ends = append(ends, r.Time)
		}
	}
	if len(starts) != 2 || len(ends) != 2 {
		p.t.Fatalf("%d claims and %d deliveries were asked for", len(starts), len(ends))
	}
	for _, start := range starts {
		for _, end := range ends {
			if !start.Before(end) {
				p.t.Errorf("one member began at %v, another had ended at %v", start, end)
			}
		}
	}
}

// profile-message-elsewhere: the contract is shown to Frontend alone, and only
// if it was sent; the report to Lead alone. Without an update nothing else tells
// Frontend the field: profile-empty-mailbox.
func (p *place) onlyItsReaders(id string, policy demo.Policy, field string) {
	p.t.Helper()
	contract, report := mailed("Contract: field "+field+". Example"), mailed("Binding key: ")
	for _, r := range p.asked(id, "") {
		if got := contract.MatchString(r.Messages); got && (policy == demo.StatusOnly || r.Member != "Frontend") {
			p.t.Errorf("%s was shown the contract", r.Member)
		}
		if report.MatchString(r.Messages) && r.Member != "Lead" {
			p.t.Errorf("%s was shown the report to Lead", r.Member)
		}
		if policy == demo.StatusOnly && r.Member == "Frontend" && bytes.Contains(r.Body, []byte(demo.NewField)) {
			p.t.Errorf("Frontend knows %s, and nobody told it", demo.NewField)
		}
	}
	if last := p.asked(id, "Frontend"); policy == demo.SendUpdate && !contract.MatchString(last[len(last)-1].Messages) {
		p.t.Error("Frontend was never shown the contract")
	}
}

// mailed finds words at the head of a message that stands in a user message.
func mailed(words string) *regexp.Regexp {
	return regexp.MustCompile(`"role":"user","content":"(?:[^"\\]|\\.)*` + regexp.QuoteMeta(words))
}

// profile-idle-at-end: every member is idle with its context, and a follow-up
// goes on from there.
func (p *place) idleAtEnd(c *api.Client, id, name, binds string) {
	p.t.Helper()
	resting(p.t, p.state(c, id))
	before := len(p.asked(id, ""))
	p.ok("send", name+"/Frontend", "Which field does your page read?", "--wait")
	after := p.asked(id, "")
	if len(after) != before+1 || after[before].RuleName != "rest of Frontend" || times(p.t, after[before], "Your name is") != 1 {
		p.t.Fatalf("the follow-up made %d calls", len(after)-before)
	}
	if words := newest(p.t, after[before]); words.outside != "Which field does your page read?" || len(words.mail) > 0 {
		p.t.Errorf("the follow-up is not read as the operator's words: %+v", words)
	}
	if !strings.Contains(after[before].Messages, `response.`+binds) {
		p.t.Error("Frontend does not remember the page that it made")
	}
	resting(p.t, p.state(c, id))
}

// gated is the demo's script with holds at some of its rules.
func gated(t *testing.T, holds map[string]string) string {
	t.Helper()
	yaml := string(demo.YAML())
	for rule, hold := range holds {
		name := "  - name: " + rule + "\n"
		if !strings.Contains(yaml, name) {
			t.Fatalf("the demo has no rule %q", rule)
		}
		yaml = strings.Replace(yaml, name, name+"    hold: "+hold+"\n", 1)
	}
	return yaml
}

// TestProfileDelivery looks at the moment between a task's completion and the
// reading of the message that came with it, and delivers that message again.
func TestProfileDelivery(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, gated(t, map[string]string{"write the layout": "layout", "deliver t1 and send the contract": "API"})))
	p.start()
	c := p.client()
	id := p.detach("page", demo.Objective(demo.SendUpdate, demo.NewField))

	t.Run("profile-completed-is-not-delivered", func(t *testing.T) {
		p := p.on(t)
		p.held("layout")
		p.held("API")
		p.models.Release("API")
		p.until(c, id, "Backend rests", idle("Backend"))
		shows := document[api.Detail](p, "show", id)
		for _, task := range shows.Tasks.List {
			if task.ID == "t1" && task.Status != "completed" || task.ID == "t3" && task.Status != "pending" {
				t.Errorf("the board says that %s is %s", task.ID, task.Status)
			}
		}
		mail := document[api.MailAnswer](p, "mail", id+"/Frontend", "--unread")
		if len(mail.Messages) != 1 || mail.Messages[0].From != "Backend" || !strings.Contains(mail.Messages[0].Text.Text, demo.NewField) {
			t.Errorf("the mailbox of Frontend holds %+v", mail.Messages)
		}
		for _, r := range p.asked(id, "Frontend") {
			if bytes.Contains(r.Body, []byte(demo.NewField)) || times(t, r, "Contract: field name") != 1 {
				t.Errorf("request %d of Frontend says more than it was told", r.N)
			}
		}
		p.models.Release("layout")
		s := p.until(c, id, "the page is made", quiet)
		if got := answer(p.events(c, id)); !strings.HasPrefix(got, "Profile preview: Ada\n") {
			t.Errorf("the answer is %q", got)
		}
		for _, r := range p.asked(id, "Frontend") {
			if n := times(t, r, "Contract: field "+demo.NewField); n > 1 || r.RuleName == "claim t3" && n != 1 {
				t.Errorf("request %d of Frontend shows the message %d times", r.N, n)
			}
		}
		resting(t, s)
	})

	t.Run("profile-duplicate-delivery", func(t *testing.T) {
		const words = "The contract is still display_name."
		sub := got(p.nats().SubscribeSync("e2e.answers.>")).must(t)
		deliver := func() *rollcallv1.Answer {
			m := inbox(id, "m2", words, "Rollcall-Id", "contract-again", "Rollcall-Reply", "e2e.answers."+nats.NewInbox()[7:])
			p.publish(p.nats(), m)
			return p.answered(sub)
		}
		first := deliver()
		p.until(c, id, "it is read", quiet)
		again := []*rollcallv1.Answer{deliver()}
		<-time.After(3 * eventstoreWindow) // the inbox itself forgets by now
		again = append(again, deliver())
		p.kill()
		p.start()
		again = append(again, deliver())
		for _, a := range again {
			if a.GetVersion() != first.GetVersion() || a.GetSubject() != first.GetSubject() || a.GetRefusal() != nil {
				t.Errorf("delivered again it came to %v, the first time to %v", a, first)
			}
		}
		p.ok("send", id+"/Frontend", "Which field?", "--wait")
		asked := p.asked(id, "Frontend")
		if n := times(t, asked[len(asked)-1], words); n != 1 {
			t.Errorf("Frontend is shown it %d times", n)
		}
	})
	p.settle(c, id)
}
