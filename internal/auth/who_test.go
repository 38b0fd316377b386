package auth_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/internal/auth"
)

// What a file of credentials opens is read from what the nodes signed, and not
// from how the file is called.
func TestWhoseCredentials(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "roles")
	_, err := auth.Init(dir, auth.Plan{
		Tenants:  []string{"acme", "bakery"},
		Auditors: []auth.Auditor{{Name: "alice"}, {Name: "bob", Tenant: "acme"}},
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "client-bakery.creds")
	data, err := os.ReadFile(filepath.Join(dir, "client-acme.creds"))
	if err == nil {
		err = os.WriteFile(elsewhere, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]struct{ tenant, auditor string }{
		filepath.Join(dir, "client-bakery.creds"): {tenant: "bakery"},
		elsewhere: {tenant: "acme"},
		filepath.Join(dir, "auditor-alice.creds"): {auditor: "alice"},
		filepath.Join(dir, "auditor-bob.creds"):   {auditor: "bob"},
		filepath.Join(dir, "node.creds"):          {},
		filepath.Join(dir, "sys.creds"):           {},
		filepath.Join(dir, "none"):                {},
		filepath.Join(dir, "nats.conf"):           {},
	} {
		tenant, client := auth.ClientOf(file)
		name, auditor := auth.AuditorOf(file)
		if tenant != want.tenant || client != (tenant != "") || name != want.auditor || auditor != (name != "") {
			t.Errorf("%s is of tenant %q, of auditor %q, want %+v", file, tenant, name, want)
		}
	}
}

// An auditor of a tenant that is not there would read nothing for ever.
func TestAuditorOfNoTenant(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "roles")
	bob := auth.Auditor{Name: "bob", Tenant: "acne"}
	_, err := auth.Init(dir, auth.Plan{Tenants: []string{"acme"}, Auditors: []auth.Auditor{bob}}, time.Now())
	refused(t, err, "tenant-unknown")
	if _, err := os.Stat(dir); err == nil {
		t.Error("it was made all the same")
	}
	if _, err := auth.Init(dir, auth.Plan{Tenants: []string{"acme"}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	_, err = auth.Add(dir, nil, []auth.Auditor{bob})
	refused(t, err, "tenant-unknown")
	if _, err = auth.Add(dir, []string{"acne"}, []auth.Auditor{bob}); err != nil {
		t.Error(err)
	}
}
