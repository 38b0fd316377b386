package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A program of one function, and its tests.
var small = map[string]string{
	"go.mod": "module small\n\ngo 1.26\n",
	"sum.go": "package small\n\nfunc Sum(a, b int) int { return a + b }\n",
	"sum_test.go": `package small

import "testing"

func TestSum(t *testing.T) {
	t.Run("of two", func(t *testing.T) {
		if got := Sum(1, 2); got != 3 {
			t.Errorf("got %d", got)
		}
	})
}

func TestBroken(t *testing.T) { t.Error("always") }
`,
}

// Only a test that passes on the sound program, and runs to its own failure on
// the mutant, has killed it.
func TestVerdicts(t *testing.T) {
	dir := t.TempDir()
	for name, text := range small {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lab, err := newLab(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lab.close()
	lab.timeout = 2 * time.Second
	for name, c := range map[string]struct {
		old, to, test string
		killed        bool
		how           string
	}{
		"killed":           {"a + b", "a - b", "TestSum/of two", true, "sum_test.go:8: got -1"},
		"survives":         {"a + b", "b + a", "TestSum/of two", false, "passes"},
		"does not compile": {"a + b", "a +", "TestSum", false, "does not compile"},
		"crashes":          {"return a + b", "panic(a)", "TestSum", false, "crashes"},
		"hangs":            {"return a + b", "for { a++ }", "TestSum", false, "hangs"},
		"no such test":     {"a + b", "a - b", "TestSum/of three", false, "does not run"},
		"no such code":     {"a * b", "a - b", "TestSum", false, "occurs 0 times"},
		"code twice":       {"a", "b", "TestSum", false, "times"},
		"red without it":   {"a + b", "a - b", "TestBroken", false, "does not pass on the sound program"},
	} {
		t.Run(name, func(t *testing.T) {
			m := Mutant{Name: name, File: "sum.go", Old: c.old, New: c.to, Package: ".", Test: c.test}
			v := lab.try(t.Context(), m)
			if v.killed != c.killed || !strings.Contains(v.how, c.how) {
				t.Errorf("%s: %s, want %t: %s", v.word(), v.how, c.killed, c.how)
			}
		})
	}
	if text, err := os.ReadFile(filepath.Join(dir, "sum.go")); err != nil || string(text) != small["sum.go"] {
		t.Errorf("the program was touched: %q, %v", text, err)
	}
	who, err := lab.survey(t.Context(), Mutant{Name: "who", File: "sum.go", Old: "a + b", New: "a - b"}, []string{"./..."}, "TestBroken")
	if err != nil || who != "TestSum TestSum/of_two" {
		t.Errorf("noticed by %q, %v", who, err)
	}
}
