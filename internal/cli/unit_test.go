package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// console is a command line in this process: its streams are buffers, its
// environment is its own.
type console struct {
	App
	out, err bytes.Buffer
	env      map[string]string
}

func newConsole(t *testing.T, args ...string) *console {
	t.Helper()
	dir := t.TempDir()
	c := &console{env: map[string]string{"HOME": dir, "ROLLCALL_DATA": filepath.Join(dir, "data"), "ROLLCALL_MODEL": "m"}}
	c.App = App{
		Args: args, In: strings.NewReader(""), Out: &c.out, Err: &c.err, Dir: dir, Version: "1.2.3",
		Env:   func(name string) (string, bool) { v, ok := c.env[name]; return v, ok },
		Width: func(io.Writer) int { return 0 },
		StartNode: func(context.Context, NodeConfig) (Node, error) {
			return nil, errors.New("no node in this test")
		},
		Spawn: func(Child) (Process, error) { return nil, errors.New("no children in this test") },
	}
	return c
}

func (c *console) run(t *testing.T, want int) {
	t.Helper()
	if got := c.Run(t.Context()); got != want {
		t.Fatalf("exit %d, want %d: %s", got, want, c.err.String())
	}
}

// commands are all of ours.
func commands(t *testing.T) []string {
	t.Helper()
	s := &session{App: &newConsole(t).App}
	var names []string
	for _, c := range s.root().Commands() {
		names = append(names, c.Name())
		for _, sub := range c.Commands() {
			names = append(names, c.Name()+" "+sub.Name())
		}
	}
	return names
}

// Every command has its place, its words and its examples.
func TestHelp(t *testing.T) {
	s := &session{App: &newConsole(t).App}
	var all strings.Builder
	for _, c := range s.root().Commands() {
		if c.GroupID == "" || c.Short == "" || c.Example == "" {
			t.Errorf("%s has no group, no short text or no example", c.Name())
		}
		for line := range strings.Lines(c.Example) {
			if !strings.Contains(line, "rollcall "+c.Name()) {
				t.Errorf("an example of %s is of another command: %s", c.Name(), line)
			}
		}
	}
	for _, name := range append([]string{""}, commands(t)...) {
		c := newConsole(t, strings.Fields(name+" --help")...)
		c.run(t, 0)
		fmt.Fprintf(&all, "$ rollcall %s\n%s\n", strings.TrimSpace(name+" --help"), c.out.String())
	}
	goldenFile(t, "help.txt", all.String())
}

func goldenFile(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name)
	if updating() {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs (go test ./internal/cli -update, then read the change):\n%s", file, got)
	}
}

// updating reads the flag of the outer test package.
func updating() bool {
	for _, a := range os.Args {
		if a == "-update" || a == "--update" {
			return true
		}
	}
	return false
}

func TestUsageErrors(t *testing.T) {
	for _, name := range commands(t) {
		c := newConsole(t, append(strings.Fields(name), "--no-such-flag")...)
		c.run(t, api.ExitUsage)
		if c.out.Len() > 0 || !strings.Contains(c.err.String(), "[usage]") {
			t.Errorf("%s: stdout %q, stderr %q", name, c.out.String(), c.err.String())
		}
		c = newConsole(t, append(strings.Fields(name), "a", "b", "c", "d", "e", "--json")...)
		c.run(t, api.ExitUsage)
		var doc api.ErrorBody
		if err := json.Unmarshal(c.err.Bytes(), &doc); err != nil || doc.Code != "usage" || doc.Exit != api.ExitUsage {
			t.Errorf("%s --json: stderr %q", name, c.err.String())
		}
	}
}

// Every event of the log can be told, also one without a single field.
func TestEveryEventIsTold(t *testing.T) {
	fields := (&rollcallv1.Event{}).ProtoReflect().Descriptor().Oneofs().ByName("kind").Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		e := &rollcallv1.Event{}
		e.ProtoReflect().Set(f, protoreflect.ValueOfMessage(e.ProtoReflect().NewField(f).Message()))
		told := newTeller().hear(&rollcallv1.Commit{Events: []*rollcallv1.Event{e}})
		if len(told) != 1 || told[0].what == "" || strings.Contains(told[0].what, "does not know") {
			t.Errorf("%s is told as %+v", f.Message().Name(), told)
		}
	}
	told := newTeller().hear(&rollcallv1.Commit{Events: []*rollcallv1.Event{{}}})
	if !strings.Contains(told[0].what, "does not know") {
		t.Errorf("an event of a later version is told as %+v", told)
	}
}

// What members write cannot steer a terminal.
func TestTextsAreHarmless(t *testing.T) {
	evil := "a\x1b[2Jb\x07\u202Ec\u009b1m\r\nd\te"
	if got := printable(evil); strings.ContainsAny(got, "\x1b\x07\u202E\u009b\r") || !strings.Contains(got, "\nd\te") {
		t.Errorf("printable: %q", got)
	}
	if got := oneLine("a\n\n  b\tc", 99); got != "a b c" {
		t.Errorf("one line: %q", got)
	}
	if got := oneLine("абвгд", 3); got != "аб…" {
		t.Errorf("cut: %q", got)
	}
	teller := newTeller()
	teller.names["m1"] = evil
	told := teller.hear(&rollcallv1.Commit{Events: []*rollcallv1.Event{
		{Kind: &rollcallv1.Event_MessageDelivered{MessageDelivered: &rollcallv1.MessageDelivered{From: "m1", To: "m1", Kind: rollcallv1.MailKind_MAIL_KIND_TEXT, Body: &rollcallv1.Body{Text: evil}}}},
		{Kind: &rollcallv1.Event_TaskCreated{TaskCreated: &rollcallv1.TaskCreated{Task: "t1", Title: evil, Owner: evil, Creator: "m1"}}},
		{Kind: &rollcallv1.Event_FileWritten{FileWritten: &rollcallv1.FileWritten{Member: "m1", Path: evil}}},
		{Kind: &rollcallv1.Event_RunFinished{RunFinished: &rollcallv1.RunFinished{Member: "m1", Code: "x", Detail: evil}}},
		{Kind: &rollcallv1.Event_ToolCallFinished{ToolCallFinished: &rollcallv1.ToolCallFinished{Member: "m1", Name: evil, Error: true}}},
		{Kind: &rollcallv1.Event_WaitStarted{WaitStarted: &rollcallv1.WaitStarted{Member: "m1", Awaited: "m1"}}},
		{Kind: &rollcallv1.Event_TeamCreated{TeamCreated: &rollcallv1.TeamCreated{Name: evil}}},
	}})
	for _, s := range told {
		if strings.ContainsAny(s.String(), "\x1b\x07\u202E\u009b\r\n") {
			t.Errorf("told: %q", s.String())
		}
	}
}

func TestParseRef(t *testing.T) {
	for text, want := range map[string]ref{
		"harbor":           {conversation: "harbor"},
		"harbor@12":        {conversation: "harbor", version: 12},
		"harbor/Backend":   {conversation: "harbor", member: "Backend"},
		"harbor/Back@3":    {conversation: "harbor", member: "Back", version: 3},
		"a/b/c":            {conversation: "a/b", member: "c"},
		"mail@example.org": {conversation: "mail@example.org"},
		"a@b@7":            {conversation: "a@b", version: 7},
		"Das Boot/Аня":     {conversation: "Das Boot", member: "Аня"},
		"harbor@":          {conversation: "harbor@"},
	} {
		if got, err := parseRef(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "@3", "/x", "harbor@0", "harbor@99999999999999999999", "a\xff", "a\x00"} {
		if got, err := parseRef(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

func FuzzParseRef(f *testing.F) {
	for _, s := range []string{"harbor", "harbor/Back@3", "@", "/", "@1", "a@01"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseRef(text)
		if err != nil {
			if _, ok := errors.AsType[*domain.Refusal](err); !ok {
				t.Fatalf("%q: %v is no refusal", text, err)
			}
			return
		}
		if r.conversation == "" || !strings.HasPrefix(text, r.conversation) {
			t.Fatalf("%q is %+v", text, r)
		}
	})
}

func TestParseBudget(t *testing.T) {
	for text, want := range map[string]*rollcallv1.Budget{
		"2.50":         {CostMicros: 2_500_000},
		"0":            {},
		"0.000001":     {CostMicros: 1},
		"300000t":      {Tokens: 300_000},
		"300000tokens": {Tokens: 300_000},
	} {
		got, err := parseBudget(text)
		if err != nil || got.GetTokens() != want.GetTokens() || got.GetCostMicros() != want.GetCostMicros() {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-1", "1e99", "NaN", "Inf", "0.0000001", "t", "0t", "-5t", "1.5t", "plenty", "9999999999999999999999t"} {
		if got, err := parseBudget(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func TestShellWord(t *testing.T) {
	for name, want := range map[string]string{"harbor": "harbor", "/tmp/x-1": "/tmp/x-1", "Das Boot": "'Das Boot'", "it's": `'it'\''s'`, "$(rm)": "'$(rm)'"} {
		if got := shellWord(name); got != want {
			t.Errorf("%q is written %s, want %s", name, got, want)
		}
	}
}

// Files of a team stay below --output, whatever members call them.
func TestSavedFilesStayBelow(t *testing.T) {
	dir := t.TempDir()
	out, err := openOutput(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.close()
	if err := os.Symlink(dir, filepath.Join(dir, "out", "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../evil", "a/../../evil", "/evil", "link/evil"} {
		if err := out.write(name, []byte("x")); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "evil")); !os.IsNotExist(err) {
		t.Error("a file was written outside")
	}
	if err := out.write("Аня/sub/a b.txt", []byte("x")); err != nil {
		t.Error(err)
	}
}

// fakeNode is a node that only says how quiet it is.
type fakeNode struct {
	quiet  func() (time.Time, bool)
	closed chan struct{}
	failed chan error
}

func (n *fakeNode) Address() nodefile.Info {
	return nodefile.Info{URL: "nats://127.0.0.1:1", Token: "token"}
}
func (n *fakeNode) Quiet() (time.Time, bool) { return n.quiet() }
func (n *fakeNode) Failed() <-chan error     { return n.failed }
func (n *fakeNode) Close(context.Context) error {
	close(n.closed)
	return nil
}

func TestUpWritesAndRemovesItsFiles(t *testing.T) {
	c := newConsole(t, "up")
	node := &fakeNode{quiet: func() (time.Time, bool) { return time.Time{}, true }, closed: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	data := c.env["ROLLCALL_DATA"]
	c.StartNode = func(_ context.Context, cfg NodeConfig) (Node, error) {
		if cfg.Settings.Model != "m" || cfg.Version != "1.2.3" {
			t.Errorf("started with %+v", cfg)
		}
		return node, nil
	}
	ended := make(chan int)
	go func() { ended <- c.App.Run(ctx) }()
	deadline := time.After(time.Minute)
	for {
		if info, err := nodefile.Read(data); err == nil {
			if info.PID != os.Getpid() || info.URL != "nats://127.0.0.1:1" || info.Token != "token" {
				t.Errorf("node.json says %+v", info)
			}
			break
		}
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatal("node.json never came")
		}
	}
	stop() // as SIGTERM does
	if code := <-ended; code != 0 {
		t.Errorf("exit %d: %s", code, c.err.String())
	}
	<-node.closed
	if _, err := nodefile.Read(data); !errors.Is(err, nodefile.ErrNone) {
		t.Errorf("node.json after the end: %v", err)
	}
}

func TestUpEndsWhenIdle(t *testing.T) {
	c := newConsole(t, "up", "--background", "--idle-exit", "1ms")
	asked := 0
	node := &fakeNode{closed: make(chan struct{}), quiet: func() (time.Time, bool) {
		asked++
		return time.Now().Add(-time.Hour), asked > 3 // work is due at first
	}}
	c.StartNode = func(context.Context, NodeConfig) (Node, error) { return node, nil }
	c.run(t, 0)
	<-node.closed
	if asked < 4 {
		t.Errorf("it ended while work was due: asked %d times", asked)
	}
}

// A node that can store nothing any more ends, and says why.
func TestUpEndsWhenItsStorageFails(t *testing.T) {
	for _, args := range [][]string{{"up"}, {"up", "--background"}} {
		c := newConsole(t, args...)
		node := &fakeNode{
			closed: make(chan struct{}), failed: make(chan error, 1),
			quiet: func() (time.Time, bool) { return time.Time{}, false },
		}
		node.failed <- domain.Refuse("storage-failed", "nothing can be stored", "no space left on device", "free space")
		c.StartNode = func(context.Context, NodeConfig) (Node, error) { return node, nil }
		c.run(t, api.ExitFailed)
		<-node.closed
		if !strings.Contains(c.err.String(), "storage-failed") || !strings.Contains(c.err.String(), "free space") {
			t.Errorf("%q says %s", args, c.err.String())
		}
		if _, err := nodefile.Read(c.env["ROLLCALL_DATA"]); !errors.Is(err, nodefile.ErrNone) {
			t.Errorf("node.json after the end: %v", err)
		}
	}
}

func TestUpFails(t *testing.T) {
	c := newConsole(t, "up")
	c.StartNode = func(context.Context, NodeConfig) (Node, error) {
		return nil, domain.Refuse("data-directory-in-use", "the data directory is in use", "another process uses it", "stop it")
	}
	c.run(t, api.ExitRefused)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c = newConsole(t, "up", "--data", filepath.Join(file, "below"))
	c.run(t, api.ExitRefused)
	if !strings.Contains(c.err.String(), "[data-directory-unusable]") {
		t.Error(c.err.String())
	}
}

// fakeProcess is a child that has ended already.
type fakeProcess struct{ done chan struct{} }

func (p fakeProcess) PID() int              { return 1 }
func (p fakeProcess) Done() <-chan struct{} { return p.done }
func (p fakeProcess) Kill() error           { return nil }
func (p fakeProcess) Stop() error           { return nil }

// A background node that does not come up is told with its last words.
func TestBackgroundNodeDoesNotStart(t *testing.T) {
	c := newConsole(t, "run", "x", "--model", "other", "--sync", "interval")
	const earlier = "words of an earlier node\n"
	if err := os.MkdirAll(c.env["ROLLCALL_DATA"], 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.env["ROLLCALL_DATA"], nodefile.LOG), []byte(earlier), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Spawn = func(child Child) (Process, error) {
		args := strings.Join(child.Args, " ")
		if !child.Detached || !strings.HasPrefix(args, "up --background --data ") || !strings.Contains(args, "--model other") || !strings.Contains(args, "--sync interval") {
			t.Errorf("started as %+v", child)
		}
		if err := os.WriteFile(child.Log, []byte(earlier+"first words\nlast words: the disk is full\n"), 0o600); err != nil {
			t.Error(err)
		}
		p := fakeProcess{done: make(chan struct{})}
		close(p.done)
		return p, nil
	}
	c.run(t, api.ExitUnreachable)
	for _, want := range []string{"[node-not-started]", "the disk is full"} {
		if !strings.Contains(c.err.String(), want) {
			t.Errorf("stderr does not say %q: %s", want, c.err.String())
		}
	}
	if strings.Contains(c.err.String(), "earlier node") {
		t.Errorf("stderr quotes an earlier node: %s", c.err.String())
	}
	c = newConsole(t, "run", "x")
	c.run(t, api.ExitUnreachable) // no child at all
}

func TestInterruptedBeforeItBegan(t *testing.T) {
	c := newConsole(t, "run", "x")
	ctx, stop := context.WithCancel(t.Context())
	c.Spawn = func(Child) (Process, error) {
		stop() // Ctrl-C while the node starts
		return fakeProcess{done: make(chan struct{})}, nil
	}
	if got := c.App.Run(ctx); got != api.ExitInterrupted {
		t.Errorf("exit %d: %s", got, c.err.String())
	}
}
