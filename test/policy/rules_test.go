package policy

import (
	"strings"
	"testing"
)

// rule is one habit of this repository.
type rule struct {
	name string
	// check lists what breaks the rule, a line each with its place and reason.
	check func(repo) []string
	// faults are small repositories that break the rule once each; a rule that
	// does not notice them checks nothing.
	faults []map[string]string
}

var rules = []rule{
	{"imports point downwards", upwardImports, []map[string]string{
		{"domain/a.go": src("domain", `import _ "github.com/rollcall-dev/rollcall/eventstore"`)},
		{"projections/a.go": src("projections", `import _ "github.com/rollcall-dev/rollcall/actors"`)},
		{"internal/cli/a.go": src("cli", `import _ "github.com/rollcall-dev/rollcall/actors"`)},
		{"newcomer/a.go": src("newcomer", "")},
	}},
	{"fenced imports", fencedImports, []map[string]string{
		{"actors/a_test.go": src("actors", `import _ "github.com/asynkron/protoactor-go/cluster"`)},
		{"internal/api/a.go": src("api", `import _ "github.com/asynkron/protoactor-go/actor"`)},
		{"actors/a.go": src("actors", `import _ "github.com/nats-io/nats.go"`)},
		{"domain/a.go": src("domain", `import _ "os"`)},
		{"contract/a.go": src("contract", `import _ "math/rand/v2"`)},
		{"domain/b.go": src("domain", `import _ "golang.org/x/sync/errgroup"`)},
		{"eventstore/a.go": src("eventstore", `import _ "testing"`)},
		{"eventstore/a.go": src("eventstore", `import _ "github.com/rollcall-dev/rollcall/eventstore/storetest"`)},
	}},
	{"the checker is independent", dependentChecker, []map[string]string{
		{"test/checker/a.go": src("checker", `import _ "github.com/rollcall-dev/rollcall/domain"`)},
		{"test/checker/a_test.go": src("checker", `import _ "github.com/rollcall-dev/rollcall/eventstore"`)},
		{"test/checker/a.go": src("checker", `import _ "github.com/rollcall-dev/rollcall/internal/audit"`)},
		{"test/checker/a.go": src("checker", `import _ "github.com/nats-io/nats-server/v2/server"`)},
	}},
	{"the core reads no clock", clocks, []map[string]string{
		{"domain/a.go": src("domain", "import \"time\"\n\nvar now = time.Now()")},
		{"contract/a.go": src("contract", "import clock \"time\"\n\nvar now = clock.Now")},
	}},
	{"files are read in one sitting", longFiles, []map[string]string{
		{"domain/a.go": src("domain", strings.Repeat("\n", 601))},
		{"domain/a_test.go": src("domain", strings.Repeat("\n", 901))},
	}},
	{"functions fit a screen", longFunctions, []map[string]string{
		{"domain/a.go": src("domain", "func f() {"+strings.Repeat("\n", 81)+"}")},
	}},
	{"packages say what they are", undocumented, []map[string]string{
		{"domain/a.go": "package domain\n", "domain/a_test.go": "package domain\n"},
	}},
	{"nobody sleeps", sleeps, []map[string]string{
		{"actors/a_test.go": src("actors", "import \"time\"\n\nfunc f() { time.Sleep(1) }")},
		{"actors/a_test.go": src("actors", "import t \"time\"\n\nvar f = t.Sleep")},
	}},
	{"skips have a reason", silentSkips, []map[string]string{
		{"actors/a_test.go": src("actors", "func TestA(t *testing.T) { t.Skip() }")},
		{"actors/a_test.go": src("actors", "func TestA(t *testing.T) { t.SkipNow() }")},
		{"actors/a_test.go": src("actors", `func TestA(t *testing.T) { t.Skip("") }`)},
	}},
	{"no forbidden text", forbiddenText, []map[string]string{
		{"README.md": "later: TO" + "DO\n"},
		{"Makefile": "# FIX" + "ME\n"},
		{"docs/a.md": "see /wo" + "rk/main\n"},
		{"docs/a.md": "`/ho" + "me/ada/x`\n"},
		{"web/package-lock.json": "{\"resol" + "ved\": \"\"}\n"},
		{"tools/.npmrc": "registry=https://registry.npm" + "js.org/\n"},
	}},
	{"error codes are documented", undocumentedCodes, []map[string]string{
		{"docs/errors.md": "| `a-b` | x | y | z |\n", "domain/a.go": src("domain", `var a, b = Refuse("a-b", "", "", ""), Refuse("c-d", "", "", "")`)},
		{"docs/errors.md": "| `a-b` | x | y | z |\n| `gone-code` | x | y | z |\n", "domain/a.go": src("domain", `var a = Refuse("a-b", "", "", "")`)},
		{"docs/errors.md": "| `a-b` | x | y | z |\n| `a-b` | x | y | z |\n", "domain/a.go": src("domain", `var a = Refuse("a-b", "", "", "")`)},
		{"docs/errors.md": "", "internal/model/a.go": src("model", `var a = &Error{Code: "model-new"}`)},
		{"docs/errors.md": "", "domain/a.go": src("domain", "func no(what, code string) *Refusal { return Refuse(code, what, ``, ``) }\n\nvar a = no(`x`, `passed-on`)")},
		{"docs/errors.md": "", "domain/a.go": src("domain", "func f(e *ending) { e.code, e.detail = `assigned-later`, `x` }")},
		{"docs/errors.md": "", "domain/a.go": src("domain", "const gone = `by-constant`\n\nvar a = Refuse(gone, ``, ``, ``)")},
		{"docs/errors.md": "", "domain/a.go": src("domain", `func f(code string) *Refusal { return Refuse(code+"x", "", "", "") }`)},
	}},
}

// src is a documented Go file.
func src(pkg, body string) string {
	return "// Package " + pkg + " is a fault.\npackage " + pkg + "\n\n" + body + "\n"
}

func TestRules(t *testing.T) {
	here, err := checkout()
	if err != nil {
		t.Fatal(err)
	}
	if len(here.code) == 0 {
		t.Fatal("the repository has no Go files: every rule would hold for nothing")
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, broken := range r.check(here) {
				t.Error(broken)
			}
		})
	}
}

func TestRulesNoticeFaults(t *testing.T) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for i, fault := range r.faults {
				text := map[string][]byte{}
				for name, s := range fault {
					text[name] = []byte(s)
				}
				seeded, err := newRepo(text)
				if err != nil {
					t.Fatal(err)
				}
				if broken := r.check(seeded); len(broken) != 1 {
					t.Errorf("fault %d: the rule reports %q, want one line", i, broken)
				}
			}
		})
	}
}
