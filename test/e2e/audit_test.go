package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rollcall-dev/rollcall/internal/model/scripted/demo"
)

// A real auditor's session, as docs/audit.md tells it: with an auditor's
// credentials alone, when no node runs at all, by the plain nats command line
// and by ours, and from an export without any NATS.
func TestAuditSession(t *testing.T) {
	t.Parallel()
	o := newOffice(t, demo.Script(), "auditor-alice")
	o.as("client-main", "run", demo.Objective(demo.SendUpdate, demo.NewField), "--name", "harbor", "--contract", "mailbox", "--progress", "quiet")
	o.end(syscall.SIGKILL)
	o.walk("audit.md", "tls://nats-1:4222", o.url)
}

// What an auditor reads past the nodes, and an export holds, is what a node
// gives a client: to the byte, large texts too, and whether a node lives or not.
func TestAuditSources(t *testing.T) {
	t.Parallel()
	o := newOffice(t, script(t, "rules: [{text: 'I have read it.'}]"), "auditor-alice")
	long := filepath.Join(o.desk, "long.txt")
	if err := os.WriteFile(long, []byte(strings.Repeat("a long story ", 20_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "second"} {
		o.as("client-main", "run", "Read "+name+": "+strings.Repeat("words ", 15_000), "--name", name, "--contract", "none", "--input", long, "--progress", "quiet")
	}
	reads := [][]string{
		{"log", "first"}, {"verify"}, // for every role
		{"log", "second", "--json"}, {"log", "first/Lead@2"}, {"replay", "second"},
	}
	few := reads[:2]
	want := make([]string, len(reads))
	for i, args := range reads {
		want[i] = o.as("client-main", args...)
	}
	const node, alice, bob = "client-main", "auditor-alice", "auditor-bob"
	same := func(reads [][]string, role string, more ...string) {
		t.Helper()
		for i, args := range reads {
			if got := o.as(role, append(args, more...)...); sorted(got) != sorted(want[i]) {
				t.Errorf("%s: rollcall %v %v gives\n%s\na node gives\n%s", role, args, more, got, want[i])
			}
		}
	}
	same(reads, alice)
	same(few, bob)
	same(few, "node", "--auditor", "alice")
	var exported []string
	for _, role := range []string{node, alice, bob} {
		lines := strings.Split(o.as(role, "export"), "\n")
		exported = append(exported, sorted(strings.Join(lines[1:len(lines)-2], "\n"))) // the first and the last say when and in which order
	}
	if exported[0] != exported[1] || exported[1] != exported[2] || len(exported[0]) < 500_000 {
		t.Errorf("exports by a node and by auditors differ: %d, %d and %d bytes", len(exported[0]), len(exported[1]), len(exported[2]))
	}
	o.as(alice, "export", "--output", filepath.Join(o.desk, "all.jsonl"))
	same(reads, "nobody", "--export", filepath.Join(o.desk, "all.jsonl"))
	o.refuses(2, "[usage]", alice, "log", "first", "--follow")
	o.refuses(3, "[conversation-not-found]", alice, "log", "first", "--tenant", "other")
	o.refuses(3, "[auditor-unprepared]", "auditor-eve", "verify")
	o.refuses(4, "[nats-denied]", node, "verify", "--auditor", "alice")
	o.refuses(4, "[nats-denied]", bob, "verify", "--auditor", "alice")

	o.end(syscall.SIGKILL)
	same(few, alice)
	// Alone an auditor of one tenant has the log, but not the store of all.
	o.refuses(1, "[request-lost]", bob, "verify", "first")
	if got := o.as(bob, "log", "first"); got != want[0] {
		t.Errorf("%s", got)
	}
}

// sorted are the lines of a text: not every reader lists conversations in one
// order.
func sorted(text string) string {
	var paragraphs []string
	for _, line := range strings.Split(text, "\n") {
		if line == "" || line[0] != ' ' || len(paragraphs) == 0 {
			paragraphs = append(paragraphs, line)
			continue
		}
		paragraphs[len(paragraphs)-1] += "\n" + line
	}
	slices.Sort(paragraphs)
	return strings.Join(paragraphs, "\n")
}
