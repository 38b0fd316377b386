package checker_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
	"github.com/rollcall-dev/rollcall/test/checker"
)

// silent are the faults that no reader of a log can know of.
var silent = map[string]string{
	"6.0: RunResumed is left out":        "the call can be repeated, and was",
	"7.0: FileWritten is left out":       "what a tool outside should have written is not in the log",
	"7.0: FileWritten is written twice":  "the same contents under the same path",
	"27.0: ModelCallFailed is left out":  "a run may be given up while it calls",
	"47.0: RunResumed is left out":       "a reply may come after the run was let go",
	"42.0: FileWritten is left out":      "what a command should have written is not in the log",
	"42.0: FileWritten is written twice": "the same contents under the same path",
}

// Whatever a log loses or holds twice is noticed: every event of the story is
// left out once, and written twice once, while the chain is whole.
func TestEveryEventCounts(t *testing.T) {
	h := story()
	for v, c := range h.commits {
		whole := c.GetEvents()
		for i, e := range whole {
			for what, with := range map[string]func() []*pb.Event{
				"left out":      func() []*pb.Event { return slices.Delete(slices.Clone(whole), i, i+1) },
				"written twice": func() []*pb.Event { return slices.Insert(slices.Clone(whole), i, proto.CloneOf(e)) },
			} {
				h.commits[v].Events = with()
				name := fmt.Sprintf("%d.%d: %s is %s", v+1, i, bodyOf(e).ProtoReflect().Descriptor().Name(), what)
				noticed := len(checker.Check(h.log(t), h.record)) > 0
				if why, ok := silent[name]; noticed == ok {
					t.Errorf("version %s: noticed is %t (%s)", name, noticed, why)
				}
			}
		}
		c.Events = whole
	}
}
