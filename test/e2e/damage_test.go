package e2e_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/natsd"
	"github.com/rollcall-dev/rollcall/internal/natsd/natsdtest"
	"github.com/rollcall-dev/rollcall/internal/nodefile"
)

// Storage that is damaged: each kind is named, and refused or survived, and
// nothing is passed over in silence. docs/storage.md tells the same to people.
func TestStorage(t *testing.T) {
	t.Parallel()
	w := wear(t)
	for _, tc := range []struct {
		name string
		test func(t *testing.T, w *worn)
	}{
		{"storage-flipped-bit-in-a-commit", flippedCommit},
		{"storage-flipped-bit-in-the-index", flippedIndex},
		{"storage-torn-tail", tornTail},
		{"storage-missing-block", missingBlock},
		{"storage-missing-log", missingLog},
		{"storage-flipped-bit-in-the-inbox", flippedInbox},
		{"storage-missing-blob", missingBlob},
		{"storage-replaced-blob", replacedBlob},
		{"storage-snapshot-of-another-version", otherSnapshots},
		{"storage-newer-directory", newerDirectory},
		{"storage-directory-in-use", directoryInUse},
		{"storage-full-disk", fullDisk},
		{"storage-read-only-disk", readOnlyDisk},
		{"storage-clock-set-back", clockSetBack},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.test(t, w) })
	}
}

// seeded is a source of places to damage; ROLLCALL_SEED makes a run come again.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("ROLLCALL_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("ROLLCALL_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // no secret
}

// One bit of one commit of harbor is flipped, anywhere in its record.
func flippedCommit(t *testing.T, w *worn) {
	times := 2
	if os.Getenv("ROLLCALL_SOAK") != "" {
		times = 60
	}
	r := seeded(t)
	for i := range times {
		from := w.killed
		if i%2 == 1 {
			from = w.stopped
		}
		p := image(t, from)
		block := blockOf(p.dir, eventstore.StreamEvents)
		all, raw := frames(t, block)
		var of []frame
		for _, f := range all {
			if strings.HasSuffix(f.subject, "."+w.ids["harbor"]) {
				of = append(of, f)
			}
		}
		sound := r.IntN(len(of))
		f := of[sound]
		bit := r.IntN(8 * len(f.raw))
		t.Logf("bit %d of a record of %d bytes at %d of %d", bit, len(f.raw), f.at, len(raw))
		raw[f.at+bit/8] ^= 1 << (bit % 8)
		overwrite(t, block, raw)

		p.start()
		if said := p.node.out.String(); !strings.Contains(said, "cut out") || !strings.Contains(said, "ROLLCALL_EVENTS") {
			t.Errorf("the node says nothing of it: %s", said)
		}
		w.sick(p, []string{"harbor"}, "log-broken", "log-tail-lost")
		w.readable(p, "harbor", sound)
		if ill := p.ill(); !strings.Contains(ill, "damage: ") {
			t.Errorf("doctor says %s", ill)
		}
		p.stop()
	}
}

// A bit is flipped in what is no message: indexes, settings, their checksums,
// cursors; of every stream at once, and of the log's alone.
func flippedIndex(t *testing.T, w *worn) {
	r := seeded(t)
	for stream, least := range map[string]int{"": 3 * 7, eventstore.StreamEvents: 3} {
		p := image(t, w.stopped)
		flipped := 0
		err := filepath.WalkDir(filepath.Join(natsd.StreamsDir(p.dir), "$G", "streams", stream), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, ".blk") {
				return err
			}
			b, err := os.ReadFile(path)
			if err != nil || len(b) == 0 {
				return err
			}
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
			flipped++
			return os.WriteFile(path, b, 0o600) //nolint:gosec // the test's own
		})
		if err != nil || flipped < least {
			t.Fatalf("%d files, %v", flipped, err)
		}
		p.start()
		w.sick(p, nil)
		p.stop()
	}
}

// The end of the log's last block is cut off, at every kind of place.
func tornTail(t *testing.T, w *worn) {
	for name, tc := range map[string]struct {
		from string
		cut  func(all []frame, b []byte) []byte
		lost int // so many of the newest commits
	}{
		"between two commits":      {w.stopped, func(all []frame, b []byte) []byte { return b[:all[len(all)-1].at] }, 1},
		"in a commit":              {w.killed, func(all []frame, b []byte) []byte { return b[:all[len(all)-2].at+50] }, 2},
		"behind the last, a scrap": {w.killed, func(all []frame, b []byte) []byte { return append(b, b[:100]...) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := image(t, tc.from)
			block := blockOf(p.dir, eventstore.StreamEvents)
			all, raw := frames(t, block)
			overwrite(t, block, tc.cut(all, raw))
			var names []string
			for _, f := range all[len(all)-tc.lost:] {
				for _, n := range wornNames {
					if strings.HasSuffix(f.subject, w.ids[n]) && !w.is(names, w.ids[n]) {
						names = append(names, n)
					}
				}
			}
			p.start()
			w.sick(p, names, "log-tail-lost")
			if tc.lost == 0 && !strings.Contains(p.ill(), "damage: ") {
				t.Error("doctor does not tell of the scrap")
			}
		})
	}
}

// A message that was acknowledged to its sender and not yet taken up is damaged.
// It is gone, which is told with whose it was; those beside it are delivered.
func flippedInbox(t *testing.T, w *worn) {
	p := image(t, w.killed)
	server, err := natsd.Start(natsd.Config{Dir: p.dir})
	if err != nil {
		t.Fatal(err)
	}
	nc, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range wornNames {
		p.publish(nc, inbox(w.ids[name], "lead", "Left for the morning."))
	}
	nc.Close()
	server.Shutdown()
	block := lastBlock(t, p.dir, eventstore.StreamInbox)
	all, raw := frames(t, block)
	at := -1
	for _, f := range all {
		if strings.Contains(f.subject, w.ids["harbor"]) && bytes.Contains(f.raw, []byte("Left for the morning.")) {
			at = f.at
		}
	}
	if at < 0 {
		t.Fatal("the message is not in the last block")
	}
	raw[at+15] ^= 1
	overwrite(t, block, raw)

	p.start()
	c := p.client()
	for _, name := range []string{"shed", "lake"} {
		p.until(c, w.ids[name], name+" gets its message", quietAfter(w.versions[name]))
	}
	if ill := p.ill(); !strings.Contains(ill, eventstore.StreamInbox) || !strings.Contains(ill, w.ids["harbor"]) {
		t.Errorf("doctor says %s", ill)
	}
	w.wellBut(p, nil)
}

// One of several blocks is gone.
func missingBlock(t *testing.T, w *worn) {
	p := image(t, w.killed)
	first := blockOf(p.dir, eventstore.StreamEvents)
	all, _ := frames(t, first)
	blocks := make([][]byte, 3)
	for i, f := range all {
		n := 3 * i / len(all)
		head, headers, body := f.parts()
		blocks[n] = append(blocks[n], record(t, eventstore.StreamEvents, n+1, head, []byte(f.subject), headers, body)...)
	}
	overwrite(t, first, blocks[0])
	overwrite(t, filepath.Join(filepath.Dir(first), "3.blk"), blocks[2])
	if err := os.RemoveAll(filepath.Join(filepath.Dir(first), "index.db")); err != nil {
		t.Fatal(err)
	}
	p.start()
	w.sick(p, wornNames, "log-broken")
	if ill := p.ill(); strings.Contains(ill, "damage: ") {
		t.Errorf("the blocks that are there are sound, and doctor says %s", ill)
	}
}

// The log's block is gone, or the stream altogether.
func missingLog(t *testing.T, w *worn) {
	p := image(t, w.killed)
	if err := os.Remove(blockOf(p.dir, eventstore.StreamEvents)); err != nil {
		t.Fatal(err)
	}
	p.start()
	w.sick(p, wornNames, "log-tail-lost")
	c := p.client()
	p.until(c, p.open(c, "pier", "Paint the pier."), "a new conversation works", quiet)
	p.stop()

	p = image(t, w.stopped)
	if err := os.RemoveAll(filepath.Join(natsd.StreamsDir(p.dir), "$G", "streams", eventstore.StreamEvents)); err != nil {
		t.Fatal(err)
	}
	if said := p.notUp("installation-incomplete", api.ExitFailed); !strings.Contains(said, eventstore.StreamEvents) {
		t.Errorf("up says %s", said)
	}
}

// A body is gone: the run that needs it ends with a name for it.
func missingBlob(t *testing.T, w *worn) {
	p := image(t, w.killed)
	block := blockOf(p.dir, "OBJ_"+eventstore.BucketBlobs)
	all, raw := frames(t, block)
	at := -1
	for _, f := range all {
		if len(f.raw) > 64<<10 {
			at = f.at + len(f.raw)/2
		}
	}
	if at < 0 {
		t.Fatal("there is no body in the object store")
	}
	raw[at] ^= 4
	overwrite(t, block, raw)
	p.start()
	w.bodyless(p)
}

// Other bytes stand under the name of a body.
func replacedBlob(t *testing.T, w *worn) {
	p := image(t, w.killed)
	p.start()
	o, err := p.streams().ObjectStore(p.ctx(), eventstore.BucketBlobs)
	if err != nil {
		t.Fatal(err)
	}
	list, err := o.List(p.ctx())
	if err != nil || len(list) != 1 {
		t.Fatalf("%d bodies, %v", len(list), err)
	}
	if _, err := o.PutBytes(p.ctx(), list[0].Name, bytes.Repeat([]byte("x"), int(list[0].Size))); err != nil { //nolint:gosec // small
		t.Fatal(err)
	}
	w.bodyless(p)
}

// bodyless checks an installation in which harbor's large message cannot be
// read: its log is whole, and only what needs the body fails.
func (w *worn) bodyless(p *place) {
	p.t.Helper()
	found := 0
	for _, r := range printed[verified](p, api.ExitFailed, "verify").Conversations {
		for _, problem := range r.Problems {
			if found++; r.Conversation != w.ids["harbor"] || problem.Code != "request-lost" {
				p.t.Errorf("verify says of %s: %v", r.Name, problem)
			}
		}
		if r.Conversation == w.ids["harbor"] && (len(r.Problems) == 0 || r.Version != w.versions["harbor"]) {
			p.t.Errorf("verify says of harbor: version %d, %v", r.Version, r.Problems)
		}
	}
	w.wellBut(p, []string{"harbor"})
	c := p.client()
	before := p.state(c, w.ids["harbor"]).Version
	p.publish(p.nats(), inbox(w.ids["harbor"], "lead", "And once more."))
	s := p.until(c, w.ids["harbor"], "harbor's run ends", quietAfter(before))
	if m := s.Members[0]; m.LastCode != "request-not-built" {
		p.t.Errorf("harbor's run ended with %q: %s", m.LastCode, m.LastDetail)
	}
}

func quietAfter(version uint64) func(*domain.State) bool {
	return func(s *domain.State) bool { return quiet(s) && s.Version > version+1 }
}

// Snapshots are a cache: what is wrong with one is no harm.
func otherSnapshots(t *testing.T, w *worn) {
	p := image(t, w.killed)
	p.start()
	nc := p.nats()
	store, err := eventstore.Open(p.ctx(), nc, eventstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	last := func(name string) (key domain.Key, at eventstore.Position) {
		key = domain.Key{Tenant: "main", Conversation: w.ids[name]}
		if err := store.Load(p.ctx(), key, at, func(r eventstore.Recorded) error { at = r.Position(); return nil }); err != nil {
			t.Fatal(err)
		}
		return key, at
	}
	save := func(name string, evolve uint32, data string) {
		key, at := last(name)
		if err := store.SaveSnapshot(p.ctx(), key, eventstore.Snapshot{Position: at, EvolveVersion: evolve, Data: []byte(data)}); err != nil {
			t.Fatal(err)
		}
	}
	save("shed", domain.EvolveVersion+7, `{"a state":"of another version"}`)
	save("lake", domain.EvolveVersion, "no state")
	o, err := js.ObjectStore(p.ctx(), eventstore.BucketSnapshots)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.PutBytes(p.ctx(), "main."+w.ids["harbor"], []byte("no snapshot")); err != nil {
		t.Fatal(err)
	}
	p.kill()
	p.start()
	w.sick(p, nil)
}

// A newer program set the streams up.
func newerDirectory(t *testing.T, w *worn) {
	p := image(t, w.stopped)
	p.start()
	js := p.streams()
	s, err := js.Stream(p.ctx(), eventstore.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	ours := cfg.Metadata["rollcall.provision"]
	stamp := func(provision string) {
		cfg.Metadata["rollcall.provision"], cfg.Metadata["rollcall.needs"] = provision, provision
		if _, err := js.UpdateStream(p.ctx(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	stamp("99")
	p.stop()
	if said := p.notUp("installation-newer", api.ExitRefused); !strings.Contains(said, "99") {
		t.Errorf("up says %s", said)
	}
	p.refused("node-not-started", api.ExitUnreachable, "run", "Paint the pier.", "--detach")

	// Nothing was touched: the right program goes on.
	server, err := natsd.Start(natsd.Config{Dir: p.dir})
	if err != nil {
		t.Fatal(err)
	}
	nc, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	if js, err = jetstream.New(nc); err != nil {
		t.Fatal(err)
	}
	stamp(ours)
	nc.Close()
	server.Shutdown()
	p.start()
	w.sick(p, nil)
}

// Two nodes do not share a directory, and the second harms nothing.
func directoryInUse(t *testing.T, w *worn) {
	p := image(t, w.stopped)
	p.start()
	pid := strconv.Itoa(p.node.Process.Pid)
	if said := p.notUp("data-directory-in-use", api.ExitRefused); !strings.Contains(said, pid) {
		t.Errorf("up does not name process %s: %s", pid, said)
	}
	if info, err := nodefile.Read(p.dir); err != nil || strconv.Itoa(info.PID) != pid {
		t.Errorf("node.json is %+v, %v", info, err)
	}
	w.sick(p, nil)
}

// A full disk ends the node with a name for it. With space again, all that was
// acknowledged is there and goes on.
func fullDisk(t *testing.T, w *worn) {
	dir, fill := natsdtest.SmallDisk(t, 32<<20)
	if err := os.CopyFS(filepath.Join(dir, "data"), os.DirFS(w.stopped)); err != nil {
		t.Fatal(err)
	}
	p := imageIn(t, filepath.Join(dir, "data"))
	p.start()
	nc := p.nats()
	empty := fill()
	acknowledged := 0
	for range 1000 {
		reply, err := nc.Request("rollcall.in.main."+w.ids["shed"]+".lead", []byte("And a coat."), 2*time.Second)
		if err != nil || !bytes.Contains(reply.Data, []byte(`"seq"`)) {
			break
		}
		acknowledged++
	}
	code, said := p.over()
	if code != api.ExitFailed || !strings.Contains(said, "[storage-failed]") || !strings.Contains(said, "no space left") || !strings.Contains(said, "\n  try  ") {
		t.Errorf("the node ended with %d: %s", code, said)
	}
	t.Logf("%d messages were acknowledged on the full disk", acknowledged)
	p.refused("node-unreachable", api.ExitUnreachable, "ls")
	fill() // to the last byte
	p.notUp("data-directory-unusable", api.ExitRefused)

	empty()
	p.start()
	c := p.client()
	delivered := 0
	p.until(c, w.ids["shed"], "what was acknowledged is delivered", func(s *domain.State) bool {
		delivered = -4 // those of the worn directory
		for _, e := range p.events(c, w.ids["shed"]) {
			if e.GetMessageDelivered() != nil {
				delivered++
			}
		}
		return quiet(s) && delivered >= acknowledged
	})
	if printed[verified](p, 0, "verify"); delivered > acknowledged+1 {
		t.Errorf("%d messages were acknowledged, %d delivered", acknowledged, delivered)
	}
	w.wellBut(p, nil)
}

// A disk that can only be read is refused before anything is begun.
func readOnlyDisk(t *testing.T, w *worn) {
	p := image(t, w.killed)
	writable := natsdtest.ReadOnly(t, p.dir)
	if said := p.notUp("data-directory-unusable", api.ExitRefused); !strings.Contains(said, "read-only") {
		t.Errorf("up says %s", said)
	}
	p.refused("data-directory-unusable", api.ExitRefused, "run", "Paint the pier.", "--detach")
	p.refused("node-unreachable", api.ExitUnreachable, "ls")
	if ill := p.ill(); !strings.Contains(ill, "read-only") {
		t.Errorf("doctor says %s", ill)
	}
	writable()
	p.start()
	w.sick(p, nil)
}

// The clock was an hour ahead when the directory was written, and is right
// again: for the node it was set back an hour.
func clockSetBack(t *testing.T, w *worn) {
	p := image(t, w.killed)
	was := *w
	was.hashes = map[string]string{}
	for _, stream := range []string{
		eventstore.StreamEvents, eventstore.StreamInbox, eventstore.StreamTimers, eventstore.StreamDead,
		"KV_" + eventstore.BucketNodes, "OBJ_" + eventstore.BucketBlobs, "OBJ_" + eventstore.BucketSnapshots,
	} {
		if _, err := os.Stat(blockOf(p.dir, stream)); err == nil {
			ahead(t, &was, p.dir, stream)
		}
	}
	for _, name := range []string{"views.db", "views.db-wal", "views.db-shm"} {
		if err := os.RemoveAll(filepath.Join(p.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	p.start()
	c := p.client()
	if at := p.state(c, w.ids["shed"]).Time; time.Until(at) < 50*time.Minute {
		t.Fatalf("the log ends at %v: that is not ahead", at)
	}
	p.warned("log", "set back")
	was.sick(p, nil)
	// Its name still tells a command from its repetition.
	nc := p.nats()
	for range 2 {
		p.publish(nc, inbox(w.ids["lake"], "lead", "Once.", "Rollcall-Id", "once"))
	}
	p.poll("it is delivered once", func() bool {
		n := 0
		for _, e := range p.events(c, w.ids["lake"]) {
			if e.GetMessageDelivered().GetBody().GetText() == "Once." {
				n++
			}
		}
		return n == 1
	})
	p.kill()
	p.start() // and takes its claims over at once, although they say tomorrow
	was.wellBut(p, nil)
	for _, r := range printed[verified](p, 0, "verify").Conversations {
		if len(r.Problems) > 0 {
			t.Errorf("%s: %v", r.Name, r.Problems)
		}
	}
}

// ahead moves every message of a stream an hour into the future, commits sealed
// anew, as a node with such a clock would have written them.
func ahead(t *testing.T, w *worn, dir, stream string) {
	t.Helper()
	all, _ := frames(t, blockOf(dir, stream))
	last := map[string][]byte{}
	var out []byte
	for _, f := range all {
		head, headers, rest := f.parts()
		if at := binary.LittleEndian.Uint64(head[12:]); at > 0 {
			binary.LittleEndian.PutUint64(head[12:], at+uint64(time.Hour))
		}
		if c, err := domain.Unseal(rest); err == nil && stream == eventstore.StreamEvents {
			c.Time = timestamppb.New(c.GetTime().AsTime().Add(time.Hour))
			c.PreviousHash = last[f.subject]
			if rest, err = domain.Seal(c); err != nil {
				t.Fatal(err)
			}
			last[f.subject] = c.GetHash()
		}
		out = append(out, record(t, stream, 1, head, []byte(f.subject), headers, rest)...)
	}
	overwrite(t, blockOf(dir, stream), out)
	for name, id := range w.ids {
		for subject, hash := range last {
			if strings.HasSuffix(subject, "."+id) {
				w.hashes[name] = hex.EncodeToString(hash)
			}
		}
	}
	if err := os.RemoveAll(filepath.Join(filepath.Dir(blockOf(dir, stream)), "index.db")); err != nil {
		t.Fatal(err)
	}
}
