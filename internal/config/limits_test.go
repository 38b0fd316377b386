package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
)

// Whatever a file is, it is read no further than it may be long: one without
// an end, such as a device or a pipe, is refused like one that is too long.
func TestFilesWithoutEnd(t *testing.T) {
	long := filepath.Join(t.TempDir(), "long.yaml")
	if err := os.WriteFile(long, []byte(strings.Repeat("# long\n", maxFile/4)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{long, "/dev/zero"} {
		if _, err := os.Stat(file); err != nil {
			t.Skipf("this system has no %s", file)
		}
		_, team := LoadTeam(file)
		_, settings := Load(Sources{Flags: map[string]string{"config": file}, Env: func(string) (string, bool) { return "", false }, Dir: t.TempDir(), Home: t.TempDir()})
		for code, err := range map[string]error{"team-invalid": team, "settings-invalid": settings} {
			r, ok := errors.AsType[*domain.Refusal](err)
			if !ok || r.Code != code || !strings.Contains(r.Why, "more than the 524288 bytes") || r.What == "" || r.Try == "" {
				t.Errorf("%s: %v, want a refusal %s", file, err, code)
			}
		}
	}
}
