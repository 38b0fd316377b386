package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// manyCalls is how many calls a reply of a model gone wild asks for.
const manyCalls = 10_000

func faultScript() string {
	return `rules:
  - {name: locked, member: '^Lead$', has: [Case key], times: 1, status: 401, text: Incorrect API key provided., code: invalid_api_key}
  - {name: unlocked, member: '^Lead$', has: [Case key], text: The key fits.}

  - {name: slow down, member: '^Lead$', has: [Case rate], times: 1, status: 429, retry_after: '1', text: Too many requests.}
  - {name: at your pace, member: '^Lead$', has: [Case rate], text: In good time.}

  - {name: broken server, member: '^Lead$', has: [Case server], times: 2, status: 500, text: Out of order.}
  - {name: mended server, member: '^Lead$', has: [Case server], text: In order.}

  - name: cut
    member: '^Lead$'
    has: [Case cut]
    times: 1
    cut: true
    tools: [{name: task_create, args: {title: once, description: This reply never ends., owner: Lead}}]
  - {name: reset, member: '^Lead$', has: [Case cut], times: 1, reset: true, text: And so it breaks off in the middle of a long sentence.}
  - name: whole
    member: '^Lead$'
    has: [Case cut]
    lacks: ['"name":"task_create","arguments"']
    tools: [{name: task_create, args: {title: once, description: This one does., owner: Lead}}, {name: task_complete, args: {task_id: t1, result: done}}]
  - {name: end of cut, member: '^Lead$', has: [Case cut], text: In one piece.}

  - name: too long
    member: '^Lead$'
    has: [Case length]
    times: 1
    finish: length
    text: I begin, and then I
    tools: [{name: task_create, args: {title: never, description: x, owner: Lead}}]
  - {name: short, member: '^Lead$', has: [Case length], text: Short.}

  - name: wild
    member: '^Lead$'
    has: [Case wild]
    lacks: [fewer calls]
    tools:
` + strings.Repeat("      - {name: task_list}\n", manyCalls) + `
  - {name: tamed, member: '^Lead$', has: [Case wild], text: Enough.}

  - name: nonsense
    member: '^Lead$'
    has: [Case nonsense]
    lacks: ['"name":"task_list","arguments"']
    tools:
      - {name: task_create, raw: '{"title": "half'}
      - {name: task_create, raw: '["a list"]'}
      - {name: team_sendMessage, args: {to: Lead}}
      - {name: 'rm -rf', args: {}}
      - {name: task_create, args: {titel: typo, description: x}}
      - {name: task_list, args: {}}
  - {name: sense, member: '^Lead$', has: [Case nonsense], text: Now I know.}

  - {name: silence, member: '^Lead$', has: [Case empty once], times: 1, text: ''}
  - {name: word, member: '^Lead$', has: [Case empty once], text: Here I am.}
  - {name: silence again, member: '^Lead$', has: [Case empty always], times: 2, text: ''}
  - {name: a word at last, member: '^Lead$', has: [Case empty always], text: Sorry.}
`
}

// TestModelFaults: whatever a model server does, nothing is lost, and the
// operator is told what to do.
func TestModelFaults(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, faultScript()))
	p.start()
	c := p.client()
	var opened []string
	open := func(p *place, name string) string {
		p.t.Helper()
		opened = append(opened, p.detach(name, "Case "+name+": do it."))
		return opened[len(opened)-1]
	}
	// done waits for the end and checks the answer.
	done := func(p *place, id, want string) []fact {
		p.t.Helper()
		p.until(c, id, "it is done", quiet)
		facts := p.facts(c, id)
		if got := answer(p.events(c, id)); got != want {
			p.t.Errorf("the answer is %q, want %q", got, want)
		}
		return facts
	}
	failures := func(facts []fact) (codes []string) {
		for _, f := range only(facts, (*rollcallv1.Event).GetModelCallFailed) {
			codes = append(codes, f.GetCode())
		}
		return codes
	}

	// A long reply takes a while; the others go on meanwhile.
	wild := open(p, "wild")

	// The key is refused: the words are unread again, and are read once when the
	// key is mended: mailbox-mail-returned.
	t.Run("mailbox-mail-returned", func(t *testing.T) {
		p := p.on(t)
		run := p.begin("run", "Case key: do it.", "--name", "key", "--contract", "mailbox", "--json")
		end := run.wait().ended(t)
		id := end.Conversation
		opened = append(opened, id)
		if end.Status != "failed" || end.Exit != 7 {
			t.Errorf("it ended with %+v", end)
		}
		facts := p.facts(c, id)
		finished := only(facts, (*rollcallv1.Event).GetRunFinished)
		if len(finished) != 1 || finished[0].GetCode() != "model-key-refused" || !strings.Contains(finished[0].GetDetail(), "OPENAI_API_KEY") {
			t.Errorf("the run ended with %v", finished)
		}
		if show := p.ok("show", "key"); !strings.Contains(show, "OPENAI_API_KEY") || !strings.Contains(show, "rollcall retry") {
			t.Errorf("show does not say what to do: %s", show)
		}
		returned := only(facts, (*rollcallv1.Event).GetMessagesReturned)
		unread := document[api.MailAnswer](p, "mail", "key/lead", "--unread")
		if len(returned) != 1 || len(unread.Messages) != 1 || unread.Messages[0].Text.Text != "Case key: do it." {
			t.Errorf("returned: %v; unread: %+v", returned, unread.Messages)
		}
		p.ok("retry", "key")
		done(p, id, "The key fits.")
		if r := p.served(id, "unlocked"); times(t, r, "Case key: do it.") != 1 {
			t.Error("the operator's words are shown more than once")
		}
	})

	t.Run("429 with Retry-After", func(t *testing.T) {
		p := p.on(t)
		id := open(p, "rate")
		if got := failures(done(p, id, "In good time.")); !slices.Equal(got, []string{"model-rate-limited"}) {
			t.Errorf("failures: %v", got)
		}
		asked := p.asked(id, "Lead")
		if len(asked) != 2 || asked[1].Time.Sub(asked[0].Time) < time.Second {
			t.Errorf("%d calls, the second %v after the first", len(asked), asked[1].Time.Sub(asked[0].Time))
		}
	})

	t.Run("a server that fails twice", func(t *testing.T) {
		p := p.on(t)
		if got := failures(done(p, open(p, "server"), "In order.")); !slices.Equal(got, []string{"model-server-error", "model-server-error"}) {
			t.Errorf("failures: %v", got)
		}
	})

	t.Run("replies that are cut", func(t *testing.T) {
		p := p.on(t)
		id := open(p, "cut")
		facts := done(p, id, "In one piece.")
		if got := failures(facts); !slices.Equal(got, []string{"model-cut", "model-cut"}) {
			t.Errorf("failures: %v", got)
		}
		if made := only(facts, (*rollcallv1.Event).GetTaskCreated); len(made) != 1 || made[0].GetDescription() != "This one does." {
			t.Errorf("tasks were made: %v", made)
		}
	})

	t.Run("a reply that is too long for its server", func(t *testing.T) {
		p := p.on(t)
		if made := only(done(p, open(p, "length"), "Short."), (*rollcallv1.Event).GetTaskCreated); len(made) != 0 {
			t.Errorf("a broken-off reply made %v", made)
		}
	})

	t.Run("calls that make no sense", func(t *testing.T) {
		p := p.on(t)
		facts := done(p, open(p, "nonsense"), "Now I know.")
		all := only(facts, (*rollcallv1.Event).GetToolCallFinished)
		want := [][]string{
			{"[argument-invalid]", "title (required)"},
			{"[argument-invalid]", "title (required)"},
			{"[tool-unknown]", "send_message"},
			{"[tool-unknown]", "task_create"},
			{"[argument-invalid]", "title"},
			nil,
		}
		if len(all) != len(want) {
			t.Fatalf("%d outcomes", len(all))
		}
		for i, words := range want {
			if all[i].GetError() != (words != nil) {
				t.Errorf("call %d came to %v", i, all[i])
			}
			for _, w := range words {
				if !strings.Contains(all[i].GetOutput().GetText(), w) {
					t.Errorf("call %d is answered %q, without %q", i, all[i].GetOutput().GetText(), w)
				}
			}
		}
	})

	t.Run("an empty reply", func(t *testing.T) {
		p := p.on(t)
		once := open(p, "empty once")
		done(p, once, "Here I am.")
		if last := newest(t, p.served(once, "word")); len(last.mail) != 1 || last.mail[0].head["kind"] != "framework_alert" {
			t.Errorf("it is asked again with %+v", last)
		}
		always := open(p, "empty always")
		p.until(c, always, "it gives up", quiet)
		if v := api.VerdictOf(p.state(c, always)); v.Exit != 7 || !strings.Contains(v.Why, "reply-empty") {
			t.Errorf("it ended with %+v", v)
		}
		p.ok("retry", always)
		done(p, always, "Sorry.")
	})
	t.Run("10,000 calls in a reply", func(t *testing.T) {
		p := p.on(t)
		facts := done(p, wild, "Enough.")
		s := p.state(c, wild)
		if v := api.VerdictOf(s); v.Exit != 0 {
			t.Errorf("it ended with %+v", v)
		}
		if all := outcomes(facts, "task_list"); len(all) > 0 {
			t.Errorf("%d of them were run", len(all))
		}
		if last := newest(t, p.served(wild, "tamed")); len(last.mail) != 1 || !strings.Contains(last.mail[0].text, "fewer calls") {
			t.Errorf("the model is told %+v", last)
		}
	})

	p.settle(c, opened...)
}

// TestModelDown: nobody listens where the model server should be. When it comes
// up, what waits is done without anybody's help.
func TestModelDown(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, "rules:\n  - {name: up, text: I am up.}\n"))
	p.start()
	c := p.client()
	p.door.shut()
	run := p.begin("run", "Is anybody there?", "--name", "down", "--contract", "mailbox", "--json")
	var id string
	p.poll("it was tried twice", func() bool {
		all := got(c.List(p.ctx())).must(t).Conversations
		if len(all) == 0 {
			return false
		}
		id = all[0].ID
		failed := only(p.facts(c, id), (*rollcallv1.Event).GetModelCallFailed)
		for _, f := range failed {
			if f.GetCode() != "model-unreachable" || !f.GetRetry() || !strings.Contains(f.GetError(), "OPENAI_BASE_URL") {
				t.Fatalf("a call failed: %v", f)
			}
		}
		return len(failed) >= 2
	})
	p.door.listen()
	if end := run.wait().ended(t); end.Answer != "I am up." || end.Exit != 0 {
		t.Errorf("it ended with %+v", end)
	}
	if asked := p.asked(id, ""); len(asked) != 1 {
		t.Errorf("the server was asked %d times", len(asked))
	}
	if s := p.state(c, id); s.Lead().Held || s.Status() != "idle" {
		t.Errorf("the Lead is %s", domain.Word(s.Lead().Status))
	}
	p.settle(c, id)
}

// TestScriptWithErrors: a script that cannot be served is told with its place,
// and no node is left behind.
func TestScriptWithErrors(t *testing.T) {
	t.Parallel()
	p := newPlace(t, script(t, "rules:\n  - {text: x}\n"))
	for yaml, where := range map[string]string{
		"rules:\n  - {txt: x}\n":               ":2:6:",
		"rules:\n  - {member: '(', text: x}\n": ":2:14:",
		"rules:\n  - {member: x}\n":            ":2:6:",
		"rules: [\n":                           ":1:",
		"":                                     ":1:1:",
		"rules:\n  - {text: 'bound {{key}}', times: -1}\n": ":2:",
	} {
		path := p.file("broken.yaml", yaml)
		why := p.refused("script-invalid", 2, "up", "--model", "scripted:"+path)
		if said := why.What + why.Why; !strings.Contains(said, "broken.yaml"+where) {
			t.Errorf("the script %q is refused with %+v", yaml, why)
		}
	}
	p.refused("script-invalid", 2, "up", "--model", "scripted:"+p.dir+"/none.yaml")
	p.refused("node-unreachable", 5, "ls")
}
