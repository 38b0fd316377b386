package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a system under test in a process of its own.
type process struct {
	name, url string
	args      []string
	data      string
	log       *os.File
	cmd       *exec.Cmd
	gone      chan struct{}
}

// beBench in the environment makes a test binary this program.
const beBench = "ROLLCALL_BENCH_BE_BENCH"

// newProcess prepares a system on an empty data directory below dir.
func newProcess(dir, name, policy, memory, stub string) (*process, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, err
	}
	p := &process{name: name, url: "http://" + addr}
	if p.data, err = os.MkdirTemp(dir, name+"-"); err != nil {
		return nil, err
	}
	if p.log, err = os.Create(p.data + ".log"); err != nil {
		return nil, err
	}
	p.args = []string{"-serve", name, "-addr", addr, "-stub", stub, "-data", p.data, "-sync", policy, "-memory", memory}
	return p, nil
}

// start starts the process, again after a kill, and waits until it answers.
func (p *process) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p.cmd = exec.Command(self, p.args...)
	p.cmd.Env = append(os.Environ(), beBench+"=1")
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	gone := make(chan struct{})
	p.gone = gone
	go func() {
		defer close(gone)
		_ = p.cmd.Wait() // killed, or see its log
	}()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if res, err := client.Get(p.url + "/healthz"); err == nil {
			_ = res.Body.Close()
			return nil
		}
		select {
		case <-gone:
			return fmt.Errorf("%s ended before it answered; its log is %s", p.name, p.log.Name())
		case <-time.After(2 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s does not answer; its log is %s", p.name, p.log.Name())
}

// kill ends the process with SIGKILL and waits until it is gone.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // gone already, perhaps
	<-p.gone
	p.cmd = nil
	client.CloseIdleConnections()
}

// close kills the process and removes its data, unless keep is set.
func (p *process) close(keep bool) error {
	p.kill()
	err := p.log.Close()
	if keep {
		return err
	}
	return errors.Join(err, os.RemoveAll(p.data), os.Remove(p.log.Name()))
}

// use is what the process has used so far, as the kernel counts: where there is
// no /proc, nothing.
type use struct {
	cpu time.Duration
	// pss is the memory it holds now, its share of what is shared.
	pss int64
	// disk is the size of its data.
	disk int64
}

func (p *process) use() use {
	u := use{disk: size(p.data)}
	if p.cmd == nil {
		return u
	}
	proc := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	if stat, err := os.ReadFile(proc + "stat"); err == nil {
		// After the name in parentheses: state, parent, …, user and system time
		// in ticks of 10 ms as the 12th and 13th.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		for _, i := range []int{11, 12} {
			ticks, _ := strconv.Atoi(fields[i])
			u.cpu += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	if rollup, err := os.ReadFile(proc + "smaps_rollup"); err == nil {
		for line := range strings.Lines(string(rollup)) {
			if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
				kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
				u.pss = kib << 10
			}
		}
	}
	return u
}

// size is the bytes of all files below dir that take room on the disk.
func size(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // files come and go while we look
		}
		if info, err := d.Info(); err == nil {
			n += info.Size()
			if s, ok := info.Sys().(*syscall.Stat_t); ok {
				n += min(0, s.Blocks*512-info.Size())
			}
		}
		return nil
	})
	return n
}

// busy is the CPU time that all processes of the machine have used so far.
func busy() (all time.Duration) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(stat), "\n")
	for i, field := range strings.Fields(first) {
		if i == 0 || i == 4 || i == 5 || i > 8 { // the name, idle, waiting, guests (counted before)
			continue
		}
		ticks, _ := strconv.Atoi(field)
		all += time.Duration(ticks) * 10 * time.Millisecond
	}
	return all
}

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1024}, Timeout: 5 * time.Minute}
