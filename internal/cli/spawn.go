//go:build unix

package cli

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"unsafe"
)

// Spawn starts this program again; it is what a real process gives App.Spawn.
func Spawn(c Child) (Process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.Command(program, c.Args...) //nolint:gosec // it is this program
	cmd.Env = append(os.Environ(), c.Env...)
	if c.Log != "" {
		out, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, fmt.Errorf("open the log: %w", err)
		}
		defer out.Close() //nolint:errcheck // the child has its own
		cmd.Stdout, cmd.Stderr = out, out
	}
	if c.Detached {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // how it ended is in its log
	}()
	return p, nil
}

type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

func (p *process) PID() int              { return p.cmd.Process.Pid }
func (p *process) Done() <-chan struct{} { return p.done }
func (p *process) Kill() error           { return p.cmd.Process.Kill() }
func (p *process) Stop() error           { return p.cmd.Process.Signal(syscall.SIGTERM) }

// Terminate asks a process to end in good order; it is what a real process
// gives App.Terminate.
func Terminate(pid int) error { return syscall.Kill(pid, syscall.SIGTERM) }

// Width is the number of columns of the terminal behind w, 0 when there is
// none; it is what a real process gives App.Width.
func Width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	var size struct{ rows, columns, x, y uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	if errno != 0 {
		return 0
	}
	if size.columns == 0 { // a terminal that does not say
		return 80
	}
	return int(size.columns)
}
