package api_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rollcall-dev/rollcall/internal/api"
)

// A file that is not there is no matter of the network, and is named; what is
// one names all that may be wrong.
func TestFilesThatOpenNATS(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const nowhere = "nats://127.0.0.1:9"
	for _, target := range []api.Target{
		{Creds: "/none/a.file"}, {NKey: "/none/a.file"}, {CA: "/none/a.file"}, {Cert: "/none/a.file", Key: empty}, {Cert: empty, Key: "/none/a.file"},
	} {
		target.URL = nowhere
		_, err := api.Dial(target, "test")
		refused(t, err, "credentials-unreadable", "/none/a.file", "no such file")
	}
	for _, target := range []api.Target{{Creds: empty}, {CA: empty}} {
		target.URL = nowhere
		_, err := api.Dial(target, "test")
		refused(t, err, "credentials-unreadable", empty)
	}
	_, err := api.Dial(api.Target{URL: nowhere}, "test")
	refused(t, err, "nats-unreachable", "NATS_CA", "NATS_CREDS", nowhere)
}
