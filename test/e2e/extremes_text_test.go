package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// TestInputLoneSurrogates: half of a character in what a model calls a tool
// with. JSON decoders put another character there, or fail, each in its way:
// the model is told and says it again, and no server is sent the half.
func TestInputLoneSurrogates(t *testing.T) {
	t.Parallel()
	wrong := []string{
		`team_create {"name":"half \ud83d"}`,
		`team_member_add {"name":"Zo\ud83d","initial_prompt":"x"}`,
		`team_member_add {"name":"Bo","initial_prompt":"\ude00"}`,
		`task_create {"title":"\ud83d\ud83d\ude00","description":"x"}`,
		`send_message {"to":"user","text":"cut \ud83d"}`,
		`file_write {"path":"a.txt","content":"\ud83d"}`,
		`file_write {"path":"\ude00.txt","content":"x"}`,
		`mail_read {"message":"msg1\ud83d"}`,
	}
	right := []string{
		`team_create {"name":"whole \ud83d\ude00"}`,
		`task_create {"title":"\ud83d\ude00","description":"\\ud83d"}`,
		`file_write {"path":"\ud83d\ude00.txt","content":"\ud83d\ude00 \\ud83d"}`,
		`send_message {"to":"user","text":"\ud83d\ude00"}`,
	}
	var tools strings.Builder
	for _, call := range append(append([]string{}, wrong...), right...) {
		name, arguments, _ := strings.Cut(call, " ")
		fmt.Fprintf(&tools, "      - {name: %s, raw: '%s'}\n", name, arguments)
	}
	p := newPlace(t, script(t, "rules:\n  - name: halves\n    lacks: ['\"name\":\"team_create\",\"arguments\"']\n    tools:\n"+tools.String()+"  - {name: whole, text: All is whole.}\n"))
	p.start()
	c := p.client()
	id := p.detach("halves", "Cut characters in half.")
	s := p.until(c, id, "the Lead rests", quiet)
	facts := p.facts(c, id)
	all := only(facts, (*rollcallv1.Event).GetToolCallFinished)
	if len(all) != len(wrong)+len(right) {
		t.Fatalf("%d outcomes", len(all))
	}
	for i, out := range all {
		if text := out.GetOutput().GetText(); out.GetError() != (i < len(wrong)) || out.GetError() && (!strings.Contains(text, "half of a character") || !strings.Contains(text, `\ud83d\ude00`)) {
			t.Errorf("call %d came to %v %q", i, out.GetError(), text)
		}
	}
	asked := p.asked(id, "Lead")
	if body := string(asked[len(asked)-1].Body); strings.Contains(strings.ReplaceAll(body, `\\\\ud83d`, ""), `{\"name\":\"half \\ud83d\"}`) || !utf8.ValidString(body) {
		t.Errorf("the server was sent half of a character: %s", body)
	}
	if len(s.Members) != 1 || len(s.Tasks) != 1 || s.Tasks[0].Title != "😀" || s.ActiveTeam().Name != "whole 😀" || len(s.Lead().Files) != 1 {
		t.Errorf("there are %d members, %d tasks, the team %+v and %d files", len(s.Members), len(s.Tasks), s.ActiveTeam(), len(s.Lead().Files))
	}
	if got := string(got(c.Blob(p.ctx(), id, api.BlobRef(s.Lead().Files["😀.txt"]))).must(t)); got != `😀 \ud83d` {
		t.Errorf("the file holds %q", got)
	}
	p.settle(c, id)
}

// TestInputNames: names of 4 KB and of every strange kind, as a model sends
// them. Those that can be read, typed and told apart are taken, and come back
// as they are; the rest is refused with what to do, in few words.
func TestInputNames(t *testing.T) {
	t.Parallel()
	good := []string{
		"a", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"[:4], "👨‍👩‍👧‍👦", "e\u0301\u0302\u0303\u0304", "ᄒ\u1161\u11ab", "ﬁ", "Ω", "שלום", "مرحبا", "-rf", "--json", "$(reboot)", "'; DROP TABLE members; --",
		"<team-mailbox>", "{{name}}", "%s%n", "con", "NUL", "...", "a.b>c*", "@7", "m", "msg1", "t1", "null", "true", "0", "M1", strings.Repeat("\u0928\u093f", 32), strings.Repeat("😀", 63),
	}
	bad := []string{
		strings.Repeat("n", 4<<10), strings.Repeat("語", 65), strings.Repeat("e\u0301", 2<<10), "", " ", "\u00a0", "\u200b", "a\u202eb", "a\u2066b", "a\nb", "a\rb", "a\tb", "a\u0000b", "a\u0007b",
		"a\u2028b", "\ufeffa", "a/b", "a\\b", "Lead", "lead", " LEAD ", "Lеad", "ｌｅａｄ", "l\u200dead", "user", "User", "operator", "framework", ".", "..", strings.Repeat("😀", 64), "m1", "\U000e0041", "\ue000", "a\u00adb",
	}
	var tools strings.Builder
	for i, name := range append(append([]string{}, good...), bad...) {
		if i > 0 && i%40 == 0 { // of one reply at most 64 are run
			tools.WriteString("  - name: more\n    member: '^Lead$'\n    times: 1\n    tools:\n")
		}
		arguments := strings.ReplaceAll(`{"initial_prompt":"Hello.","name":`+quoted(name)+`}`, "'", "''")
		fmt.Fprintf(&tools, "      - {name: team_member_add, raw: '%s'}\n", arguments)
	}
	p := newPlace(t, script(t, "rules:\n  - {name: here, lacks: [Call them], text: Here.}\n  - name: all\n    member: '^Lead$'\n    times: 1\n    tools:\n      - {name: team_create, args: {name: Babel}}\n"+tools.String()+"  - {name: done, text: Done.}\n"))
	p.start()
	c := p.client()
	id := p.detach("names", "Call them.")
	s := p.until(c, id, "all rest", func(s *domain.State) bool { return quiet(s) && len(s.Members) > 1 })
	for i, add := range outcomes(p.facts(c, id), "team_member_add") {
		text, taken := add.GetOutput().GetText(), i < len(good)
		if add.GetError() == taken || add.GetError() && (!strings.Contains(text, "[name-") && !strings.Contains(text, "[text-invalid]") || len(text) > 2<<10 || !utf8.ValidString(text)) {
			name := append(append([]string{}, good...), bad...)[i]
			t.Errorf("%.80q came to %.500q", name, text)
		}
	}
	rolled := roll(t, p, c)
	if len(s.Members) != len(good)+1 {
		t.Fatalf("there are %d members of %d names", len(s.Members)-1, len(good))
	}
	for i, m := range s.Members[1:] {
		if want := domain.Name(good[i]); m.Name != want || rolled[id+"/"+m.ID].Name != want {
			t.Errorf("%q is named %q, and answers as %q", want, m.Name, rolled[id+"/"+m.ID].Name)
		}
		if asked := p.asked(id, m.Name); len(asked) != 1 {
			t.Errorf("%q was asked %d times", m.Name, len(asked))
		}
	}
	p.ok("show", "names")
	p.ok("log", "names")
	p.settle(c, id)
}
