package scrub_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/natsd"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
	"github.com/rollcall-dev/rollcall/internal/natsd/scrub"
)

// trio is three servers that keep one stream.
type trio struct {
	t       *testing.T
	dirs    [3]string
	ports   [3]int
	servers [3]*natsd.Server
	first   []string // what is in each message
}

const many = 300

func newTrio(t *testing.T) *trio {
	t.Helper()
	c := &trio{t: t}
	for i := range c.dirs {
		c.dirs[i] = t.TempDir()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		c.ports[i] = l.Addr().(*net.TCPAddr).Port
		defer func() { _ = l.Close() }()
	}
	return c
}

func (c *trio) start(all ...int) {
	c.t.Helper()
	for _, i := range all {
		if err := c.tryStart(i); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *trio) tryStart(i int) error {
	routes := make([]string, len(c.ports))
	for j, p := range c.ports {
		routes[j] = fmt.Sprintf("127.0.0.1:%d", p)
	}
	s, err := natsd.Start(natsd.Config{
		Dir: c.dirs[i], Name: fmt.Sprintf("n%d", i+1), Port: -1, Token: natsdtest.Token,
		Cluster: &natsd.Cluster{Name: "test", Port: c.ports[i], Routes: routes},
	})
	if err == nil {
		c.servers[i] = s
		c.t.Cleanup(s.Shutdown)
	}
	return err
}

func (c *trio) stop(all ...int) {
	for _, i := range all {
		c.servers[i].Shutdown()
	}
}

// filledTrio is three servers, stopped, that hold the same messages in several
// packed blocks.
func filledTrio(t *testing.T) *trio {
	t.Helper()
	c := newTrio(t)
	c.start(0, 1, 2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := natsd.Agree(ctx, c.servers[:]...); err != nil {
		t.Fatal(err)
	}
	js := c.via(0)
	if _, err := js.CreateStream(ctx, settings(3)); err != nil {
		t.Fatal(err)
	}
	c.publish(js, many)
	c.whole(0)
	for _, dir := range c.dirs {
		for !packed(t, dir) {
			c.rest(ctx)
		}
	}
	c.stop(0, 1, 2)
	for i, dir := range c.dirs {
		c.compare(fmt.Sprintf("before: server %d", i+1), c.alone(dir))
	}
	return c
}

func settings(replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: stream, Subjects: []string{"log.>"}, Compression: jetstream.S2Compression, Replicas: replicas,
		MaxBytes: 127_000, AllowDirect: true, DenyDelete: true,
	}
}

func (c *trio) via(i int) jetstream.JetStream {
	c.t.Helper()
	js, err := jetstream.New(natsdtest.Connect(c.t, c.servers[i]))
	if err != nil {
		c.t.Fatal(err)
	}
	return js
}

func (c *trio) publish(js jetstream.JetStream, n int) {
	c.t.Helper()
	for i := range n {
		m := &nats.Msg{Subject: fmt.Sprintf("log.c%d", i%3), Header: nats.Header{"N": {strconv.Itoa(i)}}, Data: text(300)}
		if _, err := js.PublishMsg(c.t.Context(), m); err != nil {
			c.t.Fatal(err)
		}
		c.first = append(c.first, said(m.Subject, m.Header, m.Data))
	}
}

// soak ends what takes long where nobody asked for it.
func soak(t *testing.T) {
	t.Helper()
	if os.Getenv("ROLLCALL_SOAK") == "" {
		t.Skip("ROLLCALL_SOAK is not set")
	}
}

func said(subject string, h nats.Header, data []byte) string {
	return fmt.Sprintf("%s %s %s", subject, h.Get("N"), data)
}

func (c *trio) rest(ctx context.Context) {
	c.t.Helper()
	select {
	case <-ctx.Done():
		c.t.Fatal(ctx.Err())
	case <-time.After(20 * time.Millisecond):
	}
}

// whole waits until the stream's leader, and each server by itself, hold
// everything.
func (c *trio) whole(via int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	js := c.via(via)
	for {
		short, stop := context.WithTimeout(ctx, time.Second)
		s, err := js.Stream(short, stream)
		stop()
		if err == nil {
			info := s.CachedInfo()
			current := info.State.LastSeq >= uint64(len(c.first)) && info.Cluster != nil && len(info.Cluster.Replicas) == 2
			for _, r := range info.Cluster.Replicas {
				current = current && r.Current && r.Lag == 0
			}
			if current && c.stored() {
				return
			}
		}
		c.rest(ctx)
	}
}

// stored reports whether every server says of its own copy that all is there.
func (c *trio) stored() bool {
	for _, s := range c.servers {
		if n, err := s.Stored(stream); err != nil || n < uint64(len(c.first)) {
			return false
		}
	}
	return true
}

// alone reads the copy of one server without the others.
func (c *trio) alone(dir string) []string {
	c.t.Helper()
	image := c.t.TempDir()
	if err := os.CopyFS(natsd.StreamsDir(image), os.DirFS(natsd.StreamsDir(dir))); err != nil {
		c.t.Fatal(err)
	}
	for _, name := range []string{"meta.inf", "meta.sum"} { // which say that it has replicas
		if err := os.Remove(filepath.Join(filepath.Dir(filepath.Dir(blockFile(image, 1))), name)); err != nil {
			c.t.Fatal(err)
		}
	}
	s, err := natsd.Start(natsd.Config{Dir: image, Port: -1, Token: "t"})
	if err != nil {
		c.t.Fatal(err)
	}
	defer s.Shutdown()
	nc := natsdtest.Connect(c.t, s)
	defer natsdtest.Close(nc)
	js, err := jetstream.New(nc)
	if err != nil {
		c.t.Fatal(err)
	}
	st, err := js.CreateStream(c.t.Context(), settings(1)) // alone, the server leaves it out
	if err != nil {
		c.t.Fatal(err)
	}
	got := make([]string, st.CachedInfo().State.LastSeq)
	for i := range got {
		if m, err := st.GetMsg(c.t.Context(), uint64(i+1)); err == nil {
			got[i] = said(m.Subject, m.Header, m.Data)
		}
	}
	return got
}

func (c *trio) compare(what string, got []string) {
	c.t.Helper()
	if len(got) != len(c.first) {
		c.t.Errorf("%s: %d messages of %d", what, len(got), len(c.first))
		return
	}
	for i := range got {
		if got[i] != c.first[i] {
			c.t.Errorf("%s: message %d is %.40q, want %.40q", what, i+1, got[i], c.first[i])
			return
		}
	}
}

// hurt flips a bit in the middle of a block of one server's copy.
func (c *trio) hurt(i, block int) {
	c.t.Helper()
	path := blockFile(c.dirs[i], block)
	info, err := os.Stat(path)
	if err != nil {
		c.t.Fatal(err)
	}
	spoil(c.t, path, flip(int(info.Size()/2)))
}

// A server whose copy is damaged comes back whole, and while it fetches, nobody
// who asks it is told that a message is not there.
func TestReplicaComesBackWhole(t *testing.T) {
	t.Parallel()
	c := filledTrio(t)
	c.hurt(1, 2)
	c.start(0, 2, 1)
	c.reads(1)
	c.whole(1)
	c.publish(c.via(1), 5)
	c.whole(1)
	all, err := scrub.Known(natsd.DamagedDir(c.dirs[1]))
	if err != nil || len(all) == 0 || !all[0].Fetched {
		t.Errorf("known: %+v, %v", all, err)
	}
	for _, d := range all {
		if _, err := os.Stat(filepath.Join(d.Kept, "2.blk")); err != nil {
			t.Errorf("the damaged block is not kept: %v", err)
		}
	}
	c.end()
}

// reads reads every message through one server as soon as it can be had.
func (c *trio) reads(via int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	js := c.via(via)
	for seq := uint64(1); seq <= many; {
		short, stop := context.WithTimeout(ctx, time.Second)
		s, err := js.Stream(short, stream)
		if err == nil {
			_, err = s.GetMsg(short, seq)
		}
		stop()
		switch {
		case err == nil:
			seq++
		case errors.Is(err, jetstream.ErrMsgNotFound):
			c.t.Fatalf("message %d: %v", seq, err)
		default:
			c.rest(ctx)
		}
	}
}

// end stops all servers and holds that every copy has every message.
func (c *trio) end() {
	c.t.Helper()
	c.stop(0, 1, 2)
	for i, dir := range c.dirs {
		c.compare(fmt.Sprintf("server %d", i+1), c.alone(dir))
	}
}

// Servers whose copies were put aside do not make an empty stream of it while
// those that have it are away, and follow them when they come.
func TestEmptyReplicasDoNotOutvote(t *testing.T) {
	soak(t)
	t.Parallel()
	c := filledTrio(t)
	c.hurt(0, 2)
	c.hurt(1, 3)
	c.start(0, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	js := c.via(0)
	c.refuses(ctx, js)
	c.start(2)
	c.whole(2)
	c.end()
}

// Not even when every copy was put aside: then the stream stands still, and all
// that there was is kept.
func TestEveryReplicaDamaged(t *testing.T) {
	t.Parallel()
	c := filledTrio(t)
	for i := range c.dirs {
		c.hurt(i, 1+i)
	}
	c.start(0, 1, 2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c.refuses(ctx, c.via(0))
	for _, dir := range c.dirs {
		kept, err := filepath.Glob(filepath.Join(natsd.DamagedDir(dir), stream+"-*", "*.blk"))
		if err != nil || len(kept) < 3 {
			t.Errorf("kept in %s: %v, %v", dir, kept, err)
		}
	}
}

// refuses watches the stream for longer than elections take: it has no leader,
// and takes no messages.
func (c *trio) refuses(ctx context.Context, js jetstream.JetStream) {
	c.t.Helper()
	for end := time.Now().Add(12 * time.Second); time.Now().Before(end); c.rest(ctx) {
		short, cancel := context.WithTimeout(ctx, time.Second)
		s, err := js.Stream(short, stream)
		if err == nil && s.CachedInfo().Cluster != nil && s.CachedInfo().Cluster.Leader != "" {
			c.t.Errorf("an empty server leads: %+v", s.CachedInfo().State)
		}
		_, err = js.PublishMsg(short, &nats.Msg{Subject: "log.c0"})
		cancel()
		if err == nil {
			c.t.Fatal("a stream without its messages takes new ones")
		}
	}
}

// Where no log tells how far the stream had come, the copy stays as it is.
func TestReplicaWithoutItsLog(t *testing.T) {
	t.Parallel()
	c := filledTrio(t)
	c.hurt(1, 2)
	damaged, err := os.ReadFile(blockFile(c.dirs[1], 2))
	if err != nil {
		t.Fatal(err)
	}
	groups, err := filepath.Glob(filepath.Join(natsd.StreamsDir(c.dirs[1]), "*", "_js_", "S-*"))
	if err != nil || len(groups) == 0 {
		t.Fatal(groups, err)
	}
	for _, g := range groups {
		if err := os.RemoveAll(g); err != nil {
			t.Fatal(err)
		}
	}
	err = c.tryStart(1)
	var r *domain.Refusal
	if !errors.As(err, &r) || r.Code != "replica-damaged" || !strings.Contains(r.Error(), stream) {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(blockFile(c.dirs[1], 2)); err != nil || !bytes.Equal(now, damaged) {
		t.Error("the block was touched", err)
	}
	if os.Getenv("ROLLCALL_SOAK") == "" {
		return
	}
	// What the refusal tells to do.
	c.start(0, 2)
	if err := os.Rename(c.dirs[1], c.dirs[1]+".away"); err != nil {
		t.Fatal(err)
	}
	c.start(1)
	c.whole(1)
	c.end()
}

// A block that was packed while it was written to is read whole: this is what
// nats-server 2.15.3 makes of one when a replica was killed and writes again.
func TestPackedWhileWritten(t *testing.T) {
	t.Parallel()
	const n, before = 60, 40
	dir := filled(t, n, 300, jetstream.NoCompression, false)
	path := blockFile(dir, 1)
	spoil(t, path, func(b []byte) []byte {
		size := 0
		for range before {
			size += int(binary.LittleEndian.Uint32(b[size:]) &^ (1 << 31))
		}
		var packed bytes.Buffer
		w := s2.NewWriter(&packed)
		if _, err := w.Write(b[:size-8]); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		is := append(binary.AppendUvarint([]byte("cmp\x01"), uint64(size)), packed.Bytes()...) //nolint:gosec // small
		is = append(is, b[size-8:size]...)
		if len(is) > size {
			t.Fatalf("packed it is longer: %d > %d", len(is), size)
		}
		is = append(is, make([]byte, size-len(is))...)
		return append(is, b[size:]...)
	})
	found, last := held(t, dir)
	if len(found) != n || last != n {
		t.Errorf("%d of %d messages are left", len(found), n)
	}
	damage, err := scrub.Known(natsd.DamagedDir(dir))
	if err != nil || len(damage) != 1 || damage[0].Bytes != 0 {
		t.Errorf("told: %v, %v", damage, err)
	}
}
