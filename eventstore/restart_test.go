package eventstore_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/natsd"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// serveEnv makes this test binary a server on the named directory, for tests
// that kill it.
const (
	serveEnv = "ROLLCALL_TEST_NATSD"
	portEnv  = "ROLLCALL_TEST_PORT"
)

func serve(dir string) {
	port, err := strconv.Atoi(os.Getenv(portEnv))
	if err != nil {
		port = -1
	}
	s, err := natsd.Start(natsd.Config{Dir: dir, Port: port, SyncAlways: true})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(s.URL)
	select {}
}

// process starts a server as a process of its own.
func process(t *testing.T, dir string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(url, "nats://") {
		t.Fatalf("server: %q, %v", url, err)
	}
	return cmd, strings.TrimSpace(url)
}

func dial(t *testing.T, url string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { natsdtest.Close(nc) })
	return nc
}

func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// Everything is still there after a restart from disk.
func TestRestart(t *testing.T) {
	ctx, dir := patient(t), t.TempDir()
	key := domain.Key{Tenant: "main", Conversation: "c1"}
	server := natsdtest.StartIn(t, dir)
	nc := natsdtest.Connect(t, server)
	s := natsdtest.Open(t, nc, eventstore.Config{})

	first, err := s.Append(ctx, key, eventstore.Position{}, &rollcallv1.Commit{Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	blob, err := s.PutBlob(ctx, key, bytes.Repeat([]byte("b"), 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	snap := eventstore.Snapshot{Position: first.Position(), EvolveVersion: 3, Data: []byte("state")}
	if err := s.SaveSnapshot(ctx, key, snap); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"acknowledged", "held", "dead", "waiting"} {
		if _, _, err := s.Publish(ctx, eventstore.Envelope{Key: key, To: "lead", Data: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	l, err := s.Claim(ctx, "n1", key.Partition())
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Receive(ctx, l)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, ctx, r, "acknowledged", func(d eventstore.Delivery) error { return d.Ack(ctx) })
	expect(t, ctx, r, "held", func(d eventstore.Delivery) error { return d.Hold() })
	expect(t, ctx, r, "dead", func(d eventstore.Delivery) error { return d.Dead(ctx, "because") })
	due := time.Now().Add(200 * time.Millisecond)
	if err := s.ArmTimer(ctx, key, "t1", due); err != nil {
		t.Fatal(err)
	}
	r.Close()
	natsdtest.Close(nc)
	server.Shutdown()
	<-time.After(time.Until(due)) // the timer comes due while nothing runs

	nc = natsdtest.Connect(t, natsdtest.StartIn(t, dir))
	s = natsdtest.Open(t, nc, eventstore.Config{})
	if _, err := s.Claim(ctx, "n2", key.Partition()); !errors.Is(err, eventstore.ErrHeld) {
		t.Fatalf("another node's claim of a partition whose owner just restarted: %v", err)
	}
	l2, err := s.Claim(ctx, "n1", key.Partition())
	if err != nil || l2.Epoch <= l.Epoch {
		t.Fatalf("own claim after the restart: %+v, %v", l2, err)
	}
	if r, err = s.Receive(ctx, l2); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	expect(t, ctx, r, "held", nil)
	expect(t, ctx, r, "waiting", nil)
	d, err := r.Next(ctx)
	if err != nil || d.Envelope().To != eventstore.ToCommand || d.Time().Before(due) {
		t.Fatalf("the timer: %v", err)
	}

	if got, ok, err := s.LoadSnapshot(ctx, key, 3); err != nil || !ok || string(got.Data) != "state" {
		t.Fatalf("snapshot: %v, %v", ok, err)
	}
	if got, err := s.GetBlob(ctx, key, blob); err != nil || len(got) != 1<<20 {
		t.Fatalf("blob: %d bytes, %v", len(got), err)
	}
	if dead, err := s.DeadLetters(ctx, 10); err != nil || len(dead) != 1 || dead[0].Reason != "because" {
		t.Fatalf("dead letters: %v, %v", dead, err)
	}
	second, err := s.Append(ctx, key, first.Position(), &rollcallv1.Commit{Node: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	if got := versions(t, s, key); len(got) != 2 || got[1] != second.Seq {
		t.Fatalf("the log has %v", got)
	}
}

func expect(t *testing.T, ctx context.Context, r eventstore.Receiver, want string, then func(eventstore.Delivery) error) {
	t.Helper()
	d, err := r.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(d.Envelope().Data); got != want {
		t.Fatalf("received %.60q, want %q", got, want)
	}
	if then != nil {
		if err := then(d); err != nil {
			t.Fatal(err)
		}
	}
}

// versions lists the stream sequences of a conversation's commits.
func versions(t *testing.T, s eventstore.Store, key domain.Key) []uint64 {
	t.Helper()
	var seqs []uint64
	err := s.Load(t.Context(), key, eventstore.Position{}, func(r eventstore.Recorded) error {
		seqs = append(seqs, r.Seq)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return seqs
}

// Nothing acknowledged is lost by kill -9, and timers armed before it come
// late rather than never.
func TestServerKilled(t *testing.T) {
	ctx, dir := patient(t), t.TempDir()
	key := domain.Key{Tenant: "main", Conversation: "c1"}
	cmd, url := process(t, dir)
	s := natsdtest.Open(t, dial(t, url), eventstore.Config{})
	due := time.Now().Add(300 * time.Millisecond)
	if err := s.ArmTimer(ctx, key, "t1", due); err != nil {
		t.Fatal(err)
	}

	acknowledged := make(chan eventstore.Position, 1)
	enough := make(chan struct{})
	doomed, giveUp := context.WithCancel(ctx)
	defer giveUp()
	go func() {
		var pos eventstore.Position
		for {
			r, err := s.Append(doomed, key, pos, &rollcallv1.Commit{Node: "n1"})
			if err != nil {
				acknowledged <- pos
				return
			}
			if pos = r.Position(); pos.Version == 50 {
				close(enough)
			}
		}
	}()
	<-enough
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	giveUp()
	pos := <-acknowledged

	_, url = process(t, dir)
	s = natsdtest.Open(t, dial(t, url), eventstore.Config{})
	stored := uint64(len(versions(t, s, key)))
	if stored != pos.Version && stored != pos.Version+1 {
		t.Fatalf("%d commits acknowledged, %d stored", pos.Version, stored)
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
	if d, err := r.Next(ctx); err != nil || d.Time().Before(due) || d.Envelope().To != eventstore.ToCommand {
		t.Fatalf("the timer: %v", err)
	}
}

// A commit of unknown fate, appended again when the server is back, is there
// once.
func TestUnknownFate(t *testing.T) {
	ctx, dir := patient(t), t.TempDir()
	key := domain.Key{Tenant: "main", Conversation: "c1"}
	server := natsdtest.StartIn(t, dir)
	s := natsdtest.Open(t, natsdtest.Connect(t, server), eventstore.Config{})
	c := &rollcallv1.Commit{Node: "n1"}
	server.Shutdown()
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if _, err := s.Append(short, key, eventstore.Position{}, c); !errors.Is(err, eventstore.ErrUnknown) {
		t.Fatalf("append without a server: %v", err)
	}
	s = natsdtest.Open(t, natsdtest.Connect(t, natsdtest.StartIn(t, dir)), eventstore.Config{})
	for range 2 {
		if r, err := s.Append(ctx, key, eventstore.Position{}, c); err != nil || r.Seq != 1 {
			t.Fatalf("append again: at %d, %v", r.Seq, err)
		}
	}
}

// A receiver that waits while its server restarts either goes on or says that
// the partition is lost; in no case does it wait for what never comes.
func TestReceiverSurvivesRestart(t *testing.T) {
	ctx, dir := patient(t), t.TempDir()
	key := domain.Key{Tenant: "main", Conversation: "c1"}
	cmd, url := process(t, dir)
	t.Setenv(portEnv, url[strings.LastIndex(url, ":")+1:])
	nc, err := nats.Connect(url, nats.ReconnectWait(20*time.Millisecond), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { natsdtest.Close(nc) })
	s := natsdtest.Open(t, nc, eventstore.Config{})
	l, err := s.Claim(ctx, "n1", key.Partition())
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Receive(ctx, l)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { r.Close() }()
	publish := func(text string) {
		if _, _, err := s.Publish(ctx, eventstore.Envelope{Key: key, To: "lead", Data: []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	publish("before")
	expect(t, ctx, r, "before", nil)

	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	process(t, dir)
	publish("after")
	start := time.Now()
	for {
		d, err := r.Next(ctx)
		if errors.Is(err, eventstore.ErrPartitionLost) {
			if l, err = s.Claim(ctx, "n1", key.Partition()); err == nil {
				r, err = s.Receive(ctx, l)
			}
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if string(d.Envelope().Data) == "before" {
			continue // unacknowledged, so it may come again
		}
		if err := d.Ack(ctx); err != nil {
			t.Fatal(err)
		}
		break
	}
	if d := time.Since(start); d > 8*time.Second {
		t.Fatalf("served again only after %v", d)
	}
}

// A follower goes on by itself where it was when its server is back.
func TestFollowSurvivesRestart(t *testing.T) {
	ctx, dir := patient(t), t.TempDir()
	key := domain.Key{Tenant: "main", Conversation: "c1"}
	cmd, url := process(t, dir)
	t.Setenv(portEnv, url[strings.LastIndex(url, ":")+1:])
	nc, err := nats.Connect(url, nats.ReconnectWait(20*time.Millisecond), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { natsdtest.Close(nc) })
	s := natsdtest.Open(t, nc, eventstore.Config{})
	following, stop := context.WithCancel(ctx)
	seen, done := make(chan uint64, 100), make(chan error, 1)
	go func() {
		done <- s.Follow(following, 0, func(r eventstore.Recorded) error {
			seen <- r.Commit.GetVersion()
			return nil
		}, nil)
	}()
	var pos eventstore.Position
	more := func() {
		t.Helper()
		for range 10 {
			r, err := s.Append(ctx, key, pos, &rollcallv1.Commit{Node: "n1"})
			if err != nil {
				t.Fatal(err)
			}
			pos = r.Position()
		}
		for v := pos.Version - 9; v <= pos.Version; v++ {
			select {
			case got := <-seen:
				if got != v {
					t.Fatalf("version %d followed, want %d", got, v)
				}
			case <-ctx.Done():
				t.Fatalf("version %d was not followed", v)
			}
		}
	}
	more()
	for range 2 {
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		cmd, _ = process(t, dir)
		start := time.Now()
		more()
		t.Logf("followed again after %v", time.Since(start))
	}
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
