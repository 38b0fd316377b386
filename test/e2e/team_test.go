package e2e_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

const teamScript = `rules:
  # The Lead by any other name.
  - name: alias team
    member: '^Lead$'
    has: [Case alias]
    lacks: ['"name":"team_create","arguments"']
    tools:
      - {name: team_create, args: {name: echoes}}
      - {name: team_member_add, args: {name: LEAD, initial_prompt: Be another Lead.}}
      - {name: team_member_add, args: {name: Ｌｅａｄ, initial_prompt: Be another Lead.}}
      - {name: team_member_add, args: {name: Lеad, initial_prompt: Be another Lead.}}
      - {name: team_member_add, args: {name: ' Echo ', initial_prompt: Call the Lead.}}
  - name: call
    member: '^Echo$'
    lacks: ['"name":"send_message","arguments"']
    tools:
      - {name: send_message, args: {to: lead, text: call 1}}
      - {name: send_message, args: {to: LEAD, text: call 2}}
      - {name: send_message, args: {to: Lead, text: call 3}}
      - {name: send_message, args: {to: ' lEaD ', text: call 4}}
      - {name: send_message, args: {to: Leda, text: call 5}}
      - {name: send_message, args: {to: echo, text: call 6}}
  - {name: called, member: '^Lead$', has: [Case alias], text: I hear.}
  - {name: echo rests, member: '^Echo$', text: I called.}

  # One team at a time.
  - name: two teams
    member: '^Lead$'
    has: [Case teams]
    lacks: ['"name":"team_create","arguments"']
    tools:
      - {name: team_create, args: {name: first}}
      - {name: team_create, args: {name: second}}
      - {name: team_dissolve, args: {}}
      - {name: team_create, args: {name: third}}
  - {name: teams done, member: '^Lead$', has: [Case teams], text: One at a time.}

  # Shut down for good.
  - name: hire
    member: '^Lead$'
    has: [Case remove]
    lacks: ['"name":"team_create","arguments"']
    tools:
      - {name: team_create, args: {name: short}}
      - {name: team_member_add, args: {name: Guest, initial_prompt: Stay a while.}}
      - {name: team_member_add, args: {name: Host, initial_prompt: Stay.}}
      - {name: task_create, args: {title: sit, description: Sit down., owner: Guest}}
  - name: remove
    member: '^Lead$'
    has: [Case remove]
    lacks: ['"name":"team_member_remove","arguments"']
    hold: guest is here
    tools:
      - {name: team_member_remove, args: {name: Guest}}
      - {name: send_message, args: {to: Guest, text: Are you there?}}
      - {name: team_member_add, args: {name: Guest, initial_prompt: Come back.}}
  - {name: removed, member: '^Lead$', has: [Case remove], text: Guest is gone.}
  - {name: stay, member: '^Guest$', hold: for ever, text: Never said.}
  - {name: host, member: '^Host$', text: I stay.}

  # Files of members.
  - name: writers
    member: '^Lead$'
    has: [Case files]
    lacks: ['"name":"team_create","arguments"']
    tools:
      - {name: team_create, args: {name: writers}}
      - {name: task_create, args: {title: draft, description: Write it., owner: Writer}}
      - {name: team_member_add, args: {name: Writer, initial_prompt: Write a draft.}}
      - {name: team_member_add, args: {name: Reader, initial_prompt: Read what is delivered.}}
  - name: write
    member: '^Writer$'
    lacks: ['"name":"file_write","arguments"']
    tools:
      - {name: file_write, args: {path: notes/draft.md, content: A secret draft.}}
      - {name: send_message, args: {to: Lead, text: Look at my draft.}}
      - {name: send_message, args: {to: Reader, text: Look at my draft.}}
  - {name: wrote, member: '^Writer$', lacks: [deliver it now], text: It is written.}
  - name: deliver
    member: '^Writer$'
    lacks: ['"name":"task_complete","arguments"']
    tools:
      - {name: task_complete, args: {task_id: t1, result: The draft., paths: [notes/draft.md]}}
      - {name: send_message, args: {to: Reader, text: It is delivered.}}
  - {name: delivered, member: '^Writer$', text: Delivered.}
  - {name: look early, member: '^Reader$', has: ['Look at my draft'], lacks: ['"name":"file_read","arguments"'], tools: [{name: file_read, args: {path: Writer/notes/draft.md}}, {name: file_list, args: {path: Writer}}]}
  - {name: look late, member: '^Reader$', has: [It is delivered], lacks: ['"name":"file_read".*"name":"file_read"'], tools: [{name: file_read, args: {path: Writer/notes/draft.md}}]}
  - {name: looked, member: '^Reader$', text: I have looked.}
  - name: lead reads
    member: '^Lead$'
    has: [Case files, 'Look at my draft']
    lacks: ['"name":"file_read","arguments"']
    tools:
      - {name: file_read, args: {path: Writer/notes/draft.md}}
      - {name: file_write, args: {path: Writer/notes/draft.md, content: Changed by the Lead.}}
      - {name: file_edit, args: {path: Writer/notes/draft.md, old: secret, new: public}}
      - {name: file_read, args: {path: ../../etc/passwd}}
  - name: lead asks for it
    member: '^Lead$'
    has: [Case files, 'Look at my draft']
    lacks: ['"name":"send_message","arguments"']
    hold: reader has looked
    tools: [{name: send_message, args: {to: Writer, text: 'Good, deliver it now.'}}]
  - {name: lead waits, member: '^Lead$', has: [Case files], text: The draft is on its way.}
`

// TestTeam: names, teams, shutting down and workspaces.
func TestTeam(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, teamScript))
	p.start()
	c := p.client()
	alias, teams := p.detach("alias", "Case alias: listen."), p.detach("teams", "Case teams: try.")
	remove, files := p.detach("remove", "Case remove: a guest."), p.detach("files", "Case files: a draft.")

	t.Run("mailbox-lead-alias", func(t *testing.T) {
		p := p.on(t)
		s := p.until(c, alias, "all rest", quiet)
		facts := p.facts(c, alias)
		for i, add := range outcomes(facts, "team_member_add") {
			if add.GetError() != (i < 3) || i < 3 && !strings.Contains(add.GetOutput().GetText(), "[name-reserved]") {
				t.Errorf("adding member %d came to %v", i, add)
			}
		}
		var calls []string
		for _, m := range delivered(facts, "lead") {
			if m.GetKind() == rollcallv1.MailKind_MAIL_KIND_TEXT {
				calls = append(calls, m.GetBody().GetText())
			}
		}
		if strings.Join(calls, ", ") != "call 1, call 2, call 3, call 4" || len(s.Members) != 2 {
			t.Errorf("the Lead of %d members was called %q", len(s.Members), calls)
		}
		for i, said := range outcomes(facts, "send_message") {
			text := said.GetOutput().GetText()
			if said.GetError() != (i > 3) || i > 3 && !(strings.Contains(text, "Lead") && strings.Contains(text, "[member-not-found]")) {
				t.Errorf("call %d came to %v", i+1, said)
			}
		}
	})

	t.Run("mailbox-one-active-team-a-conversation", func(t *testing.T) {
		p := p.on(t)
		s := p.until(c, teams, "all rest", quiet)
		made := outcomes(p.facts(c, teams), "team_create")
		if len(made) != 3 || made[0].GetError() || !made[1].GetError() || made[2].GetError() {
			t.Fatalf("three teams came to %v", made)
		}
		if why := made[1].GetOutput().GetText(); !strings.Contains(why, "[team-exists]") || !strings.Contains(why, "first") {
			t.Errorf("the second team is refused with %q", why)
		}
		if len(s.Teams) != 2 || s.Teams[0].Active || s.ActiveTeam() != s.Teams[1] || s.Teams[1].Name != "third" {
			t.Errorf("the teams are %+v and %+v", s.Teams[0], s.Teams[1])
		}
	})

	t.Run("mailbox-shutdown-is-terminal", func(t *testing.T) {
		p := p.on(t)
		stay := p.held("for ever")
		p.held("guest is here")
		p.models.Release("guest is here")
		p.until(c, remove, "all rest", quiet)
		p.poll("the guest's call is aborted", func() bool { return p.models.Requests()[stay.N-1].Ended })
		facts := p.facts(c, remove)
		if !p.models.Requests()[stay.N-1].Gone || ended(facts, stay.Run) != "cancelled" {
			t.Errorf("the guest's run ended as %q", ended(facts, stay.Run))
		}
		said, back := outcomes(facts, "send_message"), outcomes(facts, "team_member_add")
		if why := said[0].GetOutput().GetText(); !said[0].GetError() || !strings.Contains(why, "[member-shut-down]") || !strings.Contains(why, "Host") {
			t.Errorf("mail to it is refused with %q", why)
		}
		if why := back[2].GetOutput().GetText(); !back[2].GetError() || !strings.Contains(why, "[name-taken]") || !strings.Contains(why, "never used again") {
			t.Errorf("its name is refused with %q", why)
		}
		p.gone(remove)
	})

	t.Run("mailbox-lead-reads-members-files", func(t *testing.T) {
		p := p.on(t)
		p.served(files, "looked")
		p.held("reader has looked")
		p.models.Release("reader has looked")
		p.until(c, files, "all rest", func(s *domain.State) bool { return quiet(s) && len(s.OpenTasks()) == 0 })
		facts := p.facts(c, files)
		var reads, changes []string
		for _, tool := range []string{"file_read", "file_write", "file_edit"} {
			for _, o := range outcomes(facts, tool) {
				line := o.GetMember() + ": " + o.GetOutput().GetText()
				if o.GetError() {
					line = o.GetMember() + " refused"
				}
				if tool == "file_read" {
					reads = append(reads, line)
				} else if o.GetMember() == "lead" {
					changes = append(changes, line)
				}
			}
		}
		all := strings.Join(reads, "\n")
		if len(reads) != 4 || !strings.Contains(all, "lead: A secret draft.") || !strings.Contains(all, "lead refused") || !strings.Contains(all, "m2 refused") || !strings.Contains(all, "m2: A secret draft.") {
			t.Errorf("the files were read as\n%s", all)
		}
		if strings.Join(changes, "; ") != "lead refused; lead refused" {
			t.Errorf("the Lead changed another's file: %q", changes)
		}
		if got := p.ok("files", "files/Writer", "get", "notes/draft.md"); got != "A secret draft." {
			t.Errorf("the draft is now %q", got)
		}
	})
	p.settle(c, alias, teams, remove, files)

	t.Run("after a restart", func(t *testing.T) { p.on(t).gone(remove) })
}

// gone checks that nobody can write to the removed guest, from wherever.
func (p *place) gone(id string) {
	p.t.Helper()
	why := p.refused("member-shut-down", 4, "send", id+"/Guest", "Come back!")
	if !strings.Contains(why.Try, "Host") {
		p.t.Errorf("the refusal does not name who is there: %+v", why)
	}
	nc := p.nats()
	sub := got(nc.SubscribeSync(nats.NewInbox())).must(p.t)
	p.publish(nc, inbox(id, "m1", "Come back!", "Rollcall-Reply", sub.Subject))
	if a := p.answered(sub); a.GetRefusal().GetCode() != "member-shut-down" {
		p.t.Errorf("a publisher is answered %v", a)
	}
}
