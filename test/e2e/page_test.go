package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/auth"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
	"github.com/rollcall-dev/rollcall/internal/natsd"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
)

// office is what a page of docs is told in: a NATS with roles, a node on it,
// and a desk, which is a directory with the credentials of one role and a
// terminal.
type office struct {
	t     *testing.T
	desk  string
	roles string
	url   string
	node  *process
	// record is the model server's own.
	record string
	models *scripted.Server
	env    []string
}

// newOffice makes the installation; role is whose credentials lie on the desk.
func newOffice(t *testing.T, s *scripted.Script, role string) *office {
	t.Helper()
	o := &office{t: t, desk: t.TempDir(), roles: filepath.Join(t.TempDir(), "roles")}
	o.record = filepath.Join(o.desk, "calls.jsonl")
	var err error
	if o.models, err = (scripted.Config{Script: s, Record: o.record}).Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.models.Close(); err != nil {
			t.Error(err)
		}
	})
	ports := natsdtest.Ports(t, 2)
	made, err := auth.Init(o.roles, auth.Plan{
		Servers: []auth.Server{{Name: "nats-1", Host: "127.0.0.1", ClientPort: ports[0], RoutePort: ports[1]}},
		Tenants: []string{"main"}, Auditors: []auth.Auditor{{Name: "alice"}, {Name: "bob", Tenant: "main"}, {Name: "eve"}},
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := auth.Load(filepath.Join(o.roles, "nats-1"))
	if err != nil {
		t.Fatal(err)
	}
	server, err := natsd.Start(bundle.NATS(t.TempDir(), nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	o.url = made.URL
	nc, err := api.Dial(api.Target{URL: o.url, Creds: bundle.Creds(), CA: made.CA}, "operator")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := eventstore.Provision(ctx, nc, eventstore.Config{}); err != nil {
		t.Fatal(err)
	}
	for name, tenant := range map[string]string{"alice": "", "bob": "main"} { // nobody prepared for eve
		if _, err := eventstore.PrepareAuditor(ctx, nc, name, tenant); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{made.CA: "ca.pem", filepath.Join(o.roles, role+".creds"): role + ".creds"} {
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(o.desk, to), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	o.env = append(os.Environ(), "HOME="+o.desk, "XDG_CONFIG_HOME=", "TERM=dumb", "NO_COLOR=1", "GORACE=halt_on_error=1 atexit_sleep_ms=0")
	o.up()
	return o
}

// up starts the node and waits until it is up.
func (o *office) up() {
	o.t.Helper()
	cmd := o.rollcall("node", "up", "--join", o.url)
	out := &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	o.node = &process{Cmd: cmd, out: out, done: make(chan struct{})}
	go func(p *process) {
		_ = cmd.Wait()
		close(p.done)
	}(o.node)
	o.t.Cleanup(func() {
		if o.node != nil {
			o.end(syscall.SIGTERM)
		}
	})
}

func (o *office) end(signal syscall.Signal) {
	o.t.Helper()
	_ = o.node.Process.Signal(signal) // it may have ended: its code tells
	<-o.node.done
	if code := o.node.ProcessState.ExitCode(); signal == syscall.SIGTERM && code != 0 || strings.Contains(o.node.out.String(), "DATA RACE") {
		o.t.Errorf("the node ended with %d:\n%s", code, o.node.out)
	}
	o.node = nil
}

// rollcall is the product with the credentials of a role.
func (o *office) rollcall(role string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(o.env, beRollcall+"=1", "ROLLCALL_DATA="+filepath.Join(o.roles, "data-"+role), "ROLLCALL_MODEL=scripted",
		"OPENAI_BASE_URL="+o.models.URL(), "OPENAI_API_KEY=sk-e2e",
		"NATS_URL="+o.url, "NATS_CREDS="+filepath.Join(o.roles, role+".creds"), "NATS_CA="+filepath.Join(o.roles, "ca.pem"))
	return cmd
}

// as runs a command with the credentials of a role.
func (o *office) as(role string, args ...string) string {
	o.t.Helper()
	cmd := o.rollcall(role, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		o.t.Fatalf("%s: rollcall %v: %v\n%s%s", role, args, err, out, stderr.String())
	}
	return string(out)
}

// refuses runs a command that must end with a code and say why.
func (o *office) refuses(code int, says, role string, args ...string) {
	o.t.Helper()
	cmd := o.rollcall(role, args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != code || !strings.Contains(string(out), says) {
		o.t.Errorf("%s: rollcall %v: want exit %d with %q, got %v:\n%s", role, args, code, says, err, out)
	}
}

// step is a command of a page with what it is shown to print.
type step struct {
	line    int
	command string
	shown   []string
}

// steps are the commands of the console blocks of a page: a line that begins
// with "$ ", those that go on with "> ", and the output below.
func steps(t *testing.T, page string) (all []step) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	for i, text := range strings.Split(string(data), "\n") {
		last := len(all) - 1
		switch {
		case strings.HasPrefix(text, "```"):
			inside = text == "```console"
		case !inside:
		case strings.HasPrefix(text, "$ "):
			all = append(all, step{line: i + 1, command: text[2:]})
		case last < 0:
			t.Fatalf("%s:%d: output of no command", page, i+1)
		case strings.HasPrefix(text, "> ") && len(all[last].shown) == 0:
			all[last].command += "\n" + text[2:]
		default:
			all[last].shown = append(all[last].shown, text)
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s has no commands", page)
	}
	return all
}

// mark begins a line that the terminal says about itself.
const mark = "\x1e"

// walk runs the commands of a page, in order, in one shell on the desk, and
// holds what they print against what the page shows: each line of it must come,
// in order, where "…" stands for anything. Words that differ here are given as
// in the page and as here.
func (o *office) walk(page string, differ ...string) {
	o.t.Helper()
	all, programs := steps(o.t, page), tools(o.t)
	here := strings.NewReplacer(differ...)
	var script strings.Builder
	script.WriteString("exec 2>&1\n")
	for i, s := range all {
		fmt.Fprintf(&script, "printf '%s%d\\n'\n%s\nprintf '%s= %%d\\n' $?\n", mark, i, here.Replace(s.command), mark)
	}
	ctx, cancel := context.WithTimeout(o.t.Context(), patience)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", script.String())
	shell.Dir = o.desk
	shell.Env = append(o.env, "PATH="+programs+":"+os.Getenv("PATH"))
	out, err := shell.Output()
	if err != nil {
		o.t.Errorf("the shell: %v", err)
	}
	parts := strings.Split(string(out), mark)
	for i, s := range all {
		at := fmt.Sprintf("%s:%d: %s", page, s.line, s.command)
		if len(parts) < 2*i+3 {
			o.t.Fatalf("%s\nwas not run to its end:\n%s", at, out)
		}
		printed := strings.TrimPrefix(parts[2*i+1], strconv.Itoa(i)+"\n")
		if code := strings.TrimSpace(parts[2*i+2]); code != "= 0" {
			o.t.Fatalf("%s\nended with %s:\n%s", at, code, printed)
		}
		if missing, ok := resembles(s.shown, printed); !ok {
			o.t.Fatalf("%s\ndoes not print, or not in this order,\n%s\nbut\n%s", at, missing, printed)
		}
	}
}

// resembles reports whether the shown lines come in what was printed, and which
// one does not.
func resembles(shown []string, printed string) (missing string, ok bool) {
	lines := strings.Split(printed, "\n")
	for _, want := range shown {
		if want = words(want); want == "" || want == "…" {
			continue
		}
		like := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*") + "$")
		found := -1
		for i, line := range lines {
			if like.MatchString(words(line)) {
				found = i
				break
			}
		}
		if found < 0 {
			return want, false
		}
		lines = lines[found+1:]
	}
	return "", true
}

// words of a line, with one space between them.
func words(line string) string { return strings.Join(strings.Fields(line), " ") }

// tools is a directory with the programs of a page: rollcall, the nats command
// line as tools/go.mod pins it, and the examples. It is made once.
func tools(t *testing.T) string {
	t.Helper()
	dir, err := toolbox()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var toolbox = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "rollcall-tools-")
	if err != nil {
		return "", err
	}
	toolboxes = append(toolboxes, dir)
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		return "", err
	}
	script := fmt.Sprintf("#!/bin/sh\nexec env %s=1 %q \"$@\"\n", beRollcall, self)
	if err := os.WriteFile(filepath.Join(dir, "rollcall"), []byte(script), 0o755); err != nil { //nolint:gosec // a program
		return "", err
	}
	for _, args := range [][]string{
		{"build", "-modfile=tools/go.mod", "-ldflags=-s -w", "-o", dir + "/nats", "github.com/nats-io/natscli/nats"},
		{"build", "-ldflags=-s -w", "-o", dir + "/", "./examples/..."},
	} {
		build := exec.Command("go", args...)
		build.Dir = filepath.Join("..", "..")
		if out, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go %v: %w\n%s", args, err, out)
		}
	}
	return dir, nil
})

// toolboxes are deleted when all tests have run.
var toolboxes []string
