package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// A place of the tests: a working directory, a home, variables and flags.
type desk struct {
	t         *testing.T
	dir, home string
	env       map[string]string
	flags     map[string]string
}

func newDesk(t *testing.T) *desk {
	return &desk{t: t, dir: t.TempDir(), home: t.TempDir(), env: map[string]string{}, flags: map[string]string{}}
}

func (d *desk) file(path, text string) string {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return path
}

func (d *desk) sources() Sources {
	return Sources{Flags: d.flags, Dir: d.dir, Home: d.home, Env: func(k string) (string, bool) { v, ok := d.env[k]; return v, ok }}
}

func (d *desk) load() *Settings {
	d.t.Helper()
	s, err := Load(d.sources())
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

func (d *desk) refuses(says ...string) {
	d.t.Helper()
	s, err := Load(d.sources())
	r, ok := errors.AsType[*domain.Refusal](err)
	if !ok || r.Code != "settings-invalid" {
		d.t.Fatalf("Load gave %v, %v", s, err)
	}
	for _, want := range says {
		if !strings.Contains(r.Error(), want) {
			d.t.Errorf("%q does not say %q", r.Error(), want)
		}
	}
}

func TestFlagsOverEnvironmentOverFile(t *testing.T) {
	d := newDesk(t)
	file := d.file(filepath.Join(d.dir, "rollcall.yaml"), "model: from-file\nsync: interval\ndata: here\n")
	s := d.load()
	if s.Model != "from-file" || s.SyncAlways || s.Data != filepath.Join(d.dir, "here") || s.Origin("model") != file+":1" || s.File != file {
		t.Errorf("the file gives %+v", s)
	}
	d.env["ROLLCALL_MODEL"] = "from-env"
	d.env["ROLLCALL_DATA"] = "" // as good as unset
	if s = d.load(); s.Model != "from-env" || s.Origin("model") != "ROLLCALL_MODEL" || s.Data != filepath.Join(d.dir, "here") {
		t.Errorf("the environment gives %+v", s)
	}
	d.flags["model"], d.flags["sync"] = "from-flag", "always"
	if s = d.load(); s.Model != "from-flag" || !s.SyncAlways || s.Origin("model") != "--model" || s.Origin("sync") != "--sync" {
		t.Errorf("flags give %+v", s)
	}
}

func TestEverySettingHasItsWays(t *testing.T) {
	texts := map[string]string{
		"data": "/d", "model": "m", "base_url": "https://h/v1", "api_key": "k", "nats_url": "nats://h:4222", "nats_creds": "/c",
		"nats_ca": "/ca.pem", "nats_context": "", "sync": "interval", "max_concurrent_runs": "7", "warm_members": "9",
	}
	shown := func(s *Settings, name string) string {
		i := slices.IndexFunc(s.Show(), func(row Shown) bool { return row.Name == name })
		return s.Show()[i].Value
	}
	for _, x := range All {
		text, known := texts[x.Name]
		if !known || x.About == "" {
			t.Fatalf("%s is not in the table, or says nothing about itself", x.Name)
		}
		if text == "" {
			continue
		}
		want := text
		if x.Name == "api_key" {
			want = hidden
		}
		try := func(way string, change func(d *desk)) {
			d := newDesk(t)
			change(d)
			if got := shown(d.load(), x.Name); got != want {
				t.Errorf("%s by %s gives %q, want %q", x.Name, way, got, want)
			}
		}
		try("file", func(d *desk) { d.file(filepath.Join(d.dir, "rollcall.yaml"), x.Name+": "+text+"\n") })
		if x.Env != "" {
			try("environment", func(d *desk) { d.env[x.Env] = text })
		}
		if x.Flag != "" {
			try("flag", func(d *desk) { d.flags[x.Flag] = text })
		}
	}
}

func TestWhichFileIsRead(t *testing.T) {
	d := newDesk(t)
	if s := d.load(); s.File != "" || s.Data != filepath.Join(d.home, ".local", "share", "rollcall") {
		t.Errorf("without a file: %+v", s)
	}
	d.env["XDG_DATA_HOME"] = "relative" // to be ignored
	if s := d.load(); s.Data != filepath.Join(d.home, ".local", "share", "rollcall") {
		t.Errorf("data is %s", s.Data)
	}
	d.env["XDG_DATA_HOME"] = "/data"
	if s := d.load(); s.Data != filepath.FromSlash("/data/rollcall") {
		t.Errorf("data is %s", s.Data)
	}
	d.file(filepath.Join(d.home, ".config", "rollcall", "rollcall.yaml"), "model: user\n")
	if s := d.load(); s.Model != "user" {
		t.Errorf("model is %q", s.Model)
	}
	d.file(filepath.Join(d.dir, "rollcall.yaml"), "model: here\n")
	if s := d.load(); s.Model != "here" {
		t.Errorf("model is %q", s.Model)
	}
	named := d.file(filepath.Join(d.home, "named.yaml"), "model: named\n")
	d.env["ROLLCALL_CONFIG"] = named
	if s := d.load(); s.Model != "named" || s.File != named {
		t.Errorf("model is %q from %s", s.Model, s.File)
	}
	d.flags["config"] = "other.yaml"
	d.refuses("--config", "other.yaml")
	d.file(filepath.Join(d.dir, "other.yaml"), "model: other\n")
	if s := d.load(); s.Model != "other" {
		t.Errorf("model is %q", s.Model)
	}
}

func TestPathsAreAbsolute(t *testing.T) {
	d := newDesk(t)
	d.file(filepath.Join(d.home, ".config", "rollcall", "rollcall.yaml"), "model: scripted:demo.yaml\n")
	if got, want := d.load().Model, "scripted:"+filepath.Join(d.home, ".config", "rollcall", "demo.yaml"); got != want {
		t.Errorf("from the file the model is %q, want %q", got, want)
	}
	d.flags["model"] = "scripted:demo.yaml"
	if got, want := d.load().Model, "scripted:"+filepath.Join(d.dir, "demo.yaml"); got != want {
		t.Errorf("from a flag the model is %q, want %q", got, want)
	}
	d.env["NATS_CREDS"] = "~/me.creds"
	if got, want := d.load().NATS.Creds, filepath.Join(d.home, "me.creds"); got != want {
		t.Errorf("the credentials are %q, want %q", got, want)
	}
}

func TestWrongFlagsAndVariablesAreNamed(t *testing.T) {
	for flag, text := range map[string]string{"sync": "sometimes", "max-concurrent-runs": "many", "warm-members": "-1", "base-url": "localhost", "nats-url": "http://x"} {
		d := newDesk(t)
		d.flags[flag] = text
		d.refuses("--"+flag, "[settings-invalid]")
	}
	d := newDesk(t)
	d.env["OPENAI_BASE_URL"] = "https://ada:pw@h"
	d.refuses("OPENAI_BASE_URL cannot be used", "put the key into OPENAI_API_KEY")
}

func TestPrices(t *testing.T) {
	d := newDesk(t)
	d.file(filepath.Join(d.dir, "rollcall.yaml"), "prices:\n  small: {input: 0.15, cached: 0.075, output: 0.6}\n  big: {input: 5, output: 15.000001}\n")
	want := map[string]domain.Price{"small": {Input: 150_000, Cached: 75_000, Output: 600_000}, "big": {Input: 5_000_000, Output: 15_000_001}}
	if diff := cmp.Diff(want, d.load().Prices); diff != "" {
		t.Error(diff)
	}
}

func TestSecretsNeverShow(t *testing.T) {
	const canary = "sk-canary-7f3a"
	d := newDesk(t)
	d.env["OPENAI_API_KEY"] = " " + canary + "\n"
	s := d.load()
	if s.Key.Reveal() != canary || !s.Key.Set() {
		t.Fatalf("the key is %q", s.Key.Reveal())
	}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T"} {
		fmt.Fprintf(&out, verb+"\n", s.Key)
		fmt.Fprintf(&out, verb+"\n", *s)
		fmt.Fprintf(&out, verb+"\n", &s.Key)
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "key", s.Key, "all", s)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "key", s.Key, "all", s)
	if err := json.NewEncoder(&out).Encode(s); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(&out).Encode(s.Show()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), canary) || strings.Contains(out.String(), fmt.Sprintf("%x", canary)) {
		t.Errorf("the secret shows:\n%s", out.String())
	}
	if n := strings.Count(out.String(), hidden); n < 20 {
		t.Errorf("only %d places say that something is hidden", n)
	}
	if NewSecret("").String() != "" || NewSecret("").Set() {
		t.Error("an absent secret looks like one")
	}
}

func TestWarnings(t *testing.T) {
	d := newDesk(t)
	file := d.file(filepath.Join(d.dir, "rollcall.yaml"), "api_key: k\n")
	if s := d.load(); len(s.Warnings) != 0 {
		t.Errorf("a private file warns: %q", s.Warnings)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if s := d.load(); len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "chmod 600") {
		t.Errorf("warnings are %q", s.Warnings)
	}
	d.file(file, "base_url: https://elsewhere/v1\n")
	d.env["OPENAI_API_KEY"] = "k"
	if s := d.load(); len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "the key of OPENAI_API_KEY is sent to https://elsewhere/v1") {
		t.Errorf("warnings are %q", s.Warnings)
	}
}

func TestNATSContext(t *testing.T) {
	d := newDesk(t)
	contexts := filepath.Join(d.home, ".config", "nats", "context")
	d.env["NATS_CONTEXT"] = "prod"
	d.refuses(`the NATS context "prod" (NATS_CONTEXT)`, "nats context add makes one")
	d.file(filepath.Join(contexts, "production.json"), `{}`)
	d.file(filepath.Join(contexts, "local.json"), `{`)
	d.refuses("there are: local, production")
	d.env["NATS_CONTEXT"] = "locl"
	d.refuses(`did you mean "local"?`)
	d.env["NATS_CONTEXT"] = "local"
	d.refuses("local.json", "nats context edit local")
	d.env["NATS_CONTEXT"] = "../../secret"
	d.refuses("it is no name of a context")

	d.env["NATS_CONTEXT"] = "production"
	d.file(filepath.Join(contexts, "production.json"), `{"url":"tls://one:4222","token":"tk","creds":"~/me.creds","user":"ada","password":"pw","ca":"/ca.pem","extra":1}`)
	n := d.load().NATS
	if n.URL != "tls://one:4222" || n.Creds != filepath.Join(d.home, "me.creds") || n.User != "ada" || n.Password.Reveal() != "pw" || n.Token.Reveal() != "tk" || n.CA != "/ca.pem" || !n.Set() {
		t.Errorf("the context gives %+v", n)
	}
	d.env["NATS_URL"] = "nats://two:4222"
	if n := d.load().NATS; n.URL != "nats://two:4222" || n.User != "ada" {
		t.Errorf("NATS_URL over the context gives %+v", n)
	}
}

func TestNothingSetMeansTheEmbeddedServer(t *testing.T) {
	if n := newDesk(t).load().NATS; n.Set() {
		t.Errorf("NATS is %+v", n)
	}
}

func TestDefaultTeamHasGeneral(t *testing.T) {
	team, err := ParseTeam("team.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fmt.Sprint(DefaultTeam()), fmt.Sprint(team)); diff != "" {
		t.Error(diff)
	}
	o := &rollcallv1.OpenConversation{Contract: "none"}
	(Team{Contract: "mailbox", Lead: "general"}).Apply(o)
	if o.GetContract() != "none" || o.GetLeadAgent() != "general" {
		t.Errorf("applied: %v", o)
	}
}

func TestLoadTeam(t *testing.T) {
	d := newDesk(t)
	file := d.file(filepath.Join(d.dir, "team.yaml"), "lead: nobody\n")
	_, err := LoadTeam(file)
	if err == nil || !strings.Contains(err.Error(), file+`:1:7: unknown agent type "nobody"`) {
		t.Errorf("got %v", err)
	}
	if _, err := LoadTeam(filepath.Join(d.dir, "none.yaml")); err == nil || !strings.Contains(err.Error(), "[team-invalid]") {
		t.Errorf("got %v", err)
	}
	big := strings.Repeat("#", maxFile+1)
	for text, says := range map[string]string{"lead: \xff": "not valid UTF-8", big: "more than the 524288 bytes", `lead: "a\0"`: "NUL"} {
		if _, err := ParseTeam("team.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.20q gave %v", text, err)
		}
	}
}

func TestMicros(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, "1": 1_000_000, "1.25": 1_250_000, "0.000001": 1, ".5": 500_000, "1000000000": 1_000_000_000_000_000} {
		if got, err := micros(text); err != nil || got != want {
			t.Errorf("micros(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-1", "1e3", "0x10", ".", "1.2.3", "0.0000001", "1000000000.1", "1/2", " 1", strings.Repeat("9", 40)} {
		if got, err := micros(text); err == nil {
			t.Errorf("micros(%q) = %d", text, got)
		}
	}
}

func FuzzTeam(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		in, _, _ := strings.Cut(strings.TrimPrefix(string(text), "-- in.yaml --\n"), "-- want --")
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, text string) {
		team, err := ParseTeam("team.yaml", []byte(text))
		if err != nil {
			r, ok := errors.AsType[*domain.Refusal](err)
			if !ok || r.Code != "team-invalid" || !strings.HasPrefix(r.Why, "team.yaml") {
				t.Fatalf("got %#v", err)
			}
			return
		}
		seen := map[string]bool{}
		for _, a := range team.Agents {
			if a.GetName() == "" || seen[a.GetName()] || reserved(a.GetName()) {
				t.Fatalf("accepted the agents %v", team.Agents)
			}
			seen[a.GetName()] = true
		}
		if !seen[team.Lead] || !seen[domain.GeneralAgent] {
			t.Fatalf("accepted the lead %q of %v", team.Lead, team.Agents)
		}
		for _, m := range team.Members {
			if m.GetName() == "" || m.GetAgentType() != "" && !seen[m.GetAgentType()] {
				t.Fatalf("accepted the member %v", m)
			}
		}
	})
}

func FuzzSettings(f *testing.F) {
	f.Add("data: x\nprices: {a: {input: 1}}\n")
	f.Add("api_key: &k x\nmodel: *k\n")
	f.Add("sync: !!str always")
	f.Fuzz(func(t *testing.T, text string) {
		s := &Settings{origins: map[string]string{}, File: "/x/rollcall.yaml"}
		err := s.readFile([]byte(text), Sources{Home: "/h"})
		if r, ok := errors.AsType[*domain.Refusal](err); err != nil && (!ok || r.Code != "settings-invalid") {
			t.Fatalf("got %#v", err)
		}
	})
}
