package docs

import (
	"strings"
	"testing"
)

func TestEveryRowIsRead(t *testing.T) {
	rows := strings.Count(errorsPage, "\n| `")
	if len(Errors()) != rows || rows == 0 {
		t.Errorf("%d rows of errors.md are read, it has %d", len(Errors()), rows)
	}
	for _, e := range Errors() {
		if e.Means == "" || e.Try == "" {
			t.Errorf("%s says too little: %+v", e.Code, e)
		}
	}
}

func TestErrorOf(t *testing.T) {
	e, ok := ErrorOf("node-unreachable")
	if !ok || e.Exit != 5 || e.Means != "No node answers." || e.Try != "`rollcall up`." {
		t.Errorf("node-unreachable reads %+v, %t", e, ok)
	}
	if e, ok := ErrorOf("step-limit"); !ok || e.Exit != 1 {
		t.Errorf("step-limit reads %+v, %t", e, ok)
	}
	if _, ok := ErrorOf("no-such-code"); ok {
		t.Error("a code without a row was found")
	}
}
