package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// testTimeout bounds a test. One that ends by it noticed nothing: it hangs.
	testTimeout = 120 * time.Second
	// suiteTimeout bounds a whole package.
	suiteTimeout = 10 * time.Minute
	// maxMemory is what a process may ask for, in bytes.
	maxMemory = 6 << 30
)

// lab compiles mutants and runs tests against them, in a directory of its own.
type lab struct {
	root, dir string
	// timeout bounds a test.
	timeout time.Duration
	mu      sync.Mutex
	n       int
	// sound holds the test binaries of the packages without a fault.
	sound map[string]func() (string, error)
}

func newLab(root string) (*lab, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return nil, fmt.Errorf("run it from the module's root: %w", err)
	}
	dir, err := os.MkdirTemp("", "mutants-")
	return &lab{root: root, dir: dir, timeout: testTimeout, sound: map[string]func() (string, error){}}, err
}

func (l *lab) close() { _ = os.RemoveAll(l.dir) }

// verdict is what became of a mutant. Only a test that ran to its own failure
// has killed it.
type verdict struct {
	killed bool
	how    string
}

func (v verdict) word() string {
	if v.killed {
		return "killed"
	}
	return "ALIVE"
}

// try runs the mutant's test on the sound program, which it must pass, and on
// the mutant, which it must fail.
func (l *lab) try(ctx context.Context, m Mutant) verdict {
	binary, err := l.soundBinary(ctx, m.Package)
	if err != nil {
		return verdict{how: "the sound program: " + err.Error()}
	}
	if o := l.test(ctx, binary, m); o.end != passed {
		return verdict{how: fmt.Sprintf("the test does not pass on the sound program: %s", o)}
	}
	overlay, err := l.overlay(m)
	if err != nil {
		return verdict{how: err.Error()}
	}
	if binary, err = l.compile(ctx, m.Package, "-overlay", overlay); err != nil {
		return verdict{how: "it does not compile, which proves nothing: " + err.Error()}
	}
	defer func() { _ = os.Remove(binary) }()
	o := l.test(ctx, binary, m)
	return verdict{killed: o.end == failed, how: o.String()}
}

// overlay writes the mutated file and what tells the compiler of it.
func (l *lab) overlay(m Mutant) (string, error) {
	text, err := m.mutated(l.root)
	if err != nil {
		return "", err
	}
	mutated := l.path("src") + ".go"
	if err := os.WriteFile(mutated, text, 0o600); err != nil {
		return "", err
	}
	data, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(l.root, m.File): mutated}})
	if err != nil {
		return "", err
	}
	overlay := l.path("overlay") + ".json"
	return overlay, os.WriteFile(overlay, data, 0o600)
}

// path is a new name in the lab's directory.
func (l *lab) path(kind string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	return filepath.Join(l.dir, kind+strconv.Itoa(l.n))
}

func (l *lab) soundBinary(ctx context.Context, pkg string) (string, error) {
	l.mu.Lock()
	once := l.sound[pkg]
	if once == nil {
		once = sync.OnceValues(func() (string, error) { return l.compile(ctx, pkg) })
		l.sound[pkg] = once
	}
	l.mu.Unlock()
	return once()
}

func (l *lab) compile(ctx context.Context, pkg string, flags ...string) (string, error) {
	binary := l.path("bin") + ".test"
	args := append(append([]string{"test", "-c", "-vet=off", "-ldflags=-w", "-o", binary}, flags...), pkg)
	cmd := command(ctx, l.root, "go", args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return binary, nil
}

// command is a process that ends, with all that it started, when ctx does. A
// mutant may eat memory without end: it gets some, and not the machine's.
func command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	script := append([]string{"-c", `ulimit -v "$0" && exec "$@"`, strconv.Itoa(maxMemory >> 10), name}, args...)
	cmd := exec.CommandContext(ctx, "sh", script...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// end is how a test ended.
type end string

const (
	passed  end = "passes"
	failed  end = "fails"
	crashed end = "crashes"
	hung    end = "hangs"
	absent  end = "does not run"
)

// outcome is one run of one test.
type outcome struct {
	end  end
	took time.Duration
	// said is the first thing that it complained of.
	said string
}

func (o outcome) String() string {
	return strings.TrimSuffix(fmt.Sprintf("%s after %.1fs: %s", o.end, o.took.Seconds(), o.said), ": ")
}

func (l *lab) test(ctx context.Context, binary string, m Mutant) outcome {
	limited, cancel := context.WithTimeout(ctx, l.timeout+30*time.Second)
	defer cancel()
	cmd := command(limited, filepath.Join(l.root, m.Package), binary, "-test.run="+m.pattern(), "-test.v", "-test.count=1", "-test.timeout="+l.timeout.String())
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	o := outcome{took: time.Since(begun)}
	o.end, o.said = read(string(out), m.Test, err)
	return o
}

// complaint is a line that a test wrote with its place.
var complaint = regexp.MustCompile(`(?m)^\s+([\w./-]+\.go:\d+: .+)$`)

// read finds in a verbose output how the test ended. A test that crashed is
// reported as failed too, and so is one that hung: those proved nothing.
func read(out, test string, err error) (end, string) {
	said := ""
	if _, after, ok := strings.Cut(out, "\npanic: "); ok {
		said = "panic: " + firstLine(after)
	} else if c := complaint.FindStringSubmatch(out); c != nil {
		said = cut(c[1], 200)
	}
	has := func(word string) bool {
		return regexp.MustCompile(`(?m)^\s*--- ` + word + `: ` + regexp.QuoteMeta(asRun(test)) + ` `).MatchString(out)
	}
	switch {
	case strings.Contains(out, "panic: test timed out"), errors.Is(err, context.DeadlineExceeded):
		return hung, said
	case err == nil && has("PASS"):
		return passed, ""
	case err == nil:
		return absent, said
	case strings.HasPrefix(said, "panic: "):
		return crashed, said
	case has("FAIL"):
		return failed, said
	}
	return crashed, cut(firstLine(said+err.Error()), 200)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func cut(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}

var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^(panic: .+)$|^FAIL\s+(\S+) \[build failed\]`)

// survey runs all tests of packages on the mutant and says which fail.
func (l *lab) survey(ctx context.Context, m Mutant, packages []string, skip string) (string, error) {
	overlay, err := l.overlay(m)
	if err != nil {
		return "", err
	}
	args := append([]string{"test", "-vet=off", "-overlay", overlay, "-timeout", suiteTimeout.String(), "-skip", skip}, packages...)
	out, err := command(ctx, l.root, "go", args...).CombinedOutput()
	if err == nil {
		return "nobody notices", nil
	}
	var who []string
	for _, f := range failure.FindAllStringSubmatch(string(out), -1) {
		if name := f[1] + f[2] + f[3]; !slices.Contains(who, name) {
			who = append(who, name)
		}
	}
	if len(who) == 0 {
		return "cannot be run:\n" + string(out), nil
	}
	return strings.Join(who, " "), nil
}
