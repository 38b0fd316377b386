package natsd_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/natsd"
)

func TestDirectoryThatIsNoneIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := natsd.LockDir(file)
	if r, ok := errors.AsType[*domain.Refusal](err); !ok || r.Code != "data-directory-unusable" || r.Why == "" || r.Try == "" {
		t.Errorf("got %v", err)
	}
}
