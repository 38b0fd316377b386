package cli_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/rollcall-dev/rollcall/internal/cli"
	"github.com/rollcall-dev/rollcall/internal/model/scripted/demo"
	"github.com/rollcall-dev/rollcall/internal/node"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
)

var update = flag.Bool("update", false, "write golden files anew")

// patience bounds what should take a moment, also on a slow machine under the
// race detector.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	testscript.Main(checked{m}, map[string]func(){"rollcall": func() { os.Exit(program()) }})
}

// checked runs tests and then looks for goroutines that were left.
type checked struct{ *testing.M }

func (c checked) Run() int {
	code := c.M.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// program is the product, as cmd/rollcall wires it.
func program() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	app := cli.App{
		Args: os.Args[1:], In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv,
		Version: "1.2.3-test", Width: cli.Width, Spawn: cli.Spawn, Terminate: cli.Terminate,
		StartNode: func(ctx context.Context, c cli.NodeConfig) (cli.Node, error) {
			return node.Start(ctx, node.Config(c))
		},
	}
	return app.Run(ctx)
}

// TestScripts plays the stories of testdata/script, each with a data directory
// and a node of its own.
func TestScripts(t *testing.T) {
	keyless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}`))
	}))
	t.Cleanup(keyless.Close)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			data := filepath.Join(env.WorkDir, "data")
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("ROLLCALL_DATA", data)
			env.Setenv("ROLLCALL_MODEL", "scripted:"+filepath.Join(env.WorkDir, "profile.yaml"))
			env.Setenv("KEYLESS_URL", keyless.URL+"/v1")
			env.Setenv("GORACE", "halt_on_error=1 atexit_sleep_ms=0")
			env.Setenv("PROFILE", demo.Objective(demo.SendUpdate, demo.NewField))
			env.Defer(func() { _ = signalNode(data, syscall.SIGKILL) })
			return os.WriteFile(filepath.Join(env.WorkDir, "profile.yaml"), demo.YAML(), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":      exits,
			"eventually": eventually,
			"golden":     golden,
			"stopnode":   nodeSignaller(syscall.SIGTERM),
			"killnode":   nodeSignaller(syscall.SIGKILL),
			"zeros":      zeros,
		},
	})
}

// exits CODE COMMAND...: the command must end with the code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		ended, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = ended.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// eventually REGEXP COMMAND...: the command is run until its output matches.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually REGEXP COMMAND...")
	}
	want := regexp.MustCompile("(?m)" + args[0])
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		_ = ts.Exec(args[1], args[2:]...) // a node that is not there yet is no failure
		if want.MatchString(ts.ReadFile("stdout")) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("%q never came", args[0])
		}
	}
}

// What differs from run to run in an output.
var varying = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`n-[0-9a-z]{26}`), "NODE"},
	{regexp.MustCompile(`\b01[0-9a-z]{24}\b`), "ULID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`), "TIME"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d(\.\d+)?`), "CLOCK"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "SHA256"},
	{regexp.MustCompile(`"(state_hash|seconds)":("[0-9a-f]*"|[0-9.]+)`), `"$1":"…"`},
	{regexp.MustCompile(`process \d+`), "process PID"},
	{regexp.MustCompile(`"pid":\d+`), `"pid":0`},
	{regexp.MustCompile(`answers in \S+`), "answers in TIME"},
	{regexp.MustCompile(`go1\.[0-9.]+`), "GO"},
	{regexp.MustCompile(`"commit":"[0-9a-f]+",`), ""},
	// The words of prompts and tools are tested where they are written.
	{regexp.MustCompile(`"(instructions|schema)":"(\\.|[^"\\])*"`), `"$1":"…"`},
	{regexp.MustCompile(`"tools":\[\{.*\}\]`), `"tools":["…"]`},
	{regexp.MustCompile(`"(input|output)_tokens":\d+`), `"${1}_tokens":0`},
	{regexp.MustCompile(`(calls?,) [\d.,]+k? tokens`), "$1 N tokens"},
}

// golden stdout|stderr NAME: the last output must be the golden file's.
func golden(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: golden stdout|stderr NAME")
	}
	got := strings.ReplaceAll(ts.ReadFile(args[0]), ts.Getenv("WORK"), "WORK")
	for _, v := range varying {
		got = v.pattern.ReplaceAllString(got, v.with)
	}
	if err := matchGolden(args[1], got); err != nil {
		ts.Fatalf("%v", err)
	}
}

func matchGolden(name, got string) error {
	file := filepath.Join(goldenDir, name)
	if *update {
		return os.WriteFile(file, []byte(got), 0o644)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		return fmt.Errorf("%s differs (go test ./internal/cli -update, then read the change):\n%s", file, diff)
	}
	return nil
}

// goldenDir is absolute: scripts run elsewhere.
var goldenDir = func() string {
	dir, err := filepath.Abs("testdata/golden")
	if err != nil {
		panic(err)
	}
	return dir
}()

// nodeSignaller makes a command that ends the script's node and waits for it.
func nodeSignaller(sig syscall.Signal) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, _ []string) {
		ts.Check(signalNode(ts.Getenv("ROLLCALL_DATA"), sig))
	}
}

func signalNode(data string, sig syscall.Signal) error {
	info, err := nodefile.Read(data)
	if err != nil {
		return err
	}
	if err := syscall.Kill(info.PID, sig); err != nil {
		return err
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for nodefile.Held(data) {
		select {
		case <-tick.C:
		case <-deadline:
			return fmt.Errorf("node %d does not end", info.PID)
		}
	}
	return nil
}

// zeros FILE BYTES makes a large file.
func zeros(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), make([]byte, n), 0o600))
}
