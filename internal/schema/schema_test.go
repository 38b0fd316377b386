package schema

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/jsonschema-go/jsonschema"
)

type sample struct {
	Path   string   `json:"path" jsonschema:"where"`
	Limit  int      `json:"limit,omitempty"`
	All    bool     `json:"all,omitempty"`
	Tags   []string `json:"tags,omitempty"`
	Status string   `json:"status,omitempty"`
}

func args() Args[sample] {
	return For[sample](func(p map[string]*jsonschema.Schema) {
		p["status"].Enum = []any{"open", "done"}
		p["limit"].Minimum = jsonschema.Ptr(1.0)
	})
}

func TestSchemaText(t *testing.T) {
	const want = `{"type":"object","properties":{"path":{"type":"string","description":"where"},"limit":{"type":"integer","minimum":1},"all":{"type":"boolean"},"tags":{"type":"array","items":{"type":"string"}},"status":{"type":"string","enum":["open","done"]}},"required":["path"],"additionalProperties":false}`
	if d := cmp.Diff(want, args().JSON()); d != "" {
		t.Error(d)
	}
}

func TestReadAccepts(t *testing.T) {
	for raw, want := range map[string]sample{
		`{"path":"a"}`: {Path: "a"},
		`{"path":"a","limit":3,"all":true,"tags":["x"],"status":"done"}`: {Path: "a", Limit: 3, All: true, Tags: []string{"x"}, Status: "done"},
		`{"path":"a","limit":null,"tags":null}`:                          {Path: "a"},
		`{"path":"a","limit":2.0}`:                                       {Path: "a", Limit: 2},
		`"{\"path\":\"a\"}"`:                                             {Path: "a"},
		" {\"path\":\"\\u8a9e\"}\n":                                      {Path: "語"},
		`{"path":"\ud83d\ude00 \\ud83d"}`:                                {Path: `😀 \ud83d`},
	} {
		got, err := args().Read(json.RawMessage(raw))
		if err != nil {
			t.Errorf("Read(%s): %v", raw, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("Read(%s): %s", raw, d)
		}
	}
}

func TestReadRefusesInPlainWords(t *testing.T) {
	const valid = `path (string, required), limit (integer, optional), all (boolean, optional), tags (array, optional), status (string, optional)`
	for raw, want := range map[string]string{
		``:                           `argument "path" is missing. Valid arguments: ` + valid,
		`{`:                          `the arguments are not valid JSON (it ends too early). Send one JSON object: ` + valid,
		`{"path":"a"} x`:             `the arguments are not valid JSON (more follows after its end). Send one JSON object: ` + valid,
		`["a"]`:                      `the arguments must be one JSON object, not an array: ` + valid,
		`null`:                       `the arguments must be one JSON object, not null: ` + valid,
		`{"path":1}`:                 `argument "path" must be a string, not a number. Valid arguments: ` + valid,
		`{"path":"a","limit":"3"}`:   `argument "limit" must be an integer, not a string. Valid arguments: ` + valid,
		`{"path":"a","limit":1.5}`:   `argument "limit" must be an integer, not a number. Valid arguments: ` + valid,
		`{"pth":"a"}`:                `argument "path" is missing; there is no argument "pth" (did you mean "path"?). Valid arguments: ` + valid,
		`{"path":"a","status":"ok"}`: `argument "status" must be one of "open", "done", not "ok". Valid arguments: ` + valid,
		`{"path":"a","tags":"x"}`:    `argument "tags" must be an array, not a string. Valid arguments: ` + valid,
	} {
		_, err := args().Read(json.RawMessage(raw))
		if err == nil || err.Error() != want {
			t.Errorf("Read(%s):\n got %v\nwant %s", raw, err, want)
		}
	}
	for _, raw := range []string{`{"path":"\ud83d"}`, `{"path":"a","tags":["\ud83dx\ude00"]}`, `{"\ud83d":1}`, `"{\"path\":\"\ud83d\"}"`, `"{\"path\":\"\\ud83d\"}"`} {
		if got, err := args().Read(json.RawMessage(raw)); err == nil || !strings.Contains(err.Error(), `half of a character (a lone \ud83d)`) {
			t.Errorf("Read(%s): %+v, %v", raw, got, err)
		}
	}
	for _, raw := range []string{`{"path":"a","limit":0}`, `{"path":"a","tags":[1]}`, `{"path":"a","limit":99999999999999999999}`} {
		if _, err := args().Read(json.RawMessage(raw)); err == nil || !strings.Contains(err.Error(), "Valid arguments: "+valid) {
			t.Errorf("Read(%s): %v", raw, err)
		}
	}
}

func TestNoArguments(t *testing.T) {
	a := For[struct{}]()
	if _, err := a.Read(json.RawMessage(`{"x":1}`)); err == nil || !strings.HasSuffix(err.Error(), "Valid arguments: none") {
		t.Errorf("got %v", err)
	}
	if _, err := a.Read(nil); err != nil {
		t.Error(err)
	}
}

// FuzzRead: what is read is what was sent: written again, it is read as the
// same; and a refusal is words for a model.
func FuzzRead(f *testing.F) {
	for _, raw := range []string{
		`{"path":"a"}`, `"{}"`, `{"path":"a","limit":1e400}`, `{"tags":[[]]}`, "\xff", `{"path":"\ud800"}`, `{"path":"\ud83d\ude00"}`,
		`{"path":"a","path":"b"}`, `{"path":"a","limit":9007199254740993}`, `{"path":"a","limit":2.0,"tags":["x","\u0000"],"status":"open","all":true}`,
		strings.Repeat(`[`, 20_000), `{"path":"a","\u0000":null}`,
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := args().Read(json.RawMessage(raw))
		if err != nil {
			if says := err.Error(); says == "" || utf8.ValidString(raw) && !utf8.ValidString(says) || len(says) > 2000+4*len(raw) {
				t.Fatalf("Read(%q) says %q", raw, says)
			}
			return
		}
		if got.Limit < 0 || utf8.ValidString(raw) && !strings.Contains(raw, "\uFFFD") && !strings.Contains(strings.ToLower(raw), `fffd`) && strings.Contains(got.Path+strings.Join(got.Tags, ""), "\uFFFD") {
			t.Errorf("Read(%q) accepted %+v", raw, got)
		}
		text, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		again, err := args().Read(text)
		if d := cmp.Diff(got, again, cmpopts.EquateEmpty()); err != nil || d != "" {
			t.Errorf("Read(%q) is %+v; written again as %s it is read as %+v, %v", raw, got, text, again, err)
		}
	})
}
