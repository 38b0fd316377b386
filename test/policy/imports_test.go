package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// arrow says which of our packages a package and those below it may import.
// Each row says why its arrow ends where it does.
type arrow struct {
	from   string
	may    []string
	reason string
}

// The first row that covers a package counts. A package may always import
// those below its own row's directory.
var arrows = []arrow{
	{"proto", nil, "the contract of the log depends on nothing of ours"},
	{"domain", []string{"proto"}, "what a conversation is can be read, tested and replayed without any machinery"},
	{"contract", []string{"proto", "domain", "prompts", "internal/schema"}, "a contract decides from the state alone"},
	{"prompts", nil, "texts depend on nothing"},
	{"docs", nil, "pages depend on nothing"},
	{"eventstore", []string{"proto", "domain"}, "the store knows commits, not what runs on them"},
	{"internal/natsd", []string{"domain", "eventstore", "internal/nodefile"}, "the embedded server serves whoever connects, and refuses in our words"},
	{"internal/auth", []string{"domain", "eventstore", "internal/natsd"}, "roles are keys and subjects: they are made before any node runs, and read when a server starts"},
	{"internal/nearest", nil, "names are compared, not known"},
	{"internal/jsontext", nil, "JSON is looked at as it was written, whoever wrote it"},
	{"internal/schema", []string{"internal/jsontext", "internal/nearest"}, "arguments are read by their schema, whatever the tool"},
	{"internal/nodefile", nil, "where a node is found is a file and nothing more"},
	{"projections", []string{"proto", "domain", "eventstore", "internal/nearest"}, "read models are a fold of the log: they must live without any actor"},
	{"internal/model", []string{"proto", "domain", "internal/jsontext"}, "a model is reached over HTTP and never sees the log"},
	{"internal/tool", []string{"proto", "domain", "eventstore", "internal/nearest", "internal/schema", "internal/prompt"}, "an external tool gets a plan and files, never a conversation"},
	{"internal/prompt", []string{"proto", "domain", "prompts", "internal/model"}, "a request is a pure function of log and plan"},
	{"internal/ingress", []string{"proto", "domain", "eventstore", "internal/jsontext"}, "decoding what publishers send decides nothing"},
	{"internal/config", []string{"proto", "domain", "contract", "internal/nearest"}, "settings are read before anything runs; a team file is held against the contracts there are"},
	{"internal/audit", []string{"proto", "domain", "internal/model", "internal/prompt"}, "an audit needs sealed commits and nothing that made them"},
	{
		"actors",
		[]string{"proto", "domain", "contract", "eventstore", "internal/model", "internal/tool", "internal/prompt", "internal/ingress"},
		"actors know no reader: projections, API and command line watch the log like anybody else",
	},
	{
		"internal/api",
		[]string{"proto", "domain", "eventstore", "projections", "docs", "internal/ingress", "internal/jsontext", "internal/model", "internal/nodefile"},
		"the API sends commands over NATS like any user and reads projections; it reaches no actor",
	},
	{
		"internal/node",
		[]string{"proto", "domain", "contract", "prompts", "docs", "eventstore", "projections", "actors", "internal"},
		"a node wires everything but the command line",
	},
	{"internal/eval", []string{"proto", "domain", "internal/api", "internal/config"}, "an evaluation is a client, and judges what anybody can read"},
	{
		"internal/cli",
		[]string{"proto", "domain", "eventstore", "projections", "docs", "prompts", "internal"},
		"the command line is a client: it reaches actors only through a node",
	},
	{"examples", nil, "an example is what anybody writes who has a NATS client and nothing of ours"},
	{"cmd", []string{"proto", "internal"}, "main wires and exits"},
	{
		"test",
		[]string{"proto", "domain", "contract", "prompts", "docs", "eventstore", "projections", "actors", "internal", "cmd"},
		"tests from outside may look everywhere",
	},
}

func upwardImports(r repo) []string {
	var broken []string
	unknown := map[string]bool{}
	for _, f := range r.code {
		if f.isTest() {
			continue
		}
		i := slices.IndexFunc(arrows, func(a arrow) bool { return within(f.dir(), a.from) })
		if i < 0 {
			unknown[f.dir()] = true
			continue
		}
		for _, p := range slices.Sorted(maps.Keys(f.imports())) {
			ours, ok := strings.CutPrefix(p, module)
			if !ok || within(ours, arrows[i].from) {
				continue
			}
			if !slices.ContainsFunc(arrows[i].may, func(m string) bool { return within(ours, m) }) {
				broken = append(broken, fmt.Sprintf("%s imports %s: %s", f.name, ours, arrows[i].reason))
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(unknown)) {
		broken = append(broken, fmt.Sprintf("package %s has no row in the table of arrows", dir))
	}
	return broken
}

// fence keeps some imports to some packages.
type fence struct {
	// imports lists import paths; one that ends in / covers all below it.
	imports []string
	// only lists our packages that may import them. When it is nil, never counts.
	only []string
	// never lists our packages that must not; "" is all of them.
	never  []string
	reason string
	// tests is true where a test, or a package that serves tests, may do it all
	// the same.
	tests bool
}

var fences = []fence{
	{
		imports: []string{"github.com/asynkron/protoactor-go/cluster/", "github.com/asynkron/protoactor-go/remote/", "github.com/asynkron/protoactor-go/persistence/"},
		never:   []string{""},
		reason:  "they fail under the race detector, activate twice and drop errors; NATS is the distributed engine",
	},
	{
		imports: []string{"github.com/asynkron/protoactor-go/actor/"},
		only:    []string{"actors", "internal/node"},
		reason:  "only the actors know the actor library: it can be replaced in one place",
		tests:   true,
	},
	{
		imports: []string{"github.com/nats-io/"},
		only:    []string{"eventstore", "internal/natsd", "internal/auth", "internal/api", "internal/node", "examples"},
		reason:  "what lies on NATS is decided in one place; everything else uses the seam of package eventstore",
		tests:   true,
	},
	{
		imports: []string{"modernc.org/", "database/sql/"},
		only:    []string{"projections"},
		reason:  "SQLite is how read models are kept, and nobody else's business",
		tests:   true,
	},
	{
		imports: []string{"github.com/sashabaranov/go-openai/"},
		only:    []string{"internal/model"},
		reason:  "a model is reached through our own interface",
		tests:   true,
	},
	{
		imports: []string{"github.com/spf13/"},
		only:    []string{"internal/cli", "cmd"},
		reason:  "only the command line parses commands",
		tests:   true,
	},
	{
		imports: []string{"os/", "net/", "io/", "math/rand/", "crypto/rand", "context", "log/", "sync/", "runtime/", "syscall", "unsafe"},
		never:   []string{"domain", "contract"},
		reason:  "decide and evolve are pure: no I/O, no clock, no chance, no goroutines",
		tests:   true,
	},
	{
		imports: []string{"pgregory.net/rapid", "go.uber.org/goleak", "github.com/google/go-cmp/", "github.com/rogpeppe/go-internal/", "testing/"},
		never:   []string{""},
		reason:  "what only tests need does not ship",
		tests:   true,
	},
}

// outside is all that the pure packages may import beside the standard library
// and each other.
var outside = map[string][]string{
	"domain":   {"google.golang.org/protobuf/", "golang.org/x/text/"},
	"contract": {"google.golang.org/protobuf/", "golang.org/x/text/", "github.com/google/jsonschema-go/"},
}

func fencedImports(r repo) []string {
	var broken []string
	for _, f := range r.code {
		test := f.isTest() || forTests(f.dir())
		for _, p := range slices.Sorted(maps.Keys(f.imports())) {
			for _, fe := range fences {
				if fe.applies(f.dir(), p) && !(fe.tests && test) {
					broken = append(broken, fmt.Sprintf("%s imports %s: %s", f.name, p, fe.reason))
				}
			}
			if ours, ok := strings.CutPrefix(p, module); ok && !test && forTests(ours) {
				broken = append(broken, fmt.Sprintf("%s imports %s: what only tests need does not ship", f.name, ours))
			}
			if !test && foreign(p) && !mayUse(f.dir(), p) {
				broken = append(broken, fmt.Sprintf("%s imports %s: the core depends on protobuf and text rules, and on nothing that can change under it", f.name, p))
			}
		}
	}
	return broken
}

// forTests reports whether a package serves tests: storetest, natsdtest and
// the like, and all of test.
func forTests(dir string) bool { return within(dir, "test") || strings.HasSuffix(dir, "test") }

// applies reports whether the fence stands between a package and an import.
func (fe fence) applies(dir, imported string) bool {
	if !slices.ContainsFunc(fe.imports, func(pattern string) bool { return covers(pattern, imported) }) {
		return false
	}
	in := func(d string) bool { return d == "" || within(dir, d) }
	if fe.only != nil {
		return !slices.ContainsFunc(fe.only, in)
	}
	return slices.ContainsFunc(fe.never, in)
}

// foreign reports whether an import is neither ours nor the standard library's.
func foreign(p string) bool {
	host, _, _ := strings.Cut(p, "/")
	return strings.Contains(host, ".") && !strings.HasPrefix(p, module)
}

func mayUse(dir, p string) bool {
	first, _, _ := strings.Cut(dir, "/")
	allowed, pure := outside[first]
	return !pure || slices.ContainsFunc(allowed, func(pattern string) bool { return covers(pattern, p) })
}

// clocks finds readings of a clock where time comes in with the command's stamp.
func clocks(r repo) []string {
	var broken []string
	for _, f := range r.code {
		if f.isTest() || !within(f.dir(), "domain") && !within(f.dir(), "contract") {
			continue
		}
		for _, n := range f.uses("time", "Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep") {
			broken = append(broken, f.at(n)+": reads a clock; time comes in with the command's stamp")
		}
	}
	return broken
}
