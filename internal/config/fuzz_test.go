package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rollcall-dev/rollcall/domain"
)

// FuzzMoney: an amount is taken exactly, or refused in words that can be shown.
func FuzzMoney(f *testing.F) {
	for _, s := range []string{"0", "1.50", "0.000001", "0.0000001", "1000000000", "1000000001", ".", "1.", ".5", "00001", "1.2.3", "1e9", "-1", "\xff", strings.Repeat("9", 40)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := micros(s)
		if err != nil {
			if v != 0 || err.Error() == "" || !utf8.ValidString(err.Error()) || len(err.Error()) > 200+4*len(s) {
				t.Fatalf("%q is %d, %v", s, v, err)
			}
			return
		}
		written := fmt.Sprintf("%d.%06d", v/1_000_000, v%1_000_000)
		if again, err := micros(written); err != nil || again != v || v > maxMoney*1_000_000 {
			t.Errorf("%q is %d, written again as %s it is %d, %v", s, v, written, again, err)
		}
	})
}

// FuzzNATSContext: whatever the nats command line has stored, it is read, or
// refused with what to do.
func FuzzNATSContext(f *testing.F) {
	for _, s := range []string{`{"url":"nats://127.0.0.1:4222"}`, `{"url":"nats://a,nats://b","creds":"~/x","token":"t"}`, `{"url":5}`, `[]`, `{`, "\xff", `{"url":"\ud83d"}`, `{"ca":"../x","url":"tls://x"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		home := t.TempDir()
		dir := filepath.Join(home, ".config", "nats", "context")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "x.json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		env := func(name string) (string, bool) {
			return map[string]string{"NATS_CONTEXT": "x"}[name], name == "NATS_CONTEXT"
		}
		s, err := Load(Sources{Env: env, Dir: home, Home: home})
		if err != nil {
			r, ok := errors.AsType[*domain.Refusal](err)
			if !ok || r.Code == "" || r.What == "" || r.Why == "" || r.Try == "" {
				t.Fatalf("%q: %v", data, err)
			}
			return
		}
		for _, path := range []string{s.NATS.Creds, s.NATS.CA, s.NATS.Cert, s.NATS.Key, s.NATS.NKey} {
			if path != "" && !filepath.IsAbs(path) {
				t.Errorf("%q names the path %q, which is not absolute", data, path)
			}
		}
	})
}
