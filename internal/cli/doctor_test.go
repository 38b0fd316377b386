package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/internal/api"
)

// Each node has one heading, in the order they came, and what was looked at here
// stands before them without one.
func TestChecksAreShownByNode(t *testing.T) {
	check := func(name, node string) api.Check {
		return api.Check{Name: name, Node: node, Level: api.OK, Found: "fine"}
	}
	var out bytes.Buffer
	showChecks(&out, api.DoctorAnswer{Checks: []api.Check{
		check("node", "n-2"), check("clock", ""), check("storage", "n-2"), check("model", "n-1"), check("inbox", "n-2"),
	}})
	var words []string
	for line := range strings.Lines(out.String()) {
		words = append(words, strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "✓ "), " fine"))
	}
	got := strings.Join(strings.Fields(strings.Join(words, " ")), " ")
	if want := "clock node n-2 node storage inbox node n-1 model"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	out.Reset()
	showChecks(&out, api.DoctorAnswer{Checks: []api.Check{check("clock", ""), check("storage", "n-2")}})
	if strings.Contains(out.String(), "node n-2") {
		t.Errorf("one node has a heading:\n%s", out.String())
	}
}

// Somebody who only is a client is not told of a data directory and a key that
// nothing uses.
func TestDoctorOfAClient(t *testing.T) {
	for url, local := range map[string]bool{"": true, "nats://127.0.0.1:9": false} {
		c := newConsole(t, "doctor")
		if url != "" {
			c.env["NATS_URL"] = url
		}
		_ = c.Run(t.Context())
		for _, name := range []string{"data directory", "lock", "damage", "key"} {
			if strings.Contains(c.out.String(), " "+name+" ") != local {
				t.Errorf("NATS_URL=%q, check %s:\n%s", url, name, c.out.String())
			}
		}
		if !strings.Contains(c.out.String(), " node ") {
			t.Errorf("NATS_URL=%q: no word of a node:\n%s", url, c.out.String())
		}
	}
}
