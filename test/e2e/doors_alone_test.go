package e2e_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/internal/nodefile"
)

// A node alone is open to nobody but its user: it listens on loopback, asks for
// the token, and only its user can read that.
func TestANodeAloneIsClosed(t *testing.T) {
	p := newPlace(t, script(t, "rules: [{text: hello}]"))
	p.start()
	err := filepath.WalkDir(p.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && path != p.dir { // the test made that itself
			ownersOnly(t, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	info, err := nodefile.Read(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Token == "" {
		t.Fatal("there is no token")
	}
	_, address, _ := strings.Cut(info.URL, "@")
	for name, options := range map[string][]nats.Option{
		"without a token":     nil,
		"with an empty token": {nats.Token("")},
		"with another token":  {nats.Token(strings.ToLower(info.Token))},
		"with a name":         {nats.UserInfo("rollcall", info.Token)},
		"as the system":       {nats.UserInfo("sys", "sys")},
	} {
		nc, err := nats.Connect("nats://"+address, options...)
		if err == nil {
			nc.Close()
		}
		if !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: %v", name, err)
		}
	}
	nc, err := nats.Connect("nats://"+address, nats.Token(info.Token))
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
	for _, local := range listeners(t, p.node.Process.Pid) {
		if !strings.HasPrefix(local, "0100007F:") {
			t.Errorf("it listens on %s, which is not 127.0.0.1", local)
		}
	}
}

// listeners are the local addresses, as the kernel writes them, on which a
// process listens.
func listeners(t *testing.T, pid int) (found []string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return nil
	}
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	sockets := map[string]bool{}
	open, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range open {
		to, _ := os.Readlink(filepath.Join(proc, "fd", f.Name()))
		if inode, ok := strings.CutPrefix(to, "socket:["); ok {
			sockets[strings.TrimSuffix(inode, "]")] = true
		}
	}
	for _, table := range []string{"tcp", "tcp6"} {
		data, err := os.ReadFile(filepath.Join(proc, "net", table)) //nolint:gosec // of the kernel
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			const listening = "0A"
			if f := strings.Fields(line); len(f) > 9 && f[3] == listening && sockets[f[9]] {
				found = append(found, f[1])
			}
		}
	}
	if len(found) == 0 {
		t.Error("it listens nowhere")
	}
	return found
}
