package cli

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/internal/auth"
)

// Credentials of one tenant's clients say whose they are; --tenant says more.
func TestTenantOfCredentials(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "roles")
	if _, err := auth.Init(dir, auth.Plan{Tenants: []string{"acme"}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		url, creds string
		args       []string
		want       string
	}{
		{"nats://x", "client-acme.creds", nil, "acme"},
		{"nats://x", "client-acme.creds", []string{"--tenant", "main"}, "main"},
		{"nats://x", "node.creds", nil, "main"},
		{"nats://x", "none.creds", nil, "main"},
		{"", "client-acme.creds", nil, "main"},
	} {
		c := newConsole(t)
		c.env["NATS_URL"], c.env["NATS_CREDS"] = test.url, filepath.Join(dir, test.creds)
		s := &session{App: &c.App}
		ls, _, err := s.root().Find([]string{"ls"})
		if err == nil {
			err = ls.ParseFlags(test.args)
		}
		if err == nil {
			err = s.settings(ls)
		}
		if err != nil || s.flags.tenant != test.want {
			t.Errorf("%+v: tenant %q, %v", test, s.flags.tenant, err)
		}
	}
}
