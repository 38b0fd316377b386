package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/audit"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

var second = domain.Key{Tenant: "main", Conversation: "01jzzzzzzzzzzzzzzzzzzzzzzy"}

// large is a body of three pieces.
var (
	large     = bytes.Repeat([]byte("paint "), 200_000)
	largeBlob = &rollcallv1.Blob{Sha256: sum(large), Size: uint64(len(large))}
)

// exported writes a log of two conversations, commit by commit in turn, with a
// large body.
func exported(t testing.TB, sealed [][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := audit.NewWriter(&out, "test", time.Unix(1000, 0))
	for i, raw := range sealed {
		for j, k := range []domain.Key{key, second} {
			if err == nil {
				err = w.Commit(audit.Entry{Key: k, Seq: uint64(10 + 2*i + j), Header: map[string][]string{"Rollcall-Version": {fmt.Sprint(i + 1)}}, Sealed: raw})
			}
		}
		if i == 1 && err == nil {
			err = w.Body(key, largeBlob, large)
		}
	}
	if err == nil {
		err = w.Missing(second, largeBlob, "it was gone")
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func opened(data []byte) (*audit.Export, error) {
	return audit.OpenExport(bytes.NewReader(data), int64(len(data)), nil)
}

func sealedOf(t testing.TB, s audit.Source, k domain.Key) (all [][]byte) {
	t.Helper()
	if err := s.Read(t.Context(), k, func(e audit.Entry) error {
		all = append(all, e.Sealed)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestExport(t *testing.T) {
	want := story(t).sealed()
	x, err := opened(exported(t, want))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []domain.Key{key, second} {
		if got := sealedOf(t, x, k); !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("%s: %d of %d commits", k, len(got), len(want))
		}
	}
	if got, err := x.Body(t.Context(), key, largeBlob); err != nil || !bytes.Equal(got, large) {
		t.Errorf("a body of %d bytes: %v", len(got), err)
	}
	refused(t, "blob-not-found", "missing when the export was written", func() error { _, err := x.Body(t.Context(), second, largeBlob); return err }())
	if r := audit.Check(key, sealedOf(t, x, key), nil); len(r.Problems) > 0 {
		t.Error(r.Problems)
	}
	for ref, want := range map[string]domain.Key{key.Conversation: key, second.Conversation: second} {
		if got, err := x.Find(t.Context(), "", ref); err != nil || got != want {
			t.Errorf("%s is %v, %v", ref, got, err)
		}
	}
	refused(t, "conversation-ambiguous", "(main.01", func() error { _, err := x.Find(t.Context(), "", "audit"); return err }())
	refused(t, "conversation-ambiguous", "(main.01", func() error { _, err := x.Find(t.Context(), "", "01JZ"); return err }())
	refused(t, "conversation-not-found", "", func() error { _, err := x.Find(t.Context(), "", "nobody"); return err }())
	refused(t, "conversation-not-found", "0 were looked through", func() error { _, err := x.Find(t.Context(), "acme", key.Conversation); return err }())
}

func refused(t *testing.T, code, says string, err error) {
	t.Helper()
	r, ok := errors.AsType[*domain.Refusal](err)
	if !ok || r.Code != code || !strings.Contains(r.Why, says) {
		t.Errorf("want %s with %q, got %v", code, says, err)
	}
}

// Whatever is done to an export is noticed, and it is said where.
func TestDamagedExports(t *testing.T) {
	whole := exported(t, story(t).sealed())
	lines := bytes.SplitAfter(whole, []byte("\n"))
	lines = lines[:len(lines)-1]
	edit := func(n int, from, to string) func([][]byte) [][]byte {
		return func(l [][]byte) [][]byte {
			if !bytes.Contains(l[n-1], []byte(from)) {
				t.Fatalf("line %d has no %s", n, from)
			}
			l[n-1] = bytes.Replace(l[n-1], []byte(from), []byte(to), 1)
			return l
		}
	}
	last := len(lines)
	for name, x := range map[string]struct {
		says string
		do   func([][]byte) [][]byte
	}{
		"cut":                {"it was cut off: the last line", func(l [][]byte) [][]byte { return l[:last-1] }},
		"cut in a line":      {"line 3: it was cut off in the middle", func(l [][]byte) [][]byte { return [][]byte{l[0], l[1], l[2][:50]} }},
		"emptied":            {"does not begin as one", func([][]byte) [][]byte { return nil }},
		"a commit less":      {"commits, and", func(l [][]byte) [][]byte { return slices.Delete(l, 2, 3) }},
		"a body less":        {"lines stand before it", func(l [][]byte) [][]byte { return slices.DeleteFunc(l, isBody) }},
		"a piece less":       {"piece at", func(l [][]byte) [][]byte { return slices.Delete(l, 6, 7) }},
		"exchanged commits":  {"the order was changed", func(l [][]byte) [][]byte { l[1], l[3] = l[3], l[1]; return l }},
		"exchanged others":   {"", func(l [][]byte) [][]byte { l[1], l[2] = l[2], l[1]; return l }},
		"a commit twice":     {"the order was changed", func(l [][]byte) [][]byte { return slices.Insert(l, 3, l[1]) }},
		"more behind":        {"after the end", func(l [][]byte) [][]byte { return append(l, l[1]) }},
		"a number changed":   {"beside the commits", edit(2, `"seq":10`, `"seq":9`)},
		"a header changed":   {"beside the commits", edit(4, `["2"]`, `["3"]`)},
		"a commit changed":   {"line 4: commit 2 of main.01jzzzzzzzzzzzzzzzzzzzzzzz was changed", flip(4)},
		"a subject changed":  {"is the log of no conversation", edit(2, `"subject":"rollcall.events.`, `"subject":"rollcall.events.9`)},
		"another's":          {"", edit(2, key.Conversation, second.Conversation)},
		"no JSON":            {"line 2: it is no JSON", edit(2, `{`, `[`)},
		"no head":            {"does not begin as one", func(l [][]byte) [][]byte { return l[1:] }},
		"another word of it": {"", edit(1, "test", "tess")},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := opened(bytes.Join(x.do(clone(lines)), nil))
			refused(t, "export-broken", x.says, err)
		})
	}
	newer := bytes.Replace(whole, []byte(`"format":1`), []byte(`"format":2`), 1)
	_, err := opened(newer)
	refused(t, "export-newer", "", err)
	later := slices.Insert(clone(lines), 1, []byte(`{"type":"note","text":"of a later release"}`+"\n"))
	if _, err := opened(sealedAnew(t, later)); err != nil {
		t.Errorf("a line of a kind to come: %v", err)
	}
	// A single bit anywhere.
	whole = bytes.Join(slices.DeleteFunc(clone(lines), isBody), nil)
	whole = sealedAnew(t, bytes.SplitAfter(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n")))
	for i := 0; i < len(whole); i += 1 + len(whole)/200 {
		bad := bytes.Clone(whole)
		bad[i] ^= 4
		if _, err := opened(bad); err == nil {
			t.Errorf("a flipped bit at %d of %d is not noticed: %s", i, len(whole), whole[max(0, i-20):min(len(whole), i+20)])
		}
	}
}

// Who makes the last line anew fools the container, not the chain of hashes.
func TestForgedExport(t *testing.T) {
	lines := bytes.SplitAfter(exported(t, story(t).sealed()), []byte("\n"))
	lines = flip(4)(clone(lines[:len(lines)-1]))
	x, err := opened(sealedAnew(t, lines))
	if err != nil {
		t.Fatal(err)
	}
	if r := audit.Check(key, sealedOf(t, x, key), nil); len(r.Problems) == 0 || r.Problems[0].Code != "log-broken" || r.Problems[0].Version != 2 {
		t.Error(r.Problems)
	}
	body := slices.IndexFunc(lines, isBody)
	lines[body] = bytes.Replace(lines[body], []byte(`cGFpbnQg`), []byte(`cGFpbnQh`), 1)
	if x, err = opened(sealedAnew(t, lines)); err != nil {
		t.Fatal(err)
	}
	_, err = x.Body(t.Context(), key, largeBlob)
	refused(t, "export-broken", fmt.Sprintf("line %d: stored text", body+1), err)
}

func isBody(l []byte) bool { return bytes.Contains(l, []byte(`"type":"body"`)) }

func clone(lines [][]byte) (all [][]byte) {
	for _, l := range lines {
		all = append(all, bytes.Clone(l))
	}
	return all
}

// flip changes a byte of the commit in a line.
func flip(n int) func([][]byte) [][]byte {
	return func(l [][]byte) [][]byte {
		var fields map[string]any
		if err := json.Unmarshal(l[n-1], &fields); err != nil {
			panic(err)
		}
		data := []byte(fields["data"].(string))
		if data[20]++; data[20] > 'Y' {
			data[20] = 'B'
		}
		l[n-1] = bytes.Replace(l[n-1], []byte(fields["data"].(string)), data, 1)
		return l
	}
}

// sealedAnew makes the last line of an export fit.
func sealedAnew(t *testing.T, lines [][]byte) []byte {
	t.Helper()
	n := len(lines) - 1
	var end map[string]any
	if err := json.Unmarshal(lines[n], &end); err != nil {
		t.Fatal(err)
	}
	before := bytes.Join(lines[:n], nil)
	end["lines"], end["sum"] = n, sum(before)
	data, err := json.Marshal(end)
	if err != nil {
		t.Fatal(err)
	}
	return append(before, append(data, '\n')...)
}

// Whatever opens can be read, and is the same when it is written anew.
func FuzzExport(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte(`{"type":"rollcall-export","format":1}` + "\n" + `{"type":"end","lines":1}` + "\n"))
	var small bytes.Buffer
	w, err := audit.NewWriter(&small, "test", time.Unix(1000, 0))
	if err == nil {
		err = errors.Join(w.Commit(audit.Entry{Key: key, Seq: 7, Sealed: []byte("no commit at all")}), w.Body(key, largeBlob, []byte("x")), w.Close())
	}
	if err != nil {
		f.Fatal(err)
	}
	f.Add(small.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := opened(data)
		if err != nil {
			if r, ok := errors.AsType[*domain.Refusal](err); !ok || r.Why == "" {
				t.Fatal(err)
			}
			return
		}
		var out bytes.Buffer
		w, err := audit.NewWriter(&out, "again", time.Unix(2000, 0))
		if err != nil {
			t.Fatal(err)
		}
		keys, err := x.Conversations(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range keys {
			if err := x.Read(t.Context(), k, w.Commit); err != nil {
				t.Fatal(err)
			}
			if found, err := x.Find(t.Context(), "", k.Conversation); err == nil && found.Conversation != k.Conversation {
				t.Errorf("%s is found as %s", k, found)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := opened(out.Bytes())
		if err != nil {
			t.Fatalf("written anew: %v", err)
		}
		for _, k := range keys {
			if a, b := sealedOf(t, x, k), sealedOf(t, again, k); !slices.EqualFunc(a, b, bytes.Equal) {
				t.Errorf("%s differs", k)
			}
		}
	})
}
