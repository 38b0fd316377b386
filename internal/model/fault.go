package model

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

const (
	tryAddress = "check ROLLCALL_MODEL and OPENAI_BASE_URL"
	tryKey     = "check OPENAI_API_KEY, and that it belongs to the server at OPENAI_BASE_URL"
	tryAgain   = "the step is tried again; if it stays so, ask whoever runs the model server"
	tryShorter = "give the member less to read: put long text into files, or choose a model with a longer context"
	tryRequest = "the server does not take this request; its words say why"
)

// refusal names the failure behind an HTTP status and a body.
func refusal(status int, h http.Header, body []byte) *Error {
	c := complaintOf(body)
	e := fault(status, c)
	e.Status = status
	e.RetryAfter = wishOf(h, status, c.message+" "+c.all, time.Now())
	if e.Code == CodeQuota && c.code != "insufficient_quota" && status == http.StatusTooManyRequests && e.RetryAfter > 0 {
		// A quota that comes back by itself is a rate.
		e.Code, e.Transient = CodeRateLimited, true
		e.What, e.Try = "the model server asks for fewer requests", tryAgain
	}
	return e
}

// fault decides by the words before the status: servers disagree about the
// latter. Status 0 is a failure told in the stream.
func fault(status int, c complaint) *Error {
	why := c.message
	if status == 0 {
		status = c.status
	} else {
		why = fmt.Sprintf("HTTP %d", status)
		if name := http.StatusText(status); name != "" {
			why += " " + name
		}
		if c.message != "" {
			why += ": " + c.message
		}
	}
	switch {
	case c.tooLong(), status == http.StatusRequestEntityTooLarge:
		return named(CodeContextTooLong, false, "the request is too long for the model", why, tryShorter)
	case c.has("tool_use_failed"), c.has("failed_generation"):
		return named(CodeProtocol, true, "the server could not read the model's tool call", why, tryAgain)
	case c.has("insufficient_quota", "billing_hard_limit", "insufficient balance", "insufficient credits", "insufficient_balance"),
		status == http.StatusPaymentRequired,
		status == http.StatusTooManyRequests && c.has("billing", "quota"):
		return named(CodeQuota, false, "the account at the model server has nothing left", why, "raise its limit, or use another key")
	case status == http.StatusTooManyRequests, status == 498,
		status < 500 && c.has("rate_limit", "rate limit", "too many requests", "resource_exhausted"):
		return named(CodeRateLimited, true, "the model server asks for fewer requests", why, tryAgain)
	case status == http.StatusUnauthorized, status == http.StatusForbidden,
		status < 500 && c.has("api_key_invalid", "invalid_api_key", "api key not valid", "incorrect api key", "invalid api key", "authentication_error"):
		return named(CodeKeyRefused, false, "the model server refuses the key", why, tryKey)
	case status == http.StatusRequestTimeout:
		return named(CodeTimeout, true, "the model server gave up waiting", why, tryAgain)
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed, status == http.StatusGone,
		status < 500 && c.has("model_not_found", "model not found", "does not exist"):
		return named(CodeRefused, false, "the model server does not know the model or the address", why, tryAddress)
	case status >= 300 && status < 400:
		return named(CodeRefused, false, "the model server has moved", why, tryAddress)
	case status == http.StatusTooEarly, status == http.StatusConflict:
		return named(CodeServerError, true, "the model server could not answer", why, tryAgain)
	case status >= 400 && status < 500:
		return named(CodeRefused, false, "the model server refuses the request", why, tryRequest)
	}
	return named(CodeServerError, true, "the model server failed", why, tryAgain)
}

func named(code string, transient bool, what, why, try string) *Error {
	return &Error{Code: code, Transient: transient, What: what, Why: why, Try: try}
}

// tooLong knows how vendors say that a request does not fit.
func (c complaint) tooLong() bool {
	return c.has(
		"context_length_exceeded", "context length", "context window", "maximum context", "context size",
		"prompt is too long", "input is too long", "prompt too long", "request too large", "too many input tokens",
		"reduce the length", "input token count", "exceeds the maximum number of tokens", "max_model_len", "string_above_max_length",
	)
}

// errorIn finds a failure told in an event of the stream, in any of the forms
// that servers give it; nil if the event is none.
func errorIn(payload []byte, choices []looseChoice) *Error {
	var head struct {
		Error   json.RawMessage `json:"error"`
		Object  json.RawMessage `json:"object"`
		Type    json.RawMessage `json:"type"`
		Detail  json.RawMessage `json:"detail"`
		Message json.RawMessage `json:"message"`
		Usage   json.RawMessage `json:"usage"`
	}
	_ = json.Unmarshal(payload, &head) // an object: the caller has decoded it
	for _, c := range choices {
		if says(c.Error) {
			return fault(0, complaintOf(c.Error))
		}
	}
	bare := len(choices) == 0 && !isSet(head.Usage)
	switch {
	case says(head.Error):
		return fault(0, complaintOf(payload))
	case plainString(head.Object) == "error", plainString(head.Type) == "error":
		return fault(0, complaintOf(payload))
	case bare && (says(head.Detail) || says(head.Message)):
		return fault(0, complaintOf(payload))
	}
	for _, c := range choices {
		switch word := plainString(c.Finish); word {
		case "error", "network_error", "insufficient_system_resource":
			return &Error{Code: CodeServerError, Transient: true, What: "the model server broke the answer off", Why: "finish reason " + word, Try: tryAgain}
		}
	}
	return nil
}

// says reports a value that is not one of the ways to write "none".
func says(raw json.RawMessage) bool {
	switch s := string(bytes.TrimSpace(raw)); s {
	case "", "null", "{}", "[]", `""`, "false", "0":
		return false
	}
	return true
}

func protocol(what string, seen []byte) *Error {
	return &Error{Code: CodeProtocol, Transient: true, What: what, Why: fmt.Sprintf("it begins %q", firstOf(seen)), Try: tryAgain}
}

// firstOf is the beginning of what a server sent, up to a whole character.
func firstOf(b []byte) string {
	const most = 200
	if len(b) > most {
		b = b[:most]
		b = b[:len(b)-halfAtEnd(b)]
	}
	return shorten(string(b))
}

// network names a failure of the connection. began is true once the server has
// answered with a status.
func network(err error, began bool) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	// url.Error repeats the address, which may hold a password.
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	why := shorten(err.Error())
	var (
		unknownCA  x509.UnknownAuthorityError
		wrongHost  x509.HostnameError
		badCert    x509.CertificateInvalidError
		verifyCert *tls.CertificateVerificationError
		noTLS      tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &unknownCA), errors.As(err, &wrongHost), errors.As(err, &badCert), errors.As(err, &verifyCert):
		return &Error{Code: CodeUnreachable, What: "the model server cannot be trusted", Why: why, Try: "check OPENAI_BASE_URL and the machine's certificates"}
	case errors.As(err, &noTLS), strings.Contains(why, "server gave HTTP response to HTTPS client"):
		return &Error{Code: CodeUnreachable, What: "the model server speaks no HTTPS", Why: why, Try: "begin OPENAI_BASE_URL with http://"}
	case strings.Contains(why, "unsupported protocol scheme"), strings.Contains(why, "no Host in request URL"), strings.Contains(why, "missing protocol scheme"):
		return &Error{Code: CodeRefused, What: "the address of the model server is none", Why: why, Try: "set OPENAI_BASE_URL to one such as https://api.openai.com/v1"}
	case began:
		return cut(why)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return cut(why)
	}
	what := "the model server cannot be reached"
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		what = "the model server's name cannot be resolved"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return timeout(what, why)
	}
	return &Error{Code: CodeUnreachable, Transient: true, What: what, Why: why, Try: "check that it runs at OPENAI_BASE_URL"}
}

func tooLong(why string) *Error {
	return &Error{Code: CodeProtocol, What: "the answer is too long", Why: why, Try: "ask for less at a time, or put long text into files"}
}

func cut(why string) *Error {
	return &Error{Code: CodeCut, Transient: true, What: "the answer was cut off", Why: why, Try: tryAgain}
}
