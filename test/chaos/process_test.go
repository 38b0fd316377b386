package chaos_test

import (
	"bytes"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
)

// process is a program that a test started, and may break.
type process struct {
	t    testing.TB
	name string
	cmd  *exec.Cmd
	out  *output
	done chan struct{}
	// stopped is true between SIGSTOP and SIGCONT.
	stopped bool
}

// output is what a process says; the newest of it is kept.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

const keptOutput = 256 << 10

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.b.Len() > keptOutput {
		o.b.Next(o.b.Len() / 2)
	}
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// launch starts a program. It dies with this process, and at the end of the test.
func launch(t testing.TB, out *output, name, path string, env []string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, name: name, cmd: cmd, out: out, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // its exit code is asked for where it matters
	}()
	return p
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// lives reports whether the process has not ended.
func (p *process) lives() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill ends the process with SIGKILL: nothing of it can say goodbye. It works
// on a stopped one too.
func (p *process) kill() {
	if p.lives() {
		_ = p.cmd.Process.Kill() // it may have ended since
	}
	<-p.done
	p.stopped = false
}

// stop freezes the process: it hears nothing, says nothing and holds on to all.
func (p *process) stop() { p.signal(syscall.SIGSTOP); p.stopped = true }

// cont wakes a stopped process, for which no time has passed.
func (p *process) cont() { p.signal(syscall.SIGCONT); p.stopped = false }

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && p.lives() {
		p.t.Errorf("signal %v to %s: %v", s, p.name, err)
	}
}
