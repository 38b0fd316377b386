package policy

import (
	"testing"

	"github.com/rollcall-dev/rollcall/test/cases"
)

// Every acceptance case that this release holds has a test of its name.
func TestCasesHaveTests(t *testing.T) {
	names, err := cases.Names(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Fatalf("%s is empty", cases.List)
	}
	places, err := cases.Find(root, names)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if len(places[name]) == 0 {
			t.Errorf("no test carries the name of case %s", name)
			continue
		}
		t.Logf("%s: %v", name, places[name])
	}
}
