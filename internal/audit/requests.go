package audit

import (
	"errors"
	"slices"

	"github.com/rollcall-dev/rollcall/internal/model"
	"github.com/rollcall-dev/rollcall/internal/prompt"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

var errNoBodies = errors.New("stored bodies are not at hand")

// compute makes the request of a call again, from the log alone.
func (c *checker) compute(version uint64, call *rollcallv1.ModelCallStarted) {
	at := attempt{call.GetRun(), call.GetStep(), call.GetAttempt()}
	plan, ok := c.state.StepPlan(call.GetMember())
	if !ok || plan.Run != at.run || plan.Step != at.step || plan.Attempt != at.attempt {
		return // ended in the same commit: nothing was sent
	}
	fetch := c.body
	if fetch == nil {
		fetch = func(*rollcallv1.Blob) ([]byte, error) { return nil, errNoBodies }
	}
	req, err := prompt.Build(plan, prompt.Commits{ByVersion: c.commits, Blob: fetch})
	var hashes []string
	if err == nil {
		hashes, err = model.Hashes(req)
	}
	if err != nil {
		c.lost[at] = true
		c.problem(version, "request-lost", "the request of %s cannot be computed again: %v", at, err)
		return
	}
	c.requests[at] = hashes
}

// sameRequest holds the request that was sent against the one computed.
func (c *checker) sameRequest(version uint64, at attempt, hash string) {
	computed, ok := c.requests[at]
	switch {
	case !ok && !c.lost[at]:
		c.problem(version, "call-unexplained", "%s has an outcome, and the log never began it", at)
	case ok && !slices.Contains(computed, hash):
		c.problem(version, "request-differs", "the request of %s was another than the log gives", at)
	case ok:
		c.Requests++
	}
}

// answered holds a reply against its request, and keeps it for Compare.
func (c *checker) answered(version uint64, r *rollcallv1.ModelReplied) {
	at := attempt{r.GetRun(), r.GetStep(), r.GetAttempt()}
	c.sameRequest(version, at, r.GetRequestHash())
	c.replies = append(c.replies, reply{attempt: at, version: version, hash: r.GetRequestHash()})
}
