package checker_test

import (
	"testing"

	"github.com/rollcall-dev/rollcall/test/checker"
)

// An epoch is that of one claim, in whatever conversations it stands.
func TestAnEpochIsOneClaims(t *testing.T) {
	for name, test := range map[string]struct {
		rename string
		node   string
		wrong  bool
	}{
		"the same claim":           {},
		"another node":             {node: "n9", wrong: true},
		"another partition's node": {rename: "01jzzzzzzzzzzzzzzzzzzzzzz1", wrong: true},
	} {
		one, two := story(), story()
		if test.node != "" {
			for _, c := range two.commits {
				c.Node = test.node
			}
		}
		a, b := one.log(t), two.log(t)
		if test.rename != "" {
			b.Conversation = test.rename
		}
		told := false
		for _, f := range checker.CheckAll([]checker.Log{a, b}, nil) {
			told = told || f.Rule == "epoch"
		}
		if told != test.wrong {
			t.Errorf("%s: told is %t", name, told)
		}
	}
}
