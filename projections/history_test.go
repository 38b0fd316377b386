package projections

import (
	"cmp"
	"slices"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// counted is what the events say of a run, counted here once more and plainly.
type counted struct {
	Consumed                                []string
	Steps, Calls, Failed, Tools, ToolErrors int
	Resumed                                 int
	Reason, Code                            string
	From, To                                uint64
	Input                                   uint64
}

// compareHistory holds runs and mail against the events themselves: a state
// does not keep them.
func compareHistory(t rapid.TB, db *DB, items []item) {
	runs, returned := map[domain.Key]map[string]*counted{}, map[domain.Key]map[string]int{}
	for _, i := range items {
		if runs[i.Key] == nil {
			runs[i.Key], returned[i.Key] = map[string]*counted{}, map[string]int{}
		}
		for _, e := range i.Commit.GetEvents() {
			tell(runs[i.Key], returned[i.Key], i.Commit.GetVersion(), e)
		}
	}
	for key := range runs {
		found, err := db.Runs(tContext, key, "")
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]*counted{}
		for _, r := range found {
			got[r.ID] = &counted{
				Consumed: r.Consumed, Steps: r.Steps, Calls: r.Calls, Failed: r.FailedCalls, Tools: r.Tools, ToolErrors: r.ToolErrors,
				Resumed: r.Resumed, Reason: r.Reason, Code: r.Code, From: r.From, To: r.To, Input: r.Usage.InputTokens,
			}
		}
		if diff := gocmp.Diff(runs[key], got); diff != "" {
			t.Errorf("runs of %s (-events +rows):\n%s", key, diff)
		}
		if !slices.IsSortedFunc(found, func(a, b Run) int { return cmp.Compare(a.From, b.From) }) {
			t.Errorf("runs of %s are not in the order they started", key)
		}
		messages, err := db.Mail(tContext, key, "", 0, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			if m.Returned != returned[key][m.ID] {
				t.Errorf("message %s returned %d times, want %d", m.ID, m.Returned, returned[key][m.ID])
			}
			if (m.State == "consumed") != (m.Run != "") || (m.Run != "") != (m.ConsumedAt > 0) {
				t.Errorf("message %+v does not know whether it was consumed", m)
			}
		}
	}
}

func tell(runs map[string]*counted, returned map[string]int, version uint64, e *rollcallv1.Event) {
	if s := e.GetRunStarted(); s != nil {
		c := &counted{Reason: "open", From: version, Consumed: []string{}}
		for _, m := range s.GetConsumed() {
			c.Consumed = append(c.Consumed, m.GetMessage())
		}
		runs[s.GetRun()] = c
	}
	if r := e.GetRunResumed(); r != nil {
		runs[r.GetRun()].Resumed++
	}
	if m := e.GetModelCallStarted(); m != nil {
		runs[m.GetRun()].Calls++
		runs[m.GetRun()].Steps = int(m.GetStep())
	}
	if m := e.GetModelCallFailed(); m != nil {
		runs[m.GetRun()].Failed++
	}
	if m := e.GetModelReplied(); m != nil {
		runs[m.GetRun()].Input += m.GetUsage().GetInputTokens()
	}
	if f := e.GetToolCallFinished(); f != nil {
		runs[f.GetRun()].Tools++
		if f.GetError() || f.GetUnknown() {
			runs[f.GetRun()].ToolErrors++
		}
	}
	if f := e.GetRunFinished(); f != nil {
		r := runs[f.GetRun()]
		r.Reason, r.Code, r.To = domain.Word(f.GetReason()), f.GetCode(), version
	}
	for _, m := range e.GetMessagesReturned().GetMessages() {
		returned[m.GetMessage()]++
	}
}
