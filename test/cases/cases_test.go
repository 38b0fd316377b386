package cases

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	write(t, root, List, "# a comment\nmail-by-string\n\nmail-by-name\nmail-by-script\nmail-by-table\nmail-in-a-comment\n")
	write(t, root, "domain/mail_test.go", `package domain

import "testing"

func TestFirst(t *testing.T) { t.Run("mail-by-string", func(t *testing.T) {}) }

// mail-in-a-comment proves nothing.
func TestMailByName(t *testing.T) {}

var rows = []string{"mail-by-table"}
`)
	write(t, root, "domain/mail.go", "package domain\n\nconst notATest = \"mail-in-a-comment\"\n")
	write(t, root, "test/e2e/testdata/script/mail-by-script.txtar", "exec true\n")

	names, err := Names(root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Find(root, names)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]Place{
		"mail-by-string": {{Package: "./domain", Test: "TestFirst"}},
		"mail-by-name":   {{Package: "./domain", Test: "TestMailByName"}},
		"mail-by-table":  {{Package: "./domain", Test: "TestFirst"}, {Package: "./domain", Test: "TestMailByName"}},
		"mail-by-script": {{Package: "./test/e2e"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Find (-want +got):\n%s", diff)
	}
}

func TestNamesRefusesARepetition(t *testing.T) {
	root := t.TempDir()
	write(t, root, List, "one\ntwo\none\n")
	if _, err := Names(root); err == nil {
		t.Error("Names accepted a list that names a case twice")
	}
}
