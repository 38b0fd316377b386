// Package model calls chat models over the OpenAI-compatible HTTP API.
//
// One Call is one HTTP request: it never retries by itself, because every
// attempt is an event in the log. Package scripted is a model server for
// demos and tests that speaks the same API.
//
// Real servers take liberties with the API. They are met in this order:
// transport.go and frames.go turn any answer into well-formed events,
// chunk.go mends each event, go-openai decodes it, accumulate.go puts the
// pieces of a reply together, and fault.go names what went wrong. encode.go
// writes the request; gate.go holds all callers of one account back while the
// server asks for it.
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
	// Reasoning of an assistant message, as its Reply had it. It is sent back
	// only to the models that demand it, and only within the open turn.
	Reasoning string
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
	// Plain leaves out the wish for usage figures (stream_options), which some
	// servers refuse. A Client sets it by itself once a server has done so.
	Plain bool
}

// Caller says on whose behalf a request is made; it travels in HTTP headers
// (Rollcall-Conversation, -Member, -Run, -Step), never in the body.
type Caller struct {
	Key    domain.Key
	Member string
	Run    string
	Step   uint32
}

// Reply is a complete answer: a finish reason was seen. Text and Calls may both
// be empty; what follows from that is for the run to decide.
type Reply struct {
	Text string
	// Reasoning is what the model thought aloud; it is never the answer.
	Reasoning string
	// Calls have ids that are unique in the request's history and this reply.
	// Arguments are as the model wrote them and may be invalid; names may be
	// unknown. The run answers both with an error that the model can mend.
	Calls []*rollcallv1.ToolCall
	// Finish as the server said it, except that the words for "too long" and
	// "filtered" are always "length" and "content_filter". Such replies carry
	// no calls: a cut reply runs no tool.
	Finish string
	Usage  *rollcallv1.Usage
	Model  string
	// RequestHash is the lower-case hexadecimal SHA-256 of the body that was
	// sent; see Hashes.
	RequestHash string
}

// Client calls a model.
type Client interface {
	// Call sends one request. onText, if not nil, gets the text as it streams,
	// on the calling goroutine. The error is an *Error unless ctx ended.
	Call(ctx context.Context, from Caller, req Request, onText func(string)) (Reply, error)
	// Pass waits for the caller's place in the line of those whom the server
	// told to wait; it comes before Call. The error is that of ctx.
	Pass(ctx context.Context) error
	// Held is how long the server wants no requests; 0 when it takes them.
	Held() time.Duration
}

// Codes of an Error. They are stable: the log, the screens and docs/errors.md
// carry them.
const (
	// CodeUnreachable: no connection, or it broke before an answer came.
	CodeUnreachable = "model-unreachable"
	// CodeKeyRefused: the server does not accept the key.
	CodeKeyRefused = "model-key-refused"
	// CodeRateLimited: too many requests at the moment.
	CodeRateLimited = "model-rate-limited"
	// CodeQuota: the account has nothing left; waiting does not help.
	CodeQuota = "model-quota"
	// CodeCut: the answer ended without a finish reason.
	CodeCut = "model-cut"
	// CodeTimeout: the server was silent, or slow, for too long.
	CodeTimeout = "model-timeout"
	// CodeRefused: the server does not accept the request.
	CodeRefused = "model-refused"
	// CodeContextTooLong: the request does not fit into the model's context.
	CodeContextTooLong = "model-context-too-long"
	// CodeServerError: the server failed.
	CodeServerError = "model-server-error"
	// CodeProtocol: the answer is not one of the API.
	CodeProtocol = "model-protocol"
)

// Error is a call without a complete answer. It never holds the key.
type Error struct {
	// Code is one of the Code constants.
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
	// RequestHash is as in Reply; empty when nothing was sent.
	RequestHash string
}

func (e *Error) Error() string { return e.Words() + " [" + e.Code + "]" }

// Words are what, why and what to try, for those who show the code apart.
func (e *Error) Words() string {
	s := e.What
	if e.Why != "" {
		s += ": " + e.Why
	}
	if e.Try != "" {
		s += " (" + e.Try + ")"
	}
	return s
}
