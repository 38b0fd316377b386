// Package model calls chat models over the OpenAI-compatible HTTP API.
//
// One Call is one HTTP request: it never retries by itself, because every
// attempt is an event in the log. Package scripted is a model server for
// demos and tests that speaks the same API.
package model

import (
	"context"
	"time"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Message is one message of a request.
type Message struct {
	// Role is system, user, assistant or tool.
	Role    string
	Content string
	// Calls of an assistant message.
	Calls []*rollcallv1.ToolCall
	// CallID is the call that a tool message answers.
	CallID string
}

// Request is what a model is shown. Encode gives its exact bytes.
type Request struct {
	Model    string
	Messages []Message
	Tools    []*rollcallv1.ToolDefinition
}

// Caller says on whose behalf a request is made; it travels in HTTP headers
// (Rollcall-Conversation, -Member, -Run, -Step), never in the body.
type Caller struct {
	Key    domain.Key
	Member string
	Run    string
	Step   uint32
}

// Reply is a complete answer: a finish reason was seen.
type Reply struct {
	Text      string
	Reasoning string
	Calls     []*rollcallv1.ToolCall
	// Finish as the server said it. "length" and "content_filter" replies carry
	// no calls: a cut reply runs no tool.
	Finish string
	Usage  *rollcallv1.Usage
	Model  string
}

// Client calls a model.
type Client interface {
	// Call sends one request. onText, if not nil, gets the text as it streams,
	// on the calling goroutine. The error is an *Error unless ctx ended.
	Call(ctx context.Context, from Caller, req Request, onText func(string)) (Reply, error)
}

// Error is a call without a complete answer.
type Error struct {
	// Code is stable: model-unreachable, model-key-refused, model-rate-limited,
	// model-quota, model-cut, model-timeout, model-refused, model-server-error, model-protocol.
	Code string
	// Transient is true when the same request may succeed later.
	Transient bool
	// RetryAfter is the server's wish; 0 when it has none.
	RetryAfter time.Duration
	// Status is the HTTP status, 0 when there was none.
	Status int
	What   string
	Why    string
	Try    string
}

func (e *Error) Error() string {
	s := e.What
	if e.Why != "" {
		s += ": " + e.Why
	}
	if e.Try != "" {
		s += " (" + e.Try + ")"
	}
	return s + " [" + e.Code + "]"
}
