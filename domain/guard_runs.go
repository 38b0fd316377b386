package domain

import (
	"fmt"

	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// overRuns says whether a member, or all together, began too many runs since the
// operator's last word, and how the run that is one too many ends: before its
// first model call.
func (d *Decision) overRuns(m *Member) (ending, bool) {
	if m.Run.Step > 0 {
		return ending{}, false
	}
	end := ending{Reason: rollcallv1.FinishReason_FINISH_REASON_OUT_OF_BUDGET, Code: "run-limit"}
	const until = ", none of them left: a word of the operator gives it new ones"
	switch l := d.b.limits; {
	case m.Runs > l.Runs:
		end.Detail = fmt.Sprintf("%s has %d runs between two words of the operator%s", m.Name, l.Runs, until)
	case d.State().Runs > l.AllRuns:
		end.Detail = fmt.Sprintf("the conversation has %d runs between two words of the operator%s", l.AllRuns, until)
	default:
		return ending{}, false
	}
	return end, true
}
