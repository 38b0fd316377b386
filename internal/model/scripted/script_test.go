package scripted

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write testdata/errors.txtar anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestErrors: an error of a script says where it is and what is wrong.
func TestErrors(t *testing.T) {
	path := filepath.Join("testdata", "errors.txtar")
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	out := &txtar.Archive{Comment: archive.Comment}
	for _, f := range archive.Files {
		if name, ok := strings.CutSuffix(f.Name, ".err"); ok {
			want[name] = strings.TrimSpace(string(f.Data))
		}
	}
	for _, f := range archive.Files {
		name, ok := strings.CutSuffix(f.Name, ".yaml")
		if !ok {
			continue
		}
		_, err := Parse(f.Name, f.Data)
		if _, ok := errors.AsType[*SyntaxError](err); !ok {
			t.Errorf("%s: error is %v, want a *SyntaxError", f.Name, err)
			continue
		}
		if !*update && err.Error() != want[name] {
			t.Errorf("%s:\n got %s\nwant %s", name, err, want[name])
		}
		out.Files = append(out.Files, f, txtar.File{Name: name + ".err", Data: []byte(err.Error() + "\n")})
	}
	if *update {
		if err := os.WriteFile(path, txtar.Format(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLoad(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
	path := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(path, []byte("rules:\n  - text: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Load(path)
	if err != nil || s.Name() != path {
		t.Errorf("%v, %v", s, err)
	}
}

func mustParse(t *testing.T, text string) *Script {
	t.Helper()
	s, err := Parse(t.Name()+".yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFind(t *testing.T) {
	s := mustParse(t, `
rules:
  - {member: '^Back', has: ['one', 'two'], lacks: ['three'], text: a}
  - {member: '^Back', times: 2, text: b}
  - {has: ['four'], text: c}
`)
	answered := []int{9, 0, 0}
	for _, c := range []struct {
		member, messages string
		want             int
	}{
		{"Backend", "two one", 0},
		{"Backend", "one two three", 1},
		{"Backend", "one", 1},
		{"Frontend", "one two", -1},
		{"Frontend", "four", 2},
		{"", "four", 2},
	} {
		if got := s.find(c.member, c.messages, answered); got != c.want {
			t.Errorf("%s, %q: rule %d, want %d", c.member, c.messages, got, c.want)
		}
	}
	answered[1] = 2
	if got := s.find("Backend", "four", answered); got != 2 {
		t.Errorf("a rule that has answered often enough answers again: %d", got)
	}
}

func TestRender(t *testing.T) {
	s := mustParse(t, `
rules:
  - capture: {key: 'field is (\w+)', all: 'say \\"[^"]*\\"', wide: 'it: ([^.]*)\.'}
    text: '{{key}}, {{ all }}, {{wide}}'
    tools:
      - {name: write, args: {text: 'read {{key}}', "n": 2, list: ['{{wide}}'], html: '<b>'}}
      - {name: list}
`)
	messages := `field is name ... field is display_name; say \"hi\"; it: a \"b\"\nc.`
	got, err := s.rules[0].render(messages, "call_x")
	if err != nil {
		t.Fatal(err)
	}
	if want := "display_name, say \"hi\", a \"b\"\nc"; got.text != want {
		t.Errorf("text is %q, want %q", got.text, want)
	}
	if want := `{"html":"<b>","list":["a \"b\"\nc"],"n":2,"text":"read display_name"}`; got.calls[0].Function.Arguments != want {
		t.Errorf("arguments are %s, want %s", got.calls[0].Function.Arguments, want)
	}
	if got.calls[1].Function.Arguments != "{}" || got.calls[1].ID != "call_x_1" || got.finish != "tool_calls" {
		t.Errorf("answer is %+v", got)
	}
	if _, err := s.rules[0].render("nothing", "x"); err == nil {
		t.Error("a capture without a match is no error")
	}
}

// FuzzParse: no file makes the parser panic, and what it accepts can be used.
func FuzzParse(f *testing.F) {
	archive, err := txtar.ParseFile(filepath.Join("testdata", "errors.txtar"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range archive.Files {
		f.Add(file.Data)
	}
	f.Add([]byte("rules:\n  - {capture: {k: '(.)'}, text: '{{k}}', tools: [{name: t, args: {a: ['{{k}}']}}], times: 1, status: 0}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("f.yaml", data)
		if err != nil {
			if e, ok := errors.AsType[*SyntaxError](err); !ok || e.Line < 1 || e.Column < 1 || e.Problem == "" {
				t.Fatalf("error is %#v", err)
			}
			return
		}
		for i := range s.rules {
			_ = s.find("Backend", `[{"role":"user"}]`, make([]int, len(s.rules)))
			_, _ = s.rules[i].render(`[{"role":"user"}]`, "call")
		}
	})
}
