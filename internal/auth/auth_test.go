package auth_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/auth"
)

func refused(t *testing.T, err error, code string) {
	t.Helper()
	if r, ok := errors.AsType[*domain.Refusal](err); !ok || r.Code != code || r.What == "" || r.Try == "" {
		t.Errorf("got %v, want a refusal %s", err, code)
	}
}

// tree is a directory's files with what is in them.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir+"/")] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestInitNeverWritesOverKeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "roles")
	plan := auth.Plan{Tenants: []string{"main"}}
	if _, err := auth.Init(dir, plan, time.Now()); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	_, err := auth.Init(dir, plan, time.Now())
	refused(t, err, "roles-exist")
	for name, data := range tree(t, dir) {
		if before[name] != data {
			t.Errorf("%s changed", name)
		}
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "letter"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = auth.Init(other, plan, time.Now())
	refused(t, err, "roles-exist")
	_, err = auth.Init("", plan, time.Now())
	refused(t, err, "usage")
	if _, err := auth.Init(t.TempDir(), plan, time.Now()); err != nil {
		t.Errorf("in an empty directory: %v", err)
	}
	rest, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".*"))
	if err != nil || len(rest) > 0 {
		t.Errorf("left behind: %v, %v", rest, err)
	}
}

// Adding again changes nothing; what was cut short is finished.
func TestAddMayBeRepeated(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "roles")
	if _, err := auth.Init(dir, auth.Plan{Tenants: []string{"main"}, Servers: servers(t, "a", "b", "c")}, time.Now()); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	made, err := auth.Add(dir, []string{"acme"}, []auth.Auditor{{Name: "bob", Tenant: "acme"}})
	if err != nil {
		t.Fatal(err)
	}
	after := tree(t, dir)
	for name, data := range before {
		if changed := after[name] != data; changed != slices.Contains([]string{"installation.json", "nats.conf", "a/bundle.json", "b/bundle.json", "c/bundle.json"}, name) {
			t.Errorf("%s changed: %v", name, changed)
		}
	}
	for _, f := range made.Folders {
		if f.Changed != (f.Server != "") {
			t.Errorf("folder %s changed: %v", f.Dir, f.Changed)
		}
	}
	for _, name := range []string{"client-acme.creds", "auditor-bob.creds", "a/accounts/tenant-acme.jwt", "c/accounts/auditor-bob.jwt"} {
		if after[name] == "" {
			t.Errorf("there is no %s", name)
		}
	}
	for _, r := range made.Roles {
		if r.New != (r.Tenant == "acme") {
			t.Errorf("role %+v", r)
		}
	}
	again := func() {
		t.Helper()
		made, err := auth.Add(dir, []string{"acme", "main"}, []auth.Auditor{{Name: "bob", Tenant: "acme"}})
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range tree(t, dir) {
			if after[name] != data {
				t.Errorf("%s changed by a repetition", name)
			}
		}
		for _, f := range made.Folders {
			if f.Changed {
				t.Errorf("folder %s changed by a repetition", f.Dir)
			}
		}
	}
	again()
	for _, name := range []string{"installation.json", "nats.conf", "b/accounts/tenant-acme.jwt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(before[name]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := auth.Add(dir, []string{"acme"}, []auth.Auditor{{Name: "bob", Tenant: "acme"}}); err != nil {
		t.Fatal(err)
	}
	again()
}

func TestAddRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "roles")
	_, err := auth.Add(dir, []string{"main"}, nil)
	refused(t, err, "roles-not-found")
	if _, err := auth.Init(dir, auth.Plan{Tenants: []string{"main"}, Servers: servers(t, "a"), Auditors: []auth.Auditor{{Name: "alice"}}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tenant, auditor, code string
	}{
		{"Main", "", "tenant-invalid"},
		{"a.b", "", "tenant-invalid"},
		{"*", "", "tenant-invalid"},
		{">", "", "tenant-invalid"},
		{"../x", "", "tenant-invalid"},
		{"", "*", "auditor-invalid"},
		{"", "a.b", "auditor-invalid"},
		{"", "", "auditor-invalid"},
		{"", "x=", "auditor-invalid"},
		{"", "x=*", "tenant-invalid"},
		{"", strings.Repeat("x", 60), "auditor-invalid"},
		{"", "alice=main", "auditor-exists"},
	} {
		var tenants []string
		var auditors []auth.Auditor
		if c.tenant != "" {
			tenants = []string{c.tenant}
		} else {
			auditors = []auth.Auditor{auth.ParseAuditor(c.auditor)}
		}
		_, err := auth.Add(dir, tenants, auditors)
		refused(t, err, c.code)
	}
	_, err = auth.Add(filepath.Join(dir, "a"), []string{"x"}, nil)
	refused(t, err, "roles-not-found")
	if err := os.RemoveAll(filepath.Join(dir, "keys")); err != nil {
		t.Fatal(err)
	}
	_, err = auth.Add(dir, []string{"x"}, nil)
	refused(t, err, "roles-not-found")
	if err := os.WriteFile(filepath.Join(dir, "installation.json"), []byte(`{"version":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = auth.Add(dir, []string{"x"}, nil)
	refused(t, err, "roles-unusable")
}

func TestServers(t *testing.T) {
	for text, want := range map[string]auth.Server{
		"a=10.0.0.1":             {Name: "a", Host: "10.0.0.1", ClientPort: 4222, RoutePort: 6222},
		"a=nats-1.example.com":   {Name: "a", Host: "nats-1.example.com", ClientPort: 4222, RoutePort: 6222},
		"a=h:5222":               {Name: "a", Host: "h", ClientPort: 5222, RoutePort: 6222},
		"a=h:5222/7222":          {Name: "a", Host: "h", ClientPort: 5222, RoutePort: 7222},
		"a=h/7222":               {Name: "a", Host: "h", ClientPort: 4222, RoutePort: 7222},
		"n-1=[2001:db8::1]:5222": {Name: "n-1", Host: "2001:db8::1", ClientPort: 5222, RoutePort: 6222},
		"a=2001:db8::1":          {Name: "a", Host: "2001:db8::1", ClientPort: 4222, RoutePort: 6222},
		"a=[::1]/7222":           {Name: "a", Host: "::1", ClientPort: 4222, RoutePort: 7222},
	} {
		if got, err := auth.ParseServer(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "a", "=h", "A=h", "a=", "a=h:", "a=h:0", "a=h:65536", "a=h:x", "a=h/", "a=h/0", "a=h:1:2", "a=h i", "a=h,b", "a=*", "node=h", "keys=h", "accounts=h", "a=x..y", "a=h:4222/6222/1", "../a=h"} {
		_, err := auth.ParseServer(text)
		refused(t, err, "usage")
	}
	at := func(name, host string, ports ...int) auth.Server {
		return auth.Server{Name: name, Host: host, ClientPort: ports[0], RoutePort: ports[1]}
	}
	for _, bad := range [][]auth.Server{
		{at("a", "h", 1, 2), at("b", "i", 1, 2)},
		{at("a", "h", 1, 2), at("a", "i", 1, 2), at("c", "j", 1, 2)},
		{at("a", "h", 1, 2), at("b", "h", 1, 3), at("c", "j", 1, 2)},
		{at("a", "h", 1, 2), at("b", "h", 3, 2), at("c", "j", 1, 2)},
		{at("a", "h", 1, 1)},
	} {
		_, err := auth.Init(filepath.Join(t.TempDir(), "x"), auth.Plan{Tenants: []string{"main"}, Servers: bad}, time.Now())
		refused(t, err, "usage")
	}
}

// A folder that is not whole, or of something else, is refused, with words.
func TestLoadRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "roles")
	if _, err := auth.Init(dir, auth.Plan{Tenants: []string{"main"}, Servers: servers(t, "a")}, time.Now()); err != nil {
		t.Fatal(err)
	}
	_, err := auth.Load(t.TempDir())
	refused(t, err, "bundle-invalid")
	_, err = auth.Load(dir)
	refused(t, err, "bundle-invalid")
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "NAME")) {
		t.Errorf("it does not name a folder: %v", err)
	}
	whole := tree(t, filepath.Join(dir, "a"))
	for name := range whole {
		path := filepath.Join(dir, "a", name)
		if strings.HasPrefix(name, "accounts/") {
			if err := os.WriteFile(path, []byte("noise"), 0o600); err != nil {
				t.Fatal(err)
			}
		} else if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		_, err := auth.Load(filepath.Join(dir, "a"))
		refused(t, err, "bundle-invalid")
		if err := os.WriteFile(path, []byte(whole[name]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"{", `{"version":2,"servers":[{"name":"a"}]}`, `{"version":1}`, `{"version":1,"server":"b","servers":[{"name":"a"}]}`} {
		if err := os.WriteFile(filepath.Join(dir, "a", "bundle.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := auth.Load(filepath.Join(dir, "a"))
		refused(t, err, "bundle-invalid")
	}
}
