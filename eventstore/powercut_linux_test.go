package eventstore_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/natsd"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// disk is a file system in a file: what was not synced to it is not in the file.
type disk struct{ image, dir string }

// newDisk mounts an image. Where the machine does not let us, the test is
// skipped.
func newDisk(t *testing.T, image string) disk {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("this test mounts a file system: it needs root")
	}
	d := disk{image, t.TempDir()}
	if _, err := os.Stat(image); err != nil {
		if err := os.WriteFile(image, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(image, 256<<20); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("mkfs.ext4", "-q", "-F", image).CombinedOutput(); err != nil {
			t.Skipf("this machine makes no file system: %v %s", err, out)
		}
	}
	if out, err := exec.Command("mount", "-o", "loop", image, d.dir).CombinedOutput(); err != nil {
		t.Skipf("this machine does not let us mount: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", d.dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	return d
}

// cut is the disk as a power cut leaves it now.
func (d disk) cut(t *testing.T) disk {
	t.Helper()
	image := filepath.Join(t.TempDir(), "after")
	if out, err := exec.Command("cp", "--sparse=always", d.image, image).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	return newDisk(t, image)
}

// b50-power-cut: with sync: always a power cut takes nothing that was
// acknowledged. With sync at intervals it does take what was not yet synced,
// which is what doctor says.
func TestPowerCut(t *testing.T) {
	t.Run("b50-power-cut", func(t *testing.T) {
		for _, always := range []bool{true, false} {
			t.Run(fmt.Sprintf("sync always %t", always), func(t *testing.T) { powerCut(t, always) })
		}
	})
}

func powerCut(t *testing.T, always bool) {
	const commits, messages = 30, 5
	ctx := patient(t)
	key := domain.Key{Tenant: "main", Conversation: "c1"}
	start := func(d disk) *eventstore.JetStream {
		t.Helper()
		server, err := natsd.Start(natsd.Config{Dir: filepath.Join(d.dir, "data"), Port: -1, Token: natsdtest.Token, SyncAlways: always, SyncInterval: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Shutdown)
		return natsdtest.Open(t, natsdtest.Connect(t, server), eventstore.Config{})
	}
	d := newDisk(t, filepath.Join(t.TempDir(), "before"))
	s := start(d)
	// What was set up has long been on the disk.
	if out, err := exec.Command("sync", "-f", d.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	var pos eventstore.Position
	for range commits {
		r, err := s.Append(ctx, key, pos, &rollcallv1.Commit{Node: "n1"})
		if err != nil {
			t.Fatal(err)
		}
		pos = r.Position()
	}
	for i := range messages {
		if _, _, err := s.Publish(ctx, eventstore.Envelope{Key: key, To: "lead", Data: fmt.Append(nil, i)}); err != nil {
			t.Fatal(err)
		}
	}
	s = start(d.cut(t))
	got := len(versions(t, s, key))
	t.Logf("%d of %d commits are there", got, commits)
	if !always {
		if got == commits {
			t.Errorf("all %d commits are there without a sync: this test would not notice a loss", got)
		}
		return
	}
	if got != commits {
		t.Errorf("%d of %d acknowledged commits are there after a power cut", got, commits)
	}
	l, err := s.Claim(ctx, "n1", key.Partition())
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Receive(ctx, l)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i := range messages {
		expect(t, ctx, r, fmt.Sprint(i), nil)
	}
}
