package scrub_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rollcall-dev/rollcall/internal/natsd"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
	"github.com/rollcall-dev/rollcall/internal/natsd/scrub"
)

func TestMain(m *testing.M) { natsdtest.VerifyTestMain(m) }

const stream = "LOG"

// filled is the directory of a server that stopped, or was killed, with n
// messages of about size bytes in a stream of its own.
func filled(t *testing.T, n, size int, compression jetstream.StoreCompression, killed bool) string {
	t.Helper()
	dir := t.TempDir()
	s, err := natsd.Start(natsd.Config{Dir: dir, Port: -1, Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown()
	nc := natsdtest.Connect(t, s)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: stream, Subjects: []string{"log.>"}, Compression: compression,
		MaxBytes: 127_000, // so small, the server makes blocks of 32 kB
	}); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		m := &nats.Msg{Subject: fmt.Sprintf("log.c%d", i%3), Header: nats.Header{"N": {fmt.Sprint(i)}}, Data: text(size)}
		if _, err := js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if compression != jetstream.NoCompression { // which it does when it has time
		for deadline := time.Now().Add(time.Minute); !packed(t, dir); {
			if time.Now().After(deadline) {
				t.Fatal("the full blocks are not packed")
			}
			<-time.After(5 * time.Millisecond)
		}
	}
	if !killed {
		natsdtest.Close(nc)
		return dir
	}
	image := t.TempDir()
	if err := os.CopyFS(natsd.StreamsDir(image), os.DirFS(natsd.StreamsDir(dir))); err != nil {
		t.Fatal(err)
	}
	return image
}

// packed reports whether every block but the last is packed, and none is at it.
func packed(t *testing.T, dir string) bool {
	t.Helper()
	blocks, err := os.ReadDir(filepath.Dir(blockFile(dir, 1)))
	if err != nil {
		t.Fatal(err)
	}
	n, plain := 0, 0
	for _, e := range blocks {
		if strings.HasSuffix(e.Name(), ".tmp") {
			return false
		}
		if !strings.HasSuffix(e.Name(), ".blk") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(filepath.Dir(blockFile(dir, 1)), e.Name()))
		if n++; err != nil || !strings.HasPrefix(string(b), "cmp") {
			plain++
		}
	}
	return n > 1 && plain == 1
}

// text is as hard to compress as prose.
func text(size int) []byte {
	words := strings.Fields("the shed is painted green and Ana asks whether Ben has dried his brush before it rains again 17 42 99")
	var b strings.Builder
	for b.Len() < size {
		fmt.Fprintf(&b, "%s %x ", words[rand.IntN(len(words))], rand.IntN(256)) //nolint:gosec // no secret
	}
	return []byte(b.String()[:size])
}

func blockFile(dir string, n int) string {
	return filepath.Join(natsd.StreamsDir(dir), "$G", "streams", stream, "msgs", fmt.Sprintf("%d.blk", n))
}

// spoil changes a file.
func spoil(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(b), 0o600); err != nil { //nolint:gosec // a path of the test's own
		t.Fatal(err)
	}
}

func flip(at int) func([]byte) []byte {
	return func(b []byte) []byte {
		b[at/8] ^= 1 << (at % 8)
		return b
	}
}

// held reads the sequences that the stream holds, through the server.
func held(t *testing.T, dir string) (found []uint64, last uint64) {
	t.Helper()
	s, err := natsd.Start(natsd.Config{Dir: dir, Port: -1, Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown()
	nc := natsdtest.Connect(t, s)
	defer natsdtest.Close(nc)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	st, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	last = st.CachedInfo().State.LastSeq
	for seq := uint64(1); seq <= last; seq++ {
		m, err := st.GetMsg(t.Context(), seq)
		if err != nil {
			continue
		}
		if m.Header.Get("N") != fmt.Sprint(seq-1) || m.Subject != fmt.Sprintf("log.c%d", (seq-1)%3) {
			t.Errorf("message %d is another: %s %v", seq, m.Subject, m.Header)
		}
		found = append(found, seq)
	}
	return found, last
}

// sweep flips one bit after the other and holds what the server then has.
func sweep(t *testing.T, tpl string, block, n, cost, times int) {
	t.Helper()
	info, err := os.Stat(blockFile(tpl, block))
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	if text := os.Getenv("ROLLCALL_SEED"); text != "" {
		seed, err = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("ROLLCALL_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // no secret
	if err != nil {
		t.Fatal(err)
	}
	for range times {
		bit := r.IntN(int(info.Size()) * 8)
		dir := t.TempDir()
		if err := os.CopyFS(natsd.StreamsDir(dir), os.DirFS(natsd.StreamsDir(tpl))); err != nil {
			t.Fatal(err)
		}
		spoil(t, blockFile(dir, block), flip(bit))
		found, _ := held(t, dir)
		damage, err := scrub.Known(natsd.DamagedDir(dir))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) < n-cost {
			t.Errorf("bit %d: %d of %d messages are left; damage %v", bit, len(found), n, damage)
		}
		if len(found) < n && len(damage) == 0 {
			t.Errorf("bit %d: a message is gone, and nothing was told", bit)
		}
	}
}

// One flipped bit costs one message, wherever it is, and is told. The server
// by itself would drop all that follows. In a packed block it may cost the
// chunk that it is in, here the whole block.
func TestFlippedBits(t *testing.T) {
	times := 5
	if os.Getenv("ROLLCALL_SOAK") != "" {
		times = 400
	}
	for name, tc := range map[string]struct {
		n, size     int
		compression jetstream.StoreCompression
		killed      bool
		cost        int
	}{
		"after a stop":         {60, 300, jetstream.NoCompression, false, 1},
		"after a kill":         {60, 300, jetstream.NoCompression, true, 1},
		"packed, after a stop": {90, 1_000, jetstream.S2Compression, false, 32},
		"packed, after a kill": {90, 1_000, jetstream.S2Compression, true, 32},
	} {
		t.Run(name, func(t *testing.T) {
			tpl := filled(t, tc.n, tc.size, tc.compression, tc.killed)
			sweep(t, tpl, 1, tc.n, tc.cost, times)
		})
	}
}

// The places of a block by which all others are read.
func TestFlippedBitsInTheFrame(t *testing.T) {
	plain := filled(t, 30, 100, jetstream.NoCompression, true)
	full := filled(t, 90, 1_000, jetstream.S2Compression, true)
	for _, tc := range []struct {
		tpl  string
		n    int
		bits int
	}{{plain, 30, 22 * 8}, {full, 90, 25 * 8}} {
		step := 23
		if os.Getenv("ROLLCALL_SOAK") != "" {
			step = 1
		}
		for bit := 0; bit < tc.bits; bit += step {
			dir := t.TempDir()
			if err := os.CopyFS(natsd.StreamsDir(dir), os.DirFS(natsd.StreamsDir(tc.tpl))); err != nil {
				t.Fatal(err)
			}
			spoil(t, blockFile(dir, 1), flip(bit))
			t.Logf("bit %d", bit)
			if found, _ := held(t, dir); len(found) < tc.n-1 {
				t.Errorf("bit %d: %d of %d messages are left", bit, len(found), tc.n)
			}
		}
	}
}

// What is cut off is gone, what is before and behind stays, and the damaged
// block is kept.
func TestCutBlocks(t *testing.T) {
	full := filled(t, 90, 1_000, jetstream.S2Compression, true)
	plain := filled(t, 30, 100, jetstream.NoCompression, true)
	for name, tc := range map[string]struct {
		tpl    string
		n      int
		change func([]byte) []byte
		left   func(found []uint64) bool
		torn   bool
	}{
		"the last bytes": {plain, 30, func(b []byte) []byte { return b[:len(b)-5] }, func(f []uint64) bool { return len(f) == 29 }, true},
		"half":           {plain, 30, func(b []byte) []byte { return b[:len(b)/2] }, func(f []uint64) bool { return len(f) >= 14 && len(f) <= 15 }, true},
		"zeroes at the end": {plain, 30, func(b []byte) []byte {
			clear(b[len(b)-40:])
			return b
		}, func(f []uint64) bool { return len(f) == 29 }, true},
		"zeroes in the middle": {plain, 30, func(b []byte) []byte {
			clear(b[len(b)/2 : len(b)/2+300])
			return b
		}, func(f []uint64) bool { return len(f) >= 26 && f[len(f)-1] == 30 }, false},
		"bytes behind it": {plain, 30, func(b []byte) []byte { return append(b, "hello, hello, hello, hello, hello"...) }, func(f []uint64) bool { return len(f) == 30 }, true},
		"half of a packed block": {full, 90, func(b []byte) []byte { return b[:len(b)/2] }, func(f []uint64) bool {
			return len(f) >= 60 && f[len(f)-1] == 90 // it is one chunk, and that is gone
		}, false},
		"a hole in a packed block": {full, 90, func(b []byte) []byte {
			clear(b[len(b)/2 : len(b)/2+100])
			return b
		}, func(f []uint64) bool { return len(f) >= 60 && f[len(f)-1] == 90 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(natsd.StreamsDir(dir), os.DirFS(natsd.StreamsDir(tc.tpl))); err != nil {
				t.Fatal(err)
			}
			spoil(t, blockFile(dir, 1), tc.change)
			damaged, err := os.ReadFile(blockFile(dir, 1))
			if err != nil {
				t.Fatal(err)
			}
			found, _ := held(t, dir)
			if !tc.left(found) {
				t.Errorf("%d of %d messages are left: %v", len(found), tc.n, found)
			}
			damage, err := scrub.Known(natsd.DamagedDir(dir))
			if err != nil || len(damage) == 0 {
				t.Fatalf("damage %v, %v", damage, err)
			}
			if torn := slices.ContainsFunc(damage, func(d scrub.Damage) bool { return d.Torn }); torn != tc.torn {
				t.Errorf("torn %v, want %v: %v", torn, tc.torn, damage)
			}
			if kept, err := os.ReadFile(damage[0].Kept); err != nil || !slices.Equal(kept, damaged) {
				t.Errorf("the damaged block is not kept: %v", err)
			}
			// Once is enough.
			again, _ := held(t, dir)
			if known, err := scrub.Known(natsd.DamagedDir(dir)); err != nil || len(known) != len(damage) || !slices.Equal(found, again) {
				t.Errorf("a second start found %v, %v", known, err)
			}
		})
	}
}

// Sound streams of every kind are left alone: with deleted, replaced and
// expired messages among them.
func TestSoundStreams(t *testing.T) {
	for _, compression := range []jetstream.StoreCompression{jetstream.NoCompression, jetstream.S2Compression} {
		for _, killed := range []bool{false, true} {
			dir := filled(t, 90, 1_000, compression, killed)
			s, err := natsd.Start(natsd.Config{Dir: dir, Port: -1, Token: "t"})
			if err != nil {
				t.Fatal(err)
			}
			nc := natsdtest.Connect(t, s)
			js, err := jetstream.New(nc)
			if err != nil {
				t.Fatal(err)
			}
			st, err := js.Stream(t.Context(), stream)
			if err != nil {
				t.Fatal(err)
			}
			for _, seq := range []uint64{1, 7, 8, 40, 90} {
				if err := st.DeleteMsg(t.Context(), seq); err != nil {
					t.Fatal(err)
				}
			}
			if err := st.SecureDeleteMsg(t.Context(), 60); err != nil {
				t.Fatal(err)
			}
			if err := st.Purge(t.Context(), jetstream.WithPurgeSubject("log.c1"), jetstream.WithPurgeKeep(3)); err != nil {
				t.Fatal(err)
			}
			for range 5 { // sent without headers, as anybody may
				if _, err := js.Publish(t.Context(), "log.plain", []byte("hello")); err != nil {
					t.Fatal(err)
				}
			}
			natsdtest.Close(nc)
			s.Shutdown()
			if found, err := scrub.Streams(natsd.StreamsDir(dir), natsd.DamagedDir(dir)); err != nil || len(found) > 0 {
				t.Errorf("%v, killed %v: %v, %v", compression, killed, found, err)
			}
		}
	}
}

// What cannot be read at all is not cut out: it may be whole, and another
// version's.
func TestForeign(t *testing.T) {
	dir := filled(t, 5, 100, jetstream.NoCompression, true)
	var before []byte
	spoil(t, blockFile(dir, 1), func(b []byte) []byte {
		for i := range b {
			b[i] ^= 0x55
		}
		before = slices.Clone(b)
		return b
	})
	if found, err := scrub.Streams(natsd.StreamsDir(dir), natsd.DamagedDir(dir)); !errors.Is(err, scrub.ErrForeign) || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
	if after, err := os.ReadFile(blockFile(dir, 1)); err != nil || !slices.Equal(before, after) {
		t.Errorf("the block was changed: %v", err)
	}
	if s, err := natsd.Start(natsd.Config{Dir: dir}); err == nil {
		s.Shutdown()
		t.Error("a server was started on it")
	}
}

// A directory without streams, or none at all, holds no damage.
func TestNothing(t *testing.T) {
	dir := t.TempDir()
	for _, root := range []string{filepath.Join(dir, "missing"), dir} {
		if found, err := scrub.Streams(root, filepath.Join(dir, "damaged")); err != nil || len(found) > 0 {
			t.Errorf("%v, %v", found, err)
		}
	}
	if found, err := scrub.Known(filepath.Join(dir, "damaged")); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
}
