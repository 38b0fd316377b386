package cli

import (
	"bytes"
	"testing"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

func TestTableAlignsByColumns(t *testing.T) {
	var out bytes.Buffer
	table(&out, [][]string{{"NAME", "STATUS"}, {"harbor", "idle"}, {"港", "idle"}, {"🚢🚢", "idle"}, {"Cafe\u0301", "idle"}})
	want := "NAME    STATUS\nharbor  idle\n港      idle\n🚢🚢    idle\nCafe\u0301    idle\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	out.Reset()
	table(&out, [][]string{{"  ID", "NAME"}})
	if out.String() != "  none\n" {
		t.Errorf("an empty table is %q", out.String())
	}
}

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"0 tasks": count(0, "task"), "1 task": count(1, "task"), "2 tasks": count(uint64(2), "task"),
		"3 replies": count(3, "reply"), "1 model call": count(1, "model call"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A failure that repeats itself is told in full once.
func TestRepeatedFailureIsTold(t *testing.T) {
	teller := newTeller()
	var told []string
	fail := func(attempt uint32, code string) {
		c := &rollcallv1.Commit{Events: []*rollcallv1.Event{{Kind: &rollcallv1.Event_ModelCallFailed{ModelCallFailed: &rollcallv1.ModelCallFailed{
			Member: "lead", Run: "r1", Attempt: attempt, Code: code, Error: "nobody listens [" + code + "]", Retry: true,
		}}}}}
		told = append(told, teller.hear(c)[0].what)
	}
	fail(1, "model-unreachable")
	fail(2, "model-unreachable")
	fail(3, "model-rate-limited")
	fail(4, "model-rate-limited")
	for i, want := range []string{
		"the model call failed, trying again: nobody listens [model-unreachable]",
		"still: attempt 2 of 6 [model-unreachable]",
		"the model call failed, trying again: nobody listens [model-rate-limited]",
		"still: attempt 4 [model-rate-limited]",
	} {
		if told[i] != want {
			t.Errorf("attempt %d is told as %q, want %q", i+1, told[i], want)
		}
	}
}
