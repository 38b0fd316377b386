package files

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/tool"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// A desk is a member at work: the object store, the tools, and what the log
// would make of their outcomes.
type desk struct {
	t     *testing.T
	blobs map[string][]byte
	away  error
	tools map[string]tool.Tool
	plan  domain.ToolPlan
}

func (d *desk) PutBlob(_ context.Context, _ domain.Key, data []byte) (*rollcallv1.Blob, error) {
	b := &rollcallv1.Blob{Sha256: fmt.Sprintf("%x", sha256.Sum256(data)), Size: uint64(len(data))}
	if d.away == nil {
		d.blobs[b.GetSha256()] = data
	}
	return b, d.away
}

func (d *desk) GetBlob(_ context.Context, _ domain.Key, b *rollcallv1.Blob) ([]byte, error) {
	return d.blobs[b.GetSha256()], d.away
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, blobs: map[string][]byte{}, tools: map[string]tool.Tool{}, plan: domain.ToolPlan{
		Member: domain.MemberView{ID: "m1", Name: "Frontend"},
		Files:  map[string]*rollcallv1.Blob{},
		Others: []string{"Lead", "Backend"},
	}}
	for _, x := range New(d) {
		d.tools[x.Definition().GetName()] = x
	}
	return d
}

func (d *desk) have(path, content string) {
	b, err := d.PutBlob(d.t.Context(), d.plan.Key, []byte(content))
	if err != nil {
		d.t.Fatal(err)
	}
	d.plan.Files[path] = b
}

func (d *desk) content(path string) string {
	b, ok := d.plan.Files[path]
	if !ok {
		return "(no file)"
	}
	return string(d.blobs[b.GetSha256()])
}

// call runs a tool and applies its changes, as the log does.
func (d *desk) call(name string, args map[string]any) tool.Outcome {
	d.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		d.t.Fatal(err)
	}
	out, err := d.tools[name].Call(d.t.Context(), d.plan, raw)
	if err != nil {
		d.t.Fatalf("%s: %v", name, err)
	}
	if out.Error && len(out.Files) > 0 {
		d.t.Errorf("%s failed and changed files: %+v", name, out)
	}
	for _, f := range out.Files {
		if f.GetBlob() == nil {
			delete(d.plan.Files, f.GetPath())
		} else {
			d.plan.Files[f.GetPath()] = f.GetBlob()
		}
	}
	return out
}

func (d *desk) says(name string, args map[string]any, want string) {
	d.t.Helper()
	if out := d.call(name, args); out.Error || out.Output != want {
		d.t.Errorf("%s %v:\n got %q (error %v)\nwant %q", name, args, out.Output, out.Error, want)
	}
}

func (d *desk) refuses(name string, args map[string]any, says ...string) {
	d.t.Helper()
	out := d.call(name, args)
	for _, s := range says {
		if !out.Error || !strings.Contains(out.Output, s) {
			d.t.Errorf("%s %v: got %q (error %v), want an error that says %q", name, args, out.Output, out.Error, s)
		}
	}
}

type obj = map[string]any

func TestDefinitions(t *testing.T) {
	d := newDesk(t)
	var names []string
	for _, x := range New(d) {
		def := x.Definition()
		names = append(names, def.GetName())
		var schema struct {
			Type       string         `json:"type"`
			Properties map[string]any `json:"properties"`
		}
		if err := json.Unmarshal([]byte(def.GetSchema()), &schema); err != nil || schema.Type != "object" || schema.Properties["path"] == nil {
			t.Errorf("%s has the schema %s (%v)", def.GetName(), def.GetSchema(), err)
		}
		if !def.GetIdempotent() || def.GetCoordination() || def.GetDescription() == "" {
			t.Errorf("%s is %v", def.GetName(), def)
		}
	}
	if diff := cmp.Diff([]string{"file_write", "file_read", "file_list", "file_edit", "file_delete"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestWriteReadEditDelete(t *testing.T) {
	d := newDesk(t)
	d.says("file_write", obj{"path": "./api//p.json", "content": "{\"name\":\"Ada\"}\n"}, "wrote api/p.json (15 bytes, 1 line).")
	d.says("file_read", obj{"path": "api/p.json"}, "{\"name\":\"Ada\"}\n")
	d.says("file_edit", obj{"path": "api/p.json", "old_text": "name", "new_text": "display_name"}, "edited api/p.json (23 bytes, 1 line).")
	if got := d.content("api/p.json"); got != "{\"display_name\":\"Ada\"}\n" {
		t.Errorf("the file holds %q", got)
	}
	d.says("file_write", obj{"path": "api/p.json", "content": ""}, "replaced api/p.json (0 bytes, 0 lines).")
	d.says("file_read", obj{"path": "api/p.json"}, "[api/p.json is empty]")
	d.says("file_delete", obj{"path": "api/p.json"}, "deleted api/p.json.")
	d.refuses("file_delete", obj{"path": "api/p.json"}, "there is no file api/p.json", "no files that you can read yet")
}

func TestSameContentChangesNothing(t *testing.T) {
	d := newDesk(t)
	d.call("file_write", obj{"path": "a", "content": "x"})
	if out := d.call("file_write", obj{"path": "a", "content": "x"}); out.Error || len(out.Files) != 0 || !strings.Contains(out.Output, "has this content already") {
		t.Errorf("a repeated write gave %+v", out)
	}
}

// A crash before the outcome is recorded runs the call again: the same change.
func TestRepeatedCallsGiveTheSameChange(t *testing.T) {
	for name, args := range map[string]obj{
		"file_write":  {"path": "new", "content": "x"},
		"file_edit":   {"path": "a", "old_text": "one", "new_text": "two"},
		"file_delete": {"path": "a"},
		"file_read":   {"path": "a"},
		"file_list":   {},
	} {
		d := newDesk(t)
		d.have("a", "one")
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		first, err := d.tools[name].Call(t.Context(), d.plan, raw)
		if err != nil {
			t.Fatal(err)
		}
		again, err := d.tools[name].Call(t.Context(), d.plan, raw)
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(first) != fmt.Sprint(again) {
			t.Errorf("%s gave %+v and again %+v", name, first, again)
		}
	}
}

func TestOthersFilesAreReadOnly(t *testing.T) {
	t.Run("mailbox-lead-reads-members-files", func(t *testing.T) {
		d := newDesk(t)
		d.have("Backend/api/p.json", "{}")
		d.says("file_read", obj{"path": "Backend/api/p.json"}, "{}")
		d.says("file_list", obj{"path": "Backend"}, "Backend/api/p.json  2 bytes")
		for name, args := range map[string]obj{
			"file_write":  {"content": "x"},
			"file_edit":   {"old_text": "{", "new_text": "["},
			"file_delete": {},
		} {
			args["path"] = "Backend/api/p.json"
			d.refuses(name, args, "workspace of Backend", "only Backend changes it")
		}
		d.refuses("file_write", obj{"path": "Backend", "content": "x"}, "workspace of Backend")
		d.refuses("file_read", obj{"path": "Backend/secret"}, "of other members you read what they delivered", "Backend/api/p.json")
		d.says("file_list", obj{"path": "Lead"}, "Lead has no files that you can read yet.")
	})
}

func TestOwnNameBeforeAPathChangesNothing(t *testing.T) {
	d := newDesk(t)
	d.says("file_write", obj{"path": "Frontend/page.html", "content": "x"}, "wrote page.html (1 byte, 1 line).")
	d.have("Backend/p", "y")
	d.says("file_read", obj{"path": "Frontend/page.html"}, "x")
	d.says("file_list", obj{"path": "Frontend"}, "page.html  1 byte")
	d.says("file_list", obj{"path": "."}, "page.html  1 byte\nBackend/p  1 byte")
}

func TestPathsCannotLeaveTheWorkspace(t *testing.T) {
	d := newDesk(t)
	d.have("Backend/p", "y")
	for _, p := range []string{"../x", "/etc/passwd", "a/../../x", "Backend/../Lead/x", "Lead/../../x", ".."} {
		for _, name := range []string{"file_write", "file_read", "file_edit", "file_delete", "file_list"} {
			args := obj{"path": p}
			switch name {
			case "file_write":
				args["content"] = "x"
			case "file_edit":
				args["old_text"], args["new_text"] = "a", "b"
			}
			d.refuses(name, args, "the path")
		}
	}
	if len(d.plan.Files) != 1 {
		t.Errorf("files are %v", d.plan.Files)
	}
}

func TestFilesAndDirectoriesDoNotCollide(t *testing.T) {
	d := newDesk(t)
	d.have("api/p.json", "{}")
	d.refuses("file_write", obj{"path": "api", "content": "x"}, "api is a directory")
	d.refuses("file_write", obj{"path": "api/p.json/x", "content": "x"}, "api/p.json is a file and cannot hold")
	d.refuses("file_write", obj{"path": "new/", "content": "x"}, "names a directory")
	d.refuses("file_read", obj{"path": "api"}, "api is a directory; file_list")
	d.refuses("file_edit", obj{"path": "api", "old_text": "a", "new_text": "b"}, "api is a directory")
}

func TestMissingFileNamesTheNearest(t *testing.T) {
	d := newDesk(t)
	d.have("api/profile.json", "{}")
	d.have("notes.md", "x")
	d.refuses("file_read", obj{"path": "profile.json"}, "there is no file profile.json. Near it: api/profile.json.")
	d.refuses("file_read", obj{"path": "zzzzzz"}, "You can read: api/profile.json, notes.md.")
	for i := range 20 {
		d.have(fmt.Sprintf("many/%d", i), "x")
	}
	d.refuses("file_read", obj{"path": "zzzzzz"}, "file_list shows what you can read")
}

func TestLimits(t *testing.T) {
	d := newDesk(t)
	d.refuses("file_write", obj{"path": "big", "content": strings.Repeat("x", MaxFile+1)}, "more than the 5242880 allowed", "Split it")
	d.have("half", strings.Repeat("x", MaxFile/2+1))
	d.refuses("file_edit", obj{"path": "half", "old_text": "x", "new_text": "xx", "replace_all": true}, "more than the 5242880 allowed")
	for i := len(d.plan.Files); i < MaxFiles; i++ {
		d.plan.Files[fmt.Sprintf("f%d", i)] = &rollcallv1.Blob{}
	}
	d.have("Backend/x", "not counted")
	d.refuses("file_write", obj{"path": "one-more", "content": "x"}, "the most it can hold")
	d.says("file_write", obj{"path": "half", "content": "x"}, "replaced half (1 byte, 1 line).")
}

func TestReadInParts(t *testing.T) {
	d := newDesk(t)
	var b strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	d.have("long", b.String())
	var all string
	offset, parts := 1, 0
	for offset > 0 && parts < 10 {
		out := d.call("file_read", obj{"path": "long", "offset": offset}).Output
		body, note, _ := strings.Cut(out, "[lines ")
		all += body
		parts++
		offset = 0
		if _, next, ok := strings.Cut(note, "go on with offset "); ok {
			if _, err := fmt.Sscanf(next, "%d", &offset); err != nil {
				t.Fatal(err)
			}
		}
	}
	if all != b.String() || parts != 3 {
		t.Errorf("%d parts give %d of %d bytes", parts, len(all), b.Len())
	}
	d.says("file_read", obj{"path": "long", "offset": 2, "limit": 2}, "line 2\nline 3\n[lines 2 to 3 of 2500 of long are shown; go on with offset 4]")
	d.says("file_read", obj{"path": "long", "offset": 2500}, "line 2500\n[lines 2500 to 2500 of 2500 of long are shown]")
	d.refuses("file_read", obj{"path": "long", "offset": 2501}, "long has 2500 lines; offset 2501 is after its end")
	d.refuses("file_read", obj{"path": "long", "offset": -1}, "count lines from 1")
	d.have("no-end", "a\nb")
	d.says("file_read", obj{"path": "no-end", "limit": 5}, "a\nb")
	d.says("file_read", obj{"path": "no-end", "offset": 2}, "b\n[lines 2 to 2 of 2 of no-end are shown]")
}

func TestReadCutsALongLineBetweenRunes(t *testing.T) {
	d := newDesk(t)
	d.have("wide", "x"+strings.Repeat("語", maxShown)+"\nnext")
	out := d.call("file_read", obj{"path": "wide"}).Output
	if !utf8.ValidString(out) || len(out) > maxShown+200 || !strings.Contains(out, "go on with offset 2]") {
		t.Errorf("%d bytes, end %q", len(out), out[len(out)-120:])
	}
}

func TestBinaryFilesAreDescribed(t *testing.T) {
	d := newDesk(t)
	d.have("p.png", "\x89PNG\r\n\x1a\n\x00\x01")
	d.have("latin1", "caf\xe9")
	out := d.call("file_read", obj{"path": "p.png"})
	if out.Error || !strings.HasPrefix(out.Output, "p.png is a binary file, not shown: 10 bytes, image/png, sha256 ") {
		t.Errorf("got %q", out.Output)
	}
	if out := d.call("file_read", obj{"path": "latin1"}); !utf8.ValidString(out.Output) || !strings.Contains(out.Output, "binary") {
		t.Errorf("got %q", out.Output)
	}
	d.refuses("file_edit", obj{"path": "p.png", "old_text": "P", "new_text": "Q"}, "cannot be edited as text")
}

func TestEditMustBeExactAndUnique(t *testing.T) {
	d := newDesk(t)
	d.have("f", "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 1\n}\n")
	d.refuses("file_edit", obj{"path": "f", "old_text": "return 1", "new_text": "return 2"}, "occurs 2 times in f, at lines 2, 6")
	d.refuses("file_edit", obj{"path": "f", "old_text": "func b() {\n    return 1", "new_text": "x"}, "does not occur in f", "line 5 with other white space")
	d.refuses("file_edit", obj{"path": "f", "old_text": "Func B", "new_text": "x"}, "line 5 with other capitals")
	d.refuses("file_edit", obj{"path": "f", "old_text": "nowhere", "new_text": "x"}, "Read the file and copy the passage exactly")
	d.refuses("file_edit", obj{"path": "f", "old_text": "", "new_text": "x"}, "use file_write")
	d.refuses("file_edit", obj{"path": "f", "old_text": "a", "new_text": "a"}, "nothing to change")
	d.says("file_edit", obj{"path": "f", "old_text": "func b() {\n\treturn 1", "new_text": "func b() {\n\treturn 2"}, "edited f (47 bytes, 7 lines).")
	d.says("file_edit", obj{"path": "f", "old_text": "return", "new_text": "yield", "replace_all": true}, "edited f (45 bytes, 7 lines). 2 places changed.")
	if got := d.content("f"); got != "func a() {\n\tyield 1\n}\n\nfunc b() {\n\tyield 2\n}\n" {
		t.Errorf("the file holds %q", got)
	}
	d.have("many", strings.Repeat("x\n", 50))
	d.refuses("file_edit", obj{"path": "many", "old_text": "x", "new_text": "y"}, "at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more")
	d.have("crlf", "one\r\ntwo\r\nthree\r\n")
	d.call("file_edit", obj{"path": "crlf", "old_text": "one\ntwo", "new_text": "1\n2"})
	if got := d.content("crlf"); got != "1\r\n2\r\nthree\r\n" {
		t.Errorf("the file holds %q", got)
	}
}

func TestBadArgumentsNameTheValid(t *testing.T) {
	d := newDesk(t)
	d.refuses("file_write", obj{"file": "a", "content": "x"}, `argument "path" is missing`, `there is no argument "file"`, "path (string, required), content (string, required)")
	for name, x := range d.tools {
		out, err := x.Call(t.Context(), d.plan, json.RawMessage(`{"path":`))
		if err != nil || !out.Error || !strings.Contains(out.Output, "not valid JSON") {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
	}
}

func TestStoreFaultsAreNotTheModels(t *testing.T) {
	d := newDesk(t)
	d.have("a", "x")
	d.away = errors.New("store is away")
	for name, raw := range map[string]string{
		"file_write": `{"path":"b","content":"y"}`,
		"file_read":  `{"path":"a"}`,
		"file_edit":  `{"path":"a","old_text":"x","new_text":"y"}`,
	} {
		if out, err := d.tools[name].Call(t.Context(), d.plan, json.RawMessage(raw)); !errors.Is(err, d.away) {
			t.Errorf("%s: %+v, %v", name, out, err)
		}
	}
}

func TestListIsBounded(t *testing.T) {
	d := newDesk(t)
	d.says("file_list", obj{}, "There are no files yet.")
	for i := range maxListed + 20 {
		d.plan.Files[fmt.Sprintf("dir/%04d", i)] = &rollcallv1.Blob{Size: 3}
	}
	out := d.call("file_list", obj{}).Output
	if !strings.HasPrefix(out, "dir/0000  3 bytes\n") || !strings.HasSuffix(out, "[20 more; list one directory to see them]") {
		t.Errorf("the list ends %q", out[len(out)-80:])
	}
	d.says("file_list", obj{"path": "dir/0007"}, "dir/0007  3 bytes")
	d.refuses("file_list", obj{"path": "none"}, "there is no file none")
}
