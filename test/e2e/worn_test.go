package e2e_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minio/highwayhash"
	"github.com/oklog/ulid/v2"

	"github.com/rollcall-dev/rollcall/internal/api"
	"github.com/rollcall-dev/rollcall/internal/audit"
	"github.com/rollcall-dev/rollcall/internal/model/scripted"
	"github.com/rollcall-dev/rollcall/internal/natsd"
	"github.com/rollcall-dev/rollcall/projections"
)

const wornScript = `rules:
  - {member: '^Lead$', text: 'Painted, as you say.'}
`

// worn is a data directory after some use: as a node left it that was stopped,
// and one that was killed. Tests damage copies of it.
type worn struct {
	stopped, killed string
	// ids, versions and hashes of its conversations, by name.
	ids      map[string]string
	versions map[string]uint64
	hashes   map[string]string
}

// wornNames are the conversations; harbor has a body in the object store.
var wornNames = []string{"harbor", "shed", "lake"}

func wear(t *testing.T) *worn {
	t.Helper()
	p := newPlace(t, script(t, wornScript))
	p.start()
	c := p.client()
	w := &worn{ids: map[string]string{}, versions: map[string]uint64{}, hashes: map[string]string{}}
	for _, name := range wornNames {
		w.ids[name] = p.open(c, name, "Paint the "+name+".")
	}
	nc := p.nats()
	for turn := range 3 {
		for _, name := range wornNames {
			text := fmt.Sprintf("Coat %d of the %s.", turn, name)
			if turn == 1 && name == "harbor" {
				text += strings.Repeat(" Mind the gulls.", 8<<10)
			}
			p.publish(nc, inbox(w.ids[name], "lead", text))
		}
		for _, name := range wornNames {
			s := p.until(c, w.ids[name], name+" answered", quiet)
			w.versions[name], w.hashes[name] = s.Version, hex.EncodeToString(s.LastHash)
		}
	}
	document[projections.List](p, "ls") // the read models have seen it all
	p.kill()
	w.killed = copyOf(t, p.dir)
	p.start()
	p.stop()
	w.stopped = copyOf(t, p.dir)
	return w
}

func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// image is a place on a copy of a worn directory, with a model server of its
// own. Nobody judges it: it is damaged.
func image(t *testing.T, from string) *place {
	t.Helper()
	return imageIn(t, copyOf(t, from))
}

func imageIn(t *testing.T, dir string) *place {
	t.Helper()
	models, err := scripted.Config{Script: script(t, wornScript)}.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := models.Close(); err != nil {
			t.Error(err)
		}
	})
	p := &place{t, &installation{dir: dir, models: models, door: openDoor(t, models.URL())}}
	p.env = append(os.Environ(), beRollcall+"=1", "ROLLCALL_DATA="+p.dir, "ROLLCALL_MODEL=scripted",
		"OPENAI_BASE_URL="+p.door.url, "OPENAI_API_KEY=sk-e2e-"+ulid.Make().String(), "NO_COLOR=1", "GORACE=halt_on_error=1 atexit_sleep_ms=0")
	t.Cleanup(func() {
		if p.node != nil {
			p.stop()
		}
	})
	return p
}

// printed runs a command with --json that may fail, and gives what it printed.
func printed[Answer any](p *place, exit int, args ...string) (answer Answer) {
	p.t.Helper()
	s := p.rollcall(append(args, "--json")...)
	if err := json.Unmarshal([]byte(s.out), &answer); err != nil || s.code != exit {
		p.t.Fatalf("rollcall %q ended with %d, want %d: %s%s (%v)", args, s.code, exit, s.out, s.err, err)
	}
	return answer
}

type verified struct {
	Conversations []*audit.Report `json:"conversations"`
}

// sick checks that exactly the named conversations are set aside, each with
// one of these codes where the log is verified, and everywhere the others go on
// from where they were: nothing of theirs is gone.
func (w *worn) sick(p *place, names []string, codes ...string) {
	p.t.Helper()
	exit := 0
	if len(names) > 0 {
		exit = api.ExitFailed
	}
	found := map[string]*audit.Report{}
	for _, r := range printed[verified](p, exit, "verify").Conversations {
		found[r.Conversation] = r
	}
	for name, id := range w.ids {
		r := found[id]
		switch {
		case r == nil:
			p.t.Errorf("verify does not know %s", name)
		case slices.Contains(names, name):
			if len(r.Problems) == 0 || !slices.Contains(codes, r.Problems[0].Code) || r.Version >= w.versions[name] {
				p.t.Errorf("verify says of %s: version %d of %d, %v; want one of %v", name, r.Version, w.versions[name], r.Problems, codes)
			}
			p.refused(r.Problems[0].Code, api.ExitFailed, "log", id)
		case len(r.Problems) > 0 || r.Version != w.versions[name] || r.Hash != w.hashes[name]:
			p.t.Errorf("verify says of %s: version %d of %d, %v", name, r.Version, w.versions[name], r.Problems)
		}
	}
	p.poll("the sick are set aside, and nobody else", func() bool {
		for _, c := range document[projections.List](p, "ls").Conversations {
			aside := c.Status == "quarantined"
			if slices.ContainsFunc(wornNames, func(n string) bool { return w.ids[n] == c.ID }) && aside != w.is(names, c.ID) {
				return false
			}
		}
		return true
	})
	if len(names) > 0 {
		ills := p.ill()
		for _, name := range names {
			if !strings.Contains(ills, w.ids[name]) {
				p.t.Errorf("doctor does not name %s: %s", name, ills)
			}
		}
	}
	w.wellBut(p, names)
}

// readable checks that a conversation that is set aside can be read up to its
// damage: so many commits, and no more.
func (w *worn) readable(p *place, name string, sound int) {
	p.t.Helper()
	s := p.rollcall("log", w.ids[name], "--json")
	var last struct {
		Version int `json:"version"`
	}
	for line := range strings.Lines(s.out) {
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			p.t.Fatalf("log prints %q: %v", line, err)
		}
	}
	if last.Version != sound {
		p.t.Errorf("log shows %s up to version %d, %d are sound: %s", name, last.Version, sound, s.err)
	}
	for _, r := range printed[verified](p, api.ExitFailed, "verify", w.ids[name]).Conversations {
		if int(r.Version) != sound || int(r.Problems[0].Version) != sound+1 { //nolint:gosec // small
			p.t.Errorf("verify shows %s up to version %d, %v; %d are sound", name, r.Version, r.Problems, sound)
		}
	}
}

func (w *worn) is(names []string, id string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return w.ids[n] == id })
}

// wellBut checks that the others answer.
func (w *worn) wellBut(p *place, names []string) {
	p.t.Helper()
	c, nc := p.client(), p.nats()
	for _, name := range wornNames {
		if !slices.Contains(names, name) {
			before := p.state(c, w.ids[name]).Version
			p.publish(nc, inbox(w.ids[name], "lead", "And once more."))
			s := p.until(c, w.ids[name], name+" goes on", quietAfter(before))
			if got := answer(p.events(c, w.ids[name])); got != "Painted, as you say." {
				p.t.Errorf("%s says %q at version %d", name, got, s.Version)
			}
		}
	}
}

// ill is what doctor fails with.
func (p *place) ill() string {
	p.t.Helper()
	var all []string
	for _, c := range printed[api.DoctorAnswer](p, api.ExitFailed, "doctor").Checks {
		if c.Level == api.Fail {
			all = append(all, c.Name+": "+c.Found)
			if c.Fix == "" {
				p.t.Errorf("doctor does not say what to do about %s", c.Name)
			}
		}
	}
	return strings.Join(all, "\n")
}

// warned checks that doctor warns of something, and fails with nothing.
func (p *place) warned(name, about string) {
	p.t.Helper()
	for _, c := range printed[api.DoctorAnswer](p, 0, "doctor").Checks {
		if c.Name == name && c.Level == api.Warn && strings.Contains(c.Found, about) && c.Fix != "" {
			return
		}
	}
	p.t.Errorf("doctor does not warn of %s, %q", name, about)
}

// notUp checks that a node does not start, and says why.
func (p *place) notUp(code string, exit int) string {
	p.t.Helper()
	s := p.rollcall("up")
	if s.code != exit || !strings.Contains(s.err, "["+code+"]") || !strings.Contains(s.err, "\n  try  ") {
		p.t.Errorf("up ended with %d, want %d and %s and what to try: %s", s.code, exit, code, s.err)
	}
	return s.err
}

// files of a data directory's streams.

// lastBlock is the one that the stream was writing to.
func lastBlock(t *testing.T, dir, stream string) string {
	t.Helper()
	first := blockOf(dir, stream)
	all, err := filepath.Glob(filepath.Join(filepath.Dir(first), "*.blk"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no blocks of %s, %v", stream, err)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return all[len(all)-1]
}

func blockOf(dir, stream string) string {
	return filepath.Join(natsd.StreamsDir(dir), "$G", "streams", stream, "msgs", "1.blk")
}

// frame is a record of a block, as nats-server writes it.
type frame struct {
	at      int
	raw     []byte // the whole record
	subject string
}

// frames reads the records of a block that is sound.
func frames(t *testing.T, path string) (all []frame, block []byte) {
	t.Helper()
	block, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(block); {
		n := int(binary.LittleEndian.Uint32(block[at:]) &^ (1 << 31))
		subject := int(binary.LittleEndian.Uint16(block[at+20:]))
		if n < 30 || at+n > len(block) {
			t.Fatalf("%s is no block of records", path)
		}
		all = append(all, frame{at, block[at : at+n], string(block[at+22 : at+22+subject])})
		at += n
	}
	return all, block
}

// record seals a record anew after a change, or for another block.
func record(t *testing.T, stream string, block int, head, subject, headers, body []byte) []byte {
	t.Helper()
	key := sha256.Sum256(fmt.Appendf(nil, "%s-%d", stream, block))
	sum, err := highwayhash.New64(key[:])
	if err != nil {
		t.Fatal(err)
	}
	out := append(slices.Clone(head), subject...)
	size := uint32(len(head) + len(subject) + len(body) + 8) //nolint:gosec // small
	if headers != nil {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(headers))) //nolint:gosec // small
		out = append(out, headers...)
		size = (size + 4 + uint32(len(headers))) | 1<<31 //nolint:gosec // small
	}
	out = append(out, body...)
	binary.LittleEndian.PutUint32(out, size)
	for _, part := range [][]byte{out[4:20], subject, headers, body} {
		_, _ = sum.Write(part)
	}
	return sum.Sum(out)
}

// parts takes a record apart: what record puts together.
func (f frame) parts() (head, headers, body []byte) {
	head, body = slices.Clone(f.raw[:22]), f.raw[22+len(f.subject):len(f.raw)-8]
	if binary.LittleEndian.Uint32(head)&(1<<31) != 0 {
		n := binary.LittleEndian.Uint32(body)
		headers, body = body[4:4+n], body[4+n:]
	}
	return head, headers, body
}

// overwrite replaces a file's content.
func overwrite(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil { //nolint:gosec // the test's own
		t.Fatal(err)
	}
}

// over waits until the node has ended by itself.
func (p *place) over() (code int, said string) {
	p.t.Helper()
	p.poll("the node ends", func() bool {
		select {
		case <-p.node.done:
			return true
		default:
			return false
		}
	})
	code, said = p.node.ProcessState.ExitCode(), p.node.out.String()
	p.node = nil
	return code, said
}
