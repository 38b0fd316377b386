package e2e_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/internal/api"
)

// said is what a command of the operator came to.
type said struct {
	code     int
	out, err string
}

// command is a command of the operator that runs.
type command struct {
	t    *testing.T
	args []string
	cmd  *exec.Cmd
	out  bytes.Buffer
	err  bytes.Buffer
}

// begin starts a command of the operator in a process of its own.
func (p *place) begin(args ...string) *command {
	p.t.Helper()
	c := &command{t: p.t, args: args, cmd: p.program(args...)}
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.err
	if err := c.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	return c
}

// wait gives what the command came to. A command that hangs is an error.
func (c *command) wait() said {
	c.t.Helper()
	hung := time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() })
	_ = c.cmd.Wait() // the exit code says it
	if !hung.Stop() {
		c.t.Fatalf("rollcall %q hangs:\n%s%s", c.args, c.out.String(), c.err.String())
	}
	s := said{code: c.cmd.ProcessState.ExitCode(), out: c.out.String(), err: c.err.String()}
	if strings.Contains(s.err, "DATA RACE") {
		c.t.Errorf("rollcall %q: %s", c.args, s.err)
	}
	return s
}

// feed runs a command that reads its standard input.
func (p *place) feed(in string, args ...string) said {
	p.t.Helper()
	c := &command{t: p.t, args: args, cmd: p.program(args...)}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = strings.NewReader(in), &c.out, &c.err
	if err := c.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	return c.wait()
}

// rollcall runs a command of the operator to its end.
func (p *place) rollcall(args ...string) said {
	p.t.Helper()
	return p.begin(args...).wait()
}

// ok runs a command that must succeed, and gives what it printed.
func (p *place) ok(args ...string) string {
	p.t.Helper()
	s := p.rollcall(args...)
	if s.code != 0 {
		p.t.Fatalf("rollcall %q ended with %d: %s%s", args, s.code, s.out, s.err)
	}
	return s.out
}

// refused runs a command that must be refused with a code, an exit code, a
// reason and what to do, and gives the refusal.
func (p *place) refused(code string, exit int, args ...string) api.ErrorBody {
	p.t.Helper()
	return p.rollcall(append(args, "--json")...).refusal(p.t, code, exit, args)
}

// refusal checks that a command was refused, as refused does.
func (s said) refusal(t *testing.T, code string, exit int, args []string) api.ErrorBody {
	t.Helper()
	var body api.ErrorBody
	if err := json.Unmarshal([]byte(s.err), &body); err != nil {
		t.Fatalf("rollcall %.200q ended with %d and no refusal: %s%s", args, s.code, s.out, s.err)
	}
	if body.Code != code || s.code != exit || body.What == "" || body.Try == "" {
		t.Errorf("rollcall %.200q ended with %d and %+v, want the code %s, exit %d and what to try", args, s.code, body, code, exit)
	}
	return body
}

// detach starts a conversation on the contract mailbox and does not follow it.
func (p *place) detach(name, objective string) string {
	p.t.Helper()
	return strings.TrimSpace(p.ok("run", objective, "--name", name, "--contract", "mailbox", "--detach"))
}

// ending is the last line of run --json.
type ending struct {
	Type         string `json:"type"`
	Conversation string `json:"conversation"`
	Version      uint64 `json:"version"`
	Status       string `json:"status"`
	Exit         int    `json:"exit"`
	Answer       string `json:"answer"`
}

// ended reads the lines of run --json: events, then the result.
func (s said) ended(t *testing.T) ending {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(s.out), "\n")
	var first api.EventLine
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || first.Event != "ConversationOpened" {
		t.Errorf("run ended with %d, its first line is %s, %s", s.code, lines[0], s.err)
	}
	var last ending
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Type != "result" || last.Exit != s.code {
		t.Fatalf("run ended with %d, its last line is %s, %s", s.code, lines[len(lines)-1], s.err)
	}
	return last
}

// document reads what a command with --json prints.
func document[Answer any](p *place, args ...string) (answer Answer) {
	p.t.Helper()
	if err := json.Unmarshal([]byte(p.ok(append(args, "--json")...)), &answer); err != nil {
		p.t.Fatalf("rollcall %q: %v", args, err)
	}
	return answer
}

// program is this very binary as rollcall.
func (p *place) program(args ...string) *exec.Cmd {
	cmd := exec.Command(cmp.Or(p.binary, os.Args[0]), args...)
	cmd.Env = p.env
	return cmd
}

// file writes a file for the operator and gives its path.
func (p *place) file(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}
