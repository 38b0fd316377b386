package model

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// maxRefusal bounds what is read of an answer that is no success.
const maxRefusal = 64 << 10

// An exchange is what one call and the transport share: what to send, and what
// was seen of the answer. One goroutine uses it at a time.
type exchange struct {
	body   []byte
	header http.Header
	limit  int64
	watch  *watch

	status      int
	contentType string
	head        []byte // first bytes of the answer
	chunks      int
	calls       int            // pieces of tool calls given on so far
	extras      map[int]string // what came with them, by their number
}

func (x *exchange) see(b []byte) {
	if room := 256 - len(x.head); room > 0 {
		x.head = append(x.head, b[:min(room, len(b))]...)
	}
}

type exchangeKey struct{}

func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

// A transport sends the exchange's own bytes in place of what go-openai wrote,
// and gives it an answer that it can read. An answer that is no success comes
// back as an *Error.
type transport struct {
	base http.RoundTripper
}

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	x, ok := req.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return t.base.RoundTrip(req)
	}
	if req.Body != nil {
		_ = req.Body.Close() // what go-openai wrote is not sent
	}
	req = req.Clone(req.Context())
	req.Body = io.NopCloser(bytes.NewReader(x.body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.body)), nil }
	req.ContentLength = int64(len(x.body))
	for name, values := range x.header {
		req.Header[name] = values
	}
	res, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	x.watch.alive()
	x.status, x.contentType = res.StatusCode, res.Header.Get("Content-Type")
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // what can be read is told
		e := refusal(res.StatusCode, res.Header, body)
		if to := res.Header.Get("Location"); to != "" && res.StatusCode < 400 {
			e.Why += ", to " + shorten(to)
		}
		return nil, e
	}
	res.Body = newNormaliser(x, res.Body, x.limit)
	res.ContentLength = -1
	res.Header = res.Header.Clone()
	res.Header.Del("Content-Length")
	return res, nil
}

// ownTransport is for clients that were given none. Many members call at
// once, so it keeps more idle connections than usual.
func ownTransport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        64,
		MaxIdleConnsPerHost: 32,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 15 * time.Second,
	}
}
