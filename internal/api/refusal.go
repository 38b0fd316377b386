package api

import (
	"context"
	"errors"

	"github.com/rollcall-dev/rollcall/docs"
	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Exit codes of the command line; a refusal on the wire carries its own.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitRefused     = 4
	ExitUnreachable = 5
	ExitWaiting     = 6
	ExitTeamFailed  = 7
	ExitBudget      = 8
	ExitTimeout     = 124
	ExitInterrupted = 130
)

// ErrorBody is a refusal on the wire: the JSON body of an error answer.
type ErrorBody struct {
	Code string `json:"code"`
	What string `json:"what"`
	Why  string `json:"why,omitempty"`
	Try  string `json:"try,omitempty"`
	// Exit is the command line's exit code for it.
	Exit int `json:"exit"`
}

func errorBody(err error) ErrorBody {
	r := AsRefusal(err)
	return ErrorBody{Code: r.Code, What: r.What, Why: r.Why, Try: r.Try, Exit: ExitCode(r)}
}

func (e ErrorBody) refusal() *domain.Refusal {
	return domain.Refuse(e.Code, e.What, e.Why, e.Try)
}

// AsRefusal gives any error the shape of a refusal, so that everything a user
// reads says what, why and what to try.
func AsRefusal(err error) *domain.Refusal {
	if r, ok := errors.AsType[*domain.Refusal](err); ok {
		return r
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return domain.Refuse("timed-out", "the time given ran out", "", "ask again; some commands take more time with --timeout")
	case errors.Is(err, context.Canceled):
		return domain.Refuse("interrupted", "stopped on request", "", "")
	}
	if passing(err) {
		return domain.Refuse(unavailable, "JetStream does not answer", reason(err), tryLater)
	}
	return domain.Refuse("internal", "something failed that should not", err.Error(), "run rollcall doctor")
}

// ExitCode is the exit code that tells an error to a shell.
func ExitCode(err error) int {
	if err == nil {
		return ExitDone
	}
	r := AsRefusal(err)
	if known, ok := docs.ErrorOf(r.Code); ok {
		return known.Exit
	}
	return ExitRefused
}

func refusalProto(err error) *rollcallv1.Refusal {
	r := AsRefusal(err)
	return &rollcallv1.Refusal{Code: r.Code, What: r.What, Why: r.Why, Try: r.Try}
}

func refusalError(r *rollcallv1.Refusal) error {
	if r == nil {
		return nil
	}
	return domain.Refuse(r.GetCode(), r.GetWhat(), r.GetWhy(), r.GetTry())
}
